// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-license-fusion,canonicalize))' | FileCheck %s

// Two arrays: fused where their ranges are disjoint, loads first where they are not.

// CHECK-LABEL: @two_arrays
// CHECK-SAME:    %[[P:.*]]: !tile.ptr<f32>, %[[Q:.*]]: !tile.ptr<f32>)
// CHECK-SAME:    strips.scratch_bytes = 256 : i64
// CHECK-DAG:     %[[LOAD:.*]] = tile.ptr_to_int %[[P]]
// CHECK-DAG:     %[[LOAD_END:.*]] = arith.addi %[[LOAD]], %c256
// CHECK-DAG:     %[[STORE:.*]] = tile.ptr_to_int %[[Q]]
// CHECK-DAG:     %[[STORE_END:.*]] = arith.addi %[[STORE]], %c256
// CHECK-DAG:     %[[BEFORE:.*]] = arith.cmpi ule, %[[LOAD_END]], %[[STORE]]
// CHECK-DAG:     %[[AFTER:.*]] = arith.cmpi ule, %[[STORE_END]], %[[LOAD]]
// CHECK:         %[[DISJOINT:.*]] = arith.ori %[[BEFORE]], %[[AFTER]]
// CHECK:         scf.if %[[DISJOINT]] {
// CHECK:           strips.group
// CHECK:             %[[X:.*]] = tile.load
// CHECK:             tile.store %{{.*}}, %[[X]]
// CHECK:         } else {
// CHECK:           %[[KEPT:.*]] = strips.scratch 0
// CHECK:           strips.group
// CHECK:             tile.load
// CHECK:             strips.write %{{.*}}, %[[KEPT]]
// CHECK:           strips.group
// CHECK-NOT:         tile.load
// CHECK:             %[[Y:.*]] = strips.read %[[KEPT]]
// CHECK:             tile.store %{{.*}}, %[[Y]]
tile.func @two_arrays(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %qp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// The same pointers, all of them different: nothing to check.

// CHECK-LABEL: @same_index
// CHECK-NOT:     scf.if
// CHECK:         strips.group
// CHECK:           tile.load
// CHECK:           tile.store
// CHECK-NOT:     strips.group
tile.func @same_index(%p: !tile.ptr<f32>) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    tile.store %pp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Rows that may overlap: the stride must reach past a row.

// CHECK-LABEL: @rows
// CHECK-SAME:    %[[LD:[a-z0-9]*]]: i32
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[LD]] : i32 to i64
// CHECK:         %[[STRIDE:.*]] = math.absi %[[WIDE]]
// CHECK:         %[[APART:.*]] = arith.cmpi sgt, %[[STRIDE]], %c15
// CHECK:         scf.if %[[APART]]
tile.func @rows(%p: !tile.ptr<f32>, %ld: i32) {
  strips.group [8, 16] {
    %r = tile.range 0 to 8 : tensor<8xi32>
    %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %lds = tile.splat %ld : i32 -> tensor<8x1xi32>
    %rl = arith.muli %r1, %lds : tensor<8x1xi32>
    %rb = tile.broadcast %rl : tensor<8x1xi32> -> tensor<8x16xi32>
    %c = tile.range 0 to 16 : tensor<16xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %cb = tile.broadcast %c1 : tensor<1x16xi32> -> tensor<8x16xi32>
    %o = arith.addi %rb, %cb : tensor<8x16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32>
    %x = tile.load %pp : tensor<8x16x!tile.ptr<f32>>
    %y = arith.addf %x, %x : tensor<8x16xf32>
    tile.store %pp, %y : tensor<8x16x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Addresses from memory have no range: the version that loads first stands alone.

// CHECK-LABEL: @unknown
// CHECK-NOT:     scf.if
// CHECK:         strips.group
// CHECK:           tile.load
// CHECK:           strips.write
// CHECK:         strips.group
// CHECK-NOT:       tile.load
// CHECK:           tile.store
tile.func @unknown(%q: !tile.ptr<f32>) attributes {strips.scratch_bytes = 512 : i64} {
  %b = strips.scratch 0 : memref<64xi64>
  strips.group [64] {
    %pp = strips.read %b : memref<64xi64> -> tensor<64x!tile.ptr<f32>>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    %r = tile.range 0 to 64 : tensor<64xi32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %qp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}
