// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512 remarks}))' -o /dev/null
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512},canonicalize,cse))' | FileCheck %s

// Rows of 8: a vector for each, from an address that is computed as a scalar, and two of them
// make a strip. They are stored as what they were loaded as.

// CHECK-LABEL: @rows_of_8
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c128{{.*}} step %c64
// CHECK:           %[[FIRST:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK:           %[[ROW:.*]] = arith.divsi %[[FIRST]], %c8_i32
// CHECK:           %[[SECOND:.*]] = arith.addi %[[FIRST]], %c8_i32
// CHECK:           arith.divsi %[[SECOND]], %c8_i32
// CHECK-COUNT-8:   llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NOT:       gather
// CHECK:           vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
tile.func @rows_of_8(%p: !tile.ptr<f32>) {
  %out = strips.scratch 0 : memref<128xf32>
  // expected-remark @below {{strips of 16 lanes along dimension 0, where 1 access has neighbours, 1 in runs of fewer and 0 none}}
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %eight = arith.constant dense<8> : tensor<128xi32>
    %pitch = arith.constant dense<64> : tensor<128xi32>
    %row = tile.div_int signed %r, %eight : tensor<128xi32>
    %column = tile.rem_int signed %r, %eight : tensor<128xi32>
    %start = arith.muli %row, %pitch : tensor<128xi32>
    %o = arith.addi %start, %column : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: sub-strips: runs of 8 neighbours along dimension 0: the stride between runs is unknown}}
    %x = tile.load %pp : tensor<128x!tile.ptr<f32>>
    strips.write %x, %out : tensor<128xf32>, memref<128xf32>
    strips.yield
  }
  tile.return
}

// -----

// Stored in the order of their lanes.

// CHECK-LABEL: @stored_rows
// CHECK:           %[[X:.*]] = vector.load
// CHECK:           %[[LOW:.*]] = vector.shuffle %[[X]], %[[X]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT:      llvm.store %[[LOW]], %{{.*}} {alignment = 4 : i64} : vector<8xf32>
// CHECK-NEXT:      %[[HIGH:.*]] = vector.shuffle %[[X]], %[[X]] [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK-NEXT:      llvm.store %[[HIGH]], %{{.*}} {alignment = 4 : i64} : vector<8xf32>
// CHECK-NOT:       scatter
tile.func @stored_rows(%p: !tile.ptr<f32>) {
  %in = strips.scratch 0 : memref<16xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [16] {
    %x = strips.read %in : memref<16xf32> -> tensor<16xf32>
    %r = tile.range 0 to 16 : tensor<16xi32>
    %seven = arith.constant dense<7> : tensor<16xi32>
    %column = arith.andi %r, %seven : tensor<16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %column : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    // expected-remark @below {{store: sub-strips: runs of 8 neighbours along dimension 0}}
    tile.store %pp, %x : tensor<16x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// A mask that takes rows as wholes is one condition a row; of one that does not, each row has
// its lanes.

// CHECK-LABEL: @masked_rows
// CHECK-DAG:       %[[A:.*]] = vector.broadcast %{{.*}} : i1 to vector<8xi1>
// CHECK-DAG:       %[[B:.*]] = vector.broadcast %{{.*}} : i1 to vector<8xi1>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[A]], %{{.*}} -> vector<8xf32>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[B]], %{{.*}} -> vector<8xf32>
// CHECK:           %[[LANES:.*]] = arith.cmpi ne, %{{.*}} : vector<16xi32>
// CHECK:           %[[LOW:.*]] = vector.shuffle %[[LANES]], %[[LANES]] [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xi1>
// CHECK:           %[[HIGH:.*]] = vector.shuffle %[[LANES]], %[[LANES]] [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xi1>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[LOW]], %{{.*}} -> vector<8xf32>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[HIGH]], %{{.*}} -> vector<8xf32>
tile.func @masked_rows(%p: !tile.ptr<f32>, %keep: !tile.ptr<i32>) {
  %flags = strips.scratch 64 : memref<16xi32>
  %out = strips.scratch 0 : memref<16xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [16] {
    %r = tile.range 0 to 16 : tensor<16xi32>
    %zero = arith.constant dense<0> : tensor<16xi32>
    %three = arith.constant dense<3> : tensor<16xi32>
    %seven = arith.constant dense<7> : tensor<16xi32>
    %column = arith.andi %r, %seven : tensor<16xi32>
    %row = tile.shift right_logical %r, %three : tensor<16xi32>
    %ks = tile.splat %keep : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
    %kp = tile.addptr %ks, %row : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
    // expected-remark @below {{load: sub-strips: runs of 8 equal elements along dimension 0}}
    %k = tile.load %kp : tensor<16x!tile.ptr<i32>>
    %whole = arith.cmpi ne, %k, %zero : tensor<16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %column : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    // expected-remark @below {{load: sub-strips: runs of 8 neighbours along dimension 0}}
    %x = tile.load %pp, %whole : tensor<16x!tile.ptr<f32>>
    %flag = strips.read %flags : memref<16xi32> -> tensor<16xi32>
    %some = arith.cmpi ne, %flag, %zero : tensor<16xi32>
    // expected-remark @below {{load: sub-strips: runs of 8 neighbours along dimension 0}}
    %y = tile.load %pp, %some : tensor<16x!tile.ptr<f32>>
    // expected-remark @below {{load: sub-strips: runs of 8 equal elements along dimension 0, gathered where a mask may split them}}
    %z = tile.load %kp, %some : tensor<16x!tile.ptr<i32>>
    %zf = arith.sitofp %z : tensor<16xi32> to tensor<16xf32>
    %s = arith.addf %x, %y : tensor<16xf32>
    %t = arith.addf %s, %zf : tensor<16xf32>
    strips.write %t, %out : tensor<16xf32>, memref<16xf32>
    strips.yield
  }
  tile.return
}

// -----

// One element for 8 lanes is loaded once; one for a whole strip stays a scalar.

// CHECK-LABEL: @repeated
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = llvm.load {{.*}} -> f32
// CHECK:           %[[B:.*]] = llvm.load {{.*}} -> f32
// CHECK:           %[[BOTH:.*]] = vector.from_elements %[[A]], %[[B]] : vector<2xf32>
// CHECK:           vector.shuffle %[[BOTH]], %[[BOTH]] [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
// CHECK:           %[[ONE:.*]] = llvm.load {{.*}} -> f32
// CHECK:           vector.broadcast %[[ONE]] : f32 to vector<16xf32>
tile.func @repeated(%p: !tile.ptr<f32>) {
  %out = strips.scratch 0 : memref<48xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [48] {
    %r = tile.range 0 to 48 : tensor<48xi32>
    %eight = arith.constant dense<8> : tensor<48xi32>
    %wide = arith.constant dense<16> : tensor<48xi32>
    %r8 = tile.div_int signed %r, %eight : tensor<48xi32>
    %r16 = tile.div_int signed %r, %wide : tensor<48xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<48x!tile.ptr<f32>>
    %p8 = tile.addptr %ps, %r8 : tensor<48x!tile.ptr<f32>>, tensor<48xi32>
    // expected-remark @below {{load: sub-strips: runs of 8 equal elements along dimension 0: the stride between runs is unknown}}
    %x = tile.load %p8 : tensor<48x!tile.ptr<f32>>
    %p16 = tile.addptr %ps, %r16 : tensor<48x!tile.ptr<f32>>, tensor<48xi32>
    // expected-remark @below {{load: one element for all lanes of a strip along dimension 0: the stride between runs is unknown}}
    %y = tile.load %p16 : tensor<48x!tile.ptr<f32>>
    %s = arith.addf %x, %y : tensor<48xf32>
    // expected-remark @below {{store: scattered along dimension 0: runs of 8 equal elements along dimension 0}}
    tile.store %p8, %s : tensor<48x!tile.ptr<f32>>
    strips.write %s, %out : tensor<48xf32>, memref<48xf32>
    strips.yield
  }
  tile.return
}

// -----

// Rows of 2 of a reshaped tile are computed two lanes at a time, and not one by one.

// CHECK-LABEL: @reshaped
// CHECK-COUNT-8:   llvm.load {{.*}} -> vector<2xf32>
// CHECK-NOT:       llvm.load {{.*}} -> f32
tile.func @reshaped(%p: !tile.ptr<f32>, %ld: i32) {
  %out = strips.scratch 0 : memref<16xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [16] {
    %i = tile.range 0 to 8 : tensor<8xi32>
    %lds = tile.splat %ld : i32 -> tensor<8xi32>
    %il = arith.muli %i, %lds : tensor<8xi32>
    %i1 = tile.expand_dims %il {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %ib = tile.broadcast %i1 : tensor<8x1xi32> -> tensor<8x2xi32>
    %j = tile.range 0 to 2 : tensor<2xi32>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
    %jb = tile.broadcast %j1 : tensor<1x2xi32> -> tensor<8x2xi32>
    %o = arith.addi %ib, %jb : tensor<8x2xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x2x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<8x2x!tile.ptr<f32>>, tensor<8x2xi32>
    %x = tile.load %pp : tensor<8x2x!tile.ptr<f32>>
    %flat = tile.reshape %x : tensor<8x2xf32> -> tensor<16xf32>
    strips.write %flat, %out : tensor<16xf32>, memref<16xf32>
    strips.yield
  }
  tile.return
}

// -----

// What has no neighbours is gathered from one base, by offsets as wide as the kernel has them.

// CHECK-LABEL: @gathered
// CHECK-SAME:    %[[P:[a-z0-9]*]]: !tile.ptr<f32>, %[[ROW:[a-z0-9]*]]: i64
// CHECK-DAG:     %[[ARRAY:.*]] = tile.ptr_to_int %[[P]]
// CHECK-DAG:     %[[BYTES:.*]] = arith.muli %[[ROW]], %c4_i64
// CHECK:         %[[BASE:.*]] = arith.addi %[[ARRAY]], %[[BYTES]]
// CHECK:           %[[INDEX:.*]] = vector.load {{.*}} vector<16xi32>
// CHECK:           %[[FROM:.*]] = llvm.inttoptr %[[BASE]]
// CHECK:           %[[THERE:.*]] = llvm.getelementptr %[[FROM]][%[[INDEX]]] : (!llvm.ptr, vector<16xi32>) -> vector<16x!llvm.ptr>, f32
// CHECK:           llvm.intr.masked.gather %[[THERE]]
// CHECK:           llvm.intr.masked.scatter %{{.*}}, %[[THERE]]
tile.func @gathered(%p: !tile.ptr<f32>, %row: i64) {
  %index = strips.scratch 0 : memref<16xi32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [16] {
    %i = strips.read %index : memref<16xi32> -> tensor<16xi32>
    %wide = arith.extsi %i : tensor<16xi32> to tensor<16xi64>
    %rows = tile.splat %row : i64 -> tensor<16xi64>
    %o = arith.addi %rows, %wide : tensor<16xi64>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<16x!tile.ptr<f32>>, tensor<16xi64>
    // expected-remark @below {{load: gathered along dimension 0: addresses depend on data}}
    %x = tile.load %pp : tensor<16x!tile.ptr<f32>>
    %y = arith.addf %x, %x : tensor<16xf32>
    // expected-remark @below {{store: scattered along dimension 0: addresses depend on data}}
    tile.store %pp, %y : tensor<16x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}
