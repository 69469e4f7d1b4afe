// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512},canonicalize))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=sse2 unroll=1},canonicalize))' | FileCheck %s --check-prefix=NARROW
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512 deterministic=true},canonicalize))' | FileCheck %s --check-prefix=FIXED

// Up to the bound, four strips an iteration without masks; then single strips with them.

// CHECK-LABEL: @masked
// CHECK-SAME:    %[[P:.*]]: !tile.ptr<f32>, %[[Q:.*]]: !tile.ptr<f32>, %[[N:.*]]: i32
// CHECK:         %[[HOLDS:.*]] = arith.cmpi sgt, %[[N]], %c0
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[N]]
// CHECK:         %[[CUT:.*]] = arith.minui %[[WIDE]], %c1024
// CHECK:         %[[BOUND:.*]] = arith.select %[[HOLDS]], %[[CUT]], %c0
// CHECK:         %[[INDEX:.*]] = arith.index_cast %[[BOUND]]
// CHECK:         %[[FULL:.*]] = arith.andi %[[INDEX]], %c-64
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %[[FULL]] step %c64
// CHECK-COUNT-4:   llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-4:   llvm.store
// CHECK:         scf.for %[[J:.*]] = %[[FULL]] to %c1024{{.*}} step %c16
// CHECK:           %[[MASK:.*]] = arith.cmpi slt, %{{.*}} : vector<16xi32>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[MASK]]
// CHECK:           llvm.intr.masked.store %{{.*}}, %{{.*}}, %[[MASK]]
// NARROW-LABEL: @masked
// NARROW:        scf.for {{.*}} step %c4
// NARROW-COUNT-1:  llvm.load {{.*}} -> vector<4xf32>
tile.func @masked(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  strips.group [1024] {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ns = tile.splat %n : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %r, %ns : tensor<1024xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %x = tile.load %pp, %m : tensor<1024x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %qp, %x, %m : tensor<1024x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// A sum along the lanes: four accumulators, folded at the end of the row. -0.0 is what
// adds nothing to any float. In the fixed order the elements are kept, and halves added.

// CHECK-LABEL: @row_sum
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<-0.0{{.*}}> : vector<16xf32>
// CHECK:         scf.for %[[ROW:.*]] = %c0{{.*}} to %c8
// CHECK:           %[[SUMS:.*]]:4 = scf.for {{.*}} to %c128{{.*}} step %c64{{.*}} iter_args(%{{.*}} = %[[ZERO]]
// CHECK-COUNT-4:     vector.load %{{.*}} : memref<1024xf32>, vector<16xf32>
// CHECK-COUNT-4:     arith.addf
// CHECK-COUNT-3:   arith.addf %{{.*}} : vector<16xf32>
// CHECK:           arith.addf %{{.*}} : vector<8xf32>
// CHECK:           arith.addf %{{.*}} : vector<1xf32>
// CHECK:           %[[SUM:.*]] = vector.extract
// CHECK:           memref.store %[[SUM]]
// FIXED-LABEL: @row_sum
// FIXED-SAME:    strips.scratch_bytes = 4672 : i64
// FIXED:         %[[LINE:.*]] = strips.scratch 4160 : memref<128xf32>
// FIXED:         scf.for {{.*}} to %c8
// FIXED:           scf.for {{.*}} to %c128
// FIXED:             vector.store %{{.*}}, %[[LINE]]
// FIXED:           scf.for %[[I:.*]] = %c0{{.*}} to %c64{{.*}} step %c16
// FIXED:             %[[PARTNER:.*]] = arith.addi %[[I]], %c64
// FIXED:             %[[A:.*]] = vector.load %[[LINE]][%[[I]]]
// FIXED:             %[[B:.*]] = vector.load %[[LINE]][%[[PARTNER]]]
// FIXED:             arith.addf %[[A]], %[[B]]
tile.func @row_sum() attributes {strips.scratch_bytes = 4128 : i64} {
  %a = strips.scratch 0 : memref<8x128xf32>
  %b = strips.scratch 4096 : memref<8xf32>
  strips.group [8, 128] {
    %x = strips.read %a : memref<8x128xf32> -> tensor<8x128xf32>
    %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<8x128xf32>) -> tensor<8xf32> {
    ^bb0(%l: f32, %r: f32):
      %c = arith.addf %l, %r : f32
      tile.reduce_return %c : f32
    }
    strips.write %s, %b : tensor<8xf32>, memref<8xf32>
    strips.yield
  }
  tile.return
}

// -----

// A sum across the lanes: the reduced dimension is the innermost loop, its accumulators
// are the results.

// CHECK-LABEL: @column_sum
// CHECK:         scf.for %[[J:.*]] = %c0{{.*}} to %c128{{.*}} step %c64
// CHECK:           %[[SUMS:.*]]:4 = scf.for %{{.*}} = %c0{{.*}} to %c8
// CHECK-COUNT-4:     vector.load
// CHECK:           vector.store %[[SUMS]]#0
// CHECK:           vector.store %[[SUMS]]#3
tile.func @column_sum() attributes {strips.scratch_bytes = 4608 : i64} {
  %a = strips.scratch 0 : memref<8x128xf32>
  %b = strips.scratch 4096 : memref<128xf32>
  strips.group [8, 128] {
    %x = strips.read %a : memref<8x128xf32> -> tensor<8x128xf32>
    %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<8x128xf32>) -> tensor<128xf32> {
    ^bb0(%l: f32, %r: f32):
      %c = arith.addf %l, %r : f32
      tile.reduce_return %c : f32
    }
    strips.write %s, %b : tensor<128xf32>, memref<128xf32>
    strips.yield
  }
  tile.return
}

// -----

// Indices that increase along the axis are not compared in the loop, where those found are lower
// than those to come. They are compared where lanes are folded, which are in no order.

// CHECK-LABEL: @index_of_maximum
// CHECK:         scf.for
// CHECK-NOT:       arith.cmpi
// CHECK:           scf.yield
// CHECK:         arith.cmpi slt, {{.*}} : vector<16xi32>
tile.func @index_of_maximum() attributes {strips.scratch_bytes = 16448 : i64} {
  %a = strips.scratch 0 : memref<8x512xf32>
  %b = strips.scratch 16384 : memref<8xi32>
  strips.group [8, 512] {
    %x = strips.read %a : memref<8x512xf32> -> tensor<8x512xf32>
    %k = tile.range 0 to 512 : tensor<512xi32>
    %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %i = tile.broadcast %k1 : tensor<1x512xi32> -> tensor<8x512xi32>
    %v, %n = tile.reduce (%x, %i) {axis = 1 : i32} : (tensor<8x512xf32>, tensor<8x512xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
    ^bb0(%l: f32, %li: i32, %r: f32, %ri: i32):
      %more = arith.cmpf ogt, %l, %r : f32
      %equal = arith.cmpf oeq, %l, %r : f32
      %first = arith.cmpi slt, %li, %ri : i32
      %tie = arith.andi %equal, %first : i1
      %left = arith.ori %more, %tie : i1
      %c = arith.select %left, %l, %r : f32
      %ci = arith.select %left, %li, %ri : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    strips.write %n, %b : tensor<8xi32>, memref<8xi32>
    strips.yield
  }
  tile.return
}

// -----

// A sum of indices may be more than what comes, and indices from memory may decrease.

// CHECK-LABEL: @sum_of_indices
// CHECK:         scf.for
// CHECK:           arith.cmpi slt, {{.*}} : vector<16xi32>
// CHECK:           arith.cmpi slt, {{.*}} : vector<16xi32>
// CHECK:           scf.yield
tile.func @sum_of_indices() attributes {strips.scratch_bytes = 16448 : i64} {
  %a = strips.scratch 0 : memref<8x512xi32>
  %b = strips.scratch 16384 : memref<8xi32>
  strips.group [8, 512] {
    %x = strips.read %a : memref<8x512xi32> -> tensor<8x512xi32>
    %k = tile.range 0 to 512 : tensor<512xi32>
    %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %i = tile.broadcast %k1 : tensor<1x512xi32> -> tensor<8x512xi32>
    %v, %n = tile.reduce (%x, %i) {axis = 1 : i32} : (tensor<8x512xi32>, tensor<8x512xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
    ^bb0(%l: i32, %li: i32, %r: i32, %ri: i32):
      %less = arith.cmpi slt, %l, %r : i32
      %before = arith.cmpi slt, %li, %ri : i32
      %both = arith.andi %less, %before : i1
      %c = arith.select %both, %l, %r : i32
      %ci = arith.addi %li, %ri : i32
      tile.reduce_return %c, %ci : i32, i32
    }
    strips.write %n, %b : tensor<8xi32>, memref<8xi32>
    strips.yield
  }
  tile.return
}

// -----

// Rows chosen by an index tile: one address a row, contiguous loads in it.

// CHECK-LABEL: @rows_by_index
// CHECK:         scf.for %[[ROW:.*]] = %c0{{.*}} to %c8
// CHECK:           %[[INDEX:.*]] = memref.load %{{.*}}[%[[ROW]]]
// CHECK-NOT:       gather
// CHECK-COUNT-4:   llvm.load {{.*}} -> vector<16xf32>
tile.func @rows_by_index(%p: !tile.ptr<f32>) attributes {strips.scratch_bytes = 2112 : i64} {
  %i = strips.scratch 0 : memref<8xi32>
  %o = strips.scratch 64 : memref<8x64xf32>
  strips.group [8, 64] {
    %index = strips.read %i : memref<8xi32> -> tensor<8xi32>
    %i1 = tile.expand_dims %index {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %rb = tile.broadcast %i1 : tensor<8x1xi32> -> tensor<8x64xi32>
    %c = tile.range 0 to 64 : tensor<64xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %cb = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<8x64xi32>
    %off = arith.addi %rb, %cb : tensor<8x64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %off : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xi32>
    %x = tile.load %pp : tensor<8x64x!tile.ptr<f32>>
    strips.write %x, %o : tensor<8x64xf32>, memref<8x64xf32>
    strips.yield
  }
  tile.return
}

// -----

// Elements by index: a gather.

// CHECK-LABEL: @elements_by_index
// CHECK:         llvm.intr.masked.gather
tile.func @elements_by_index(%p: !tile.ptr<f32>) attributes {strips.scratch_bytes = 512 : i64} {
  %i = strips.scratch 0 : memref<64xi32>
  %o = strips.scratch 256 : memref<64xf32>
  strips.group [64] {
    %index = strips.read %i : memref<64xi32> -> tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %index : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    strips.write %x, %o : tensor<64xf32>, memref<64xf32>
    strips.yield
  }
  tile.return
}

// -----

// A scan is done in the registers of a strip, and then from strip to strip; from the last
// where it is reversed. In a fixed order it goes through its elements one by one.

// CHECK-LABEL: @scan
// CHECK:         %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK:         scf.for %[[I:.*]] = %c16{{.*}} to %c64{{.*}} step %c16{{.*}} iter_args(%[[RUNNING:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK:           %[[AT:.*]] = arith.subi %c48{{.*}}, %[[I]]
// CHECK:           %[[X:.*]] = vector.load %{{.*}}[%[[AT]]]
// CHECK:           %[[NEXT:.*]] = vector.shuffle %[[X]], %[[NONE]] [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 31]
// CHECK:           %[[TWO:.*]] = arith.addf %[[NEXT]], %[[X]]
// CHECK:           vector.shuffle %[[TWO]], %[[NONE]] [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 30, 31]
// CHECK:           vector.shuffle %{{.*}}, %[[NONE]] [4, 5
// CHECK:           vector.shuffle %{{.*}}, %[[NONE]] [8, 9
// CHECK:           %[[ALL:.*]] = arith.addf
// CHECK:           %[[TOTAL:.*]] = vector.shuffle %[[ALL]], %[[ALL]] [0, 0, 0, 0,
// CHECK:           %[[THEN:.*]] = arith.addf %[[RUNNING]], %[[TOTAL]]
// CHECK:           %[[SUM:.*]] = arith.addf %[[RUNNING]], %[[ALL]]
// CHECK:           vector.store %[[SUM]], %{{.*}}[%[[AT]]]
// CHECK:           scf.yield %[[THEN]]
// FIXED-LABEL: @scan
// FIXED:         %[[LAST:.*]] = memref.load %[[A:.*]][%c63]
// FIXED:         memref.store %[[LAST]], %[[B:.*]][%c63]
// FIXED:         scf.for %[[I:.*]] = %c1{{.*}} to %c64{{.*}} iter_args(%[[RUNNING:.*]] = %[[LAST]])
// FIXED:           %[[AT:.*]] = arith.subi %c63{{.*}}, %[[I]]
// FIXED:           %[[X:.*]] = memref.load %[[A]][%[[AT]]]
// FIXED:           %[[NEXT:.*]] = arith.addf %[[RUNNING]], %[[X]]
// FIXED:           memref.store %[[NEXT]], %[[B]][%[[AT]]]
tile.func @scan() attributes {strips.scratch_bytes = 512 : i64} {
  %a = strips.scratch 0 : memref<64xf32>
  %b = strips.scratch 256 : memref<64xf32>
  strips.group [64] {
    %x = strips.read %a : memref<64xf32> -> tensor<64xf32>
    %s = tile.scan (%x) {axis = 0 : i32, reverse} : (tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%l: f32, %r: f32):
      %c = arith.addf %l, %r : f32
      tile.scan_return %c : f32
    }
    strips.write %s, %b : tensor<64xf32>, memref<64xf32>
    strips.yield
  }
  tile.return
}

// -----

// Lanes that no element of the strip comes before keep what they have where there is no
// neutral element: here the second of two values that are combined as a pair.

// CHECK-LABEL: @scan_pairs
// CHECK:         %[[MASK:.*]] = arith.constant dense<[false, true, true, true]> : vector<4xi1>
// CHECK:         %[[X:.*]] = vector.load
// CHECK:         %[[Y:.*]] = vector.load
// CHECK:         %[[X0:.*]] = vector.shuffle %[[X]], %[[X]] [4, 0, 1, 2]
// CHECK:         %[[Y0:.*]] = vector.shuffle %[[Y]], %[[Y]] [4, 0, 1, 2]
// CHECK:         %[[P:.*]] = arith.mulf %[[X0]], %[[X]]
// CHECK:         arith.select %[[MASK]], %[[P]], %[[X]]
tile.func @scan_pairs() attributes {strips.scratch_bytes = 512 : i64} {
  %a = strips.scratch 0 : memref<4xf32>
  %b = strips.scratch 64 : memref<4xf32>
  strips.group [4] {
    %x = strips.read %a : memref<4xf32> -> tensor<4xf32>
    %y = strips.read %b : memref<4xf32> -> tensor<4xf32>
    %s:2 = tile.scan (%x, %y) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%l0: f32, %l1: f32, %r0: f32, %r1: f32):
      %p = arith.mulf %l0, %r0 : f32
      %t = arith.mulf %l1, %r0 : f32
      %u = arith.addf %t, %r1 : f32
      tile.scan_return %p, %u : f32, f32
    }
    strips.write %s#0, %a : tensor<4xf32>, memref<4xf32>
    strips.write %s#1, %b : tensor<4xf32>, memref<4xf32>
    strips.yield
  }
  tile.return
}

// -----

// Across the scanned dimension a vector runs.

// CHECK-LABEL: @scan_columns
// CHECK:         scf.for %[[COLUMN:.*]] = %c0{{.*}} to %c32{{.*}} step %c16
// CHECK:           %[[FIRST:.*]] = vector.load
// CHECK:           vector.store %[[FIRST]]
// CHECK:           scf.for %{{.*}} = %c1{{.*}} to %c8{{.*}} iter_args(%[[RUNNING:.*]] = %[[FIRST]]) -> (vector<16xi32>)
// CHECK:             %[[MORE:.*]] = vector.load
// CHECK:             %[[MOST:.*]] = arith.maxsi %[[RUNNING]], %[[MORE]]
// CHECK:             vector.store %[[MOST]]
// CHECK:             scf.yield %[[MOST]]
tile.func @scan_columns() attributes {strips.scratch_bytes = 2048 : i64} {
  %a = strips.scratch 0 : memref<8x32xi32>
  %b = strips.scratch 1024 : memref<8x32xi32>
  strips.group [8, 32] {
    %x = strips.read %a : memref<8x32xi32> -> tensor<8x32xi32>
    %s = tile.scan (%x) {axis = 0 : i32} : (tensor<8x32xi32>) -> tensor<8x32xi32> {
    ^bb0(%l: i32, %r: i32):
      %c = arith.maxsi %l, %r : i32
      tile.scan_return %c : i32
    }
    strips.write %s, %b : tensor<8x32xi32>, memref<8x32xi32>
    strips.yield
  }
  tile.return
}

// -----

// Atomics are done element by element.

// CHECK-LABEL: @atomic
// CHECK:         scf.for
// CHECK:           llvm.atomicrmw add %{{.*}}, %{{.*}} acq_rel : !llvm.ptr, i32
tile.func @atomic(%p: !tile.ptr<i32>) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %old = tile.atomic_rmw add, acq_rel, gpu, %pp, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
    strips.yield
  }
  tile.return
}

// -----

// Rows that become columns: blocks are transposed in registers, four rounds of shuffles
// for 16 lanes.

// CHECK-LABEL: @transpose
// CHECK:         scf.for {{.*}} to %c64{{.*}} step %c16
// CHECK-COUNT-16:  vector.load %{{.*}} : memref<1024xf32>, vector<16xf32>
// CHECK-COUNT-64:  vector.shuffle
// CHECK-COUNT-16:  vector.store
// CHECK-NOT:     scatter
tile.func @transpose() attributes {strips.scratch_bytes = 8192 : i64} {
  %a = strips.scratch 0 : memref<16x64xf32>
  %b = strips.scratch 4096 : memref<64x16xf32>
  strips.group [64, 16] {
    %x = strips.read %a : memref<16x64xf32> -> tensor<16x64xf32>
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<16x64xf32> -> tensor<64x16xf32>
    strips.write %t, %b : tensor<64x16xf32>, memref<64x16xf32>
    strips.yield
  }
  tile.return
}

// -----

// A merge sort: rounds, pairs of runs, and the merging of one pair, which takes from the
// right where that comes strictly first.

// CHECK-LABEL: @sort
// CHECK-SAME:    strips.scratch_bytes = 768 : i64
// CHECK:         %[[MERGED:.*]] = strips.scratch 512 : memref<64xi32>
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c64
// CHECK:           memref.store %{{.*}}, %[[KEYS:[a-z0-9]*]][
// CHECK:         scf.for %[[ROUND:.*]] = %c0{{.*}} to %c6
// CHECK:           %[[WIDTH:.*]] = arith.shli %c1{{.*}}, %[[ROUND]]
// CHECK:           scf.for
// CHECK:             scf.for %[[K:.*]] = {{.*}} iter_args(%[[LEFT:.*]] = %{{.*}}, %[[RIGHT:.*]] = %{{.*}})
// CHECK:               %[[A:.*]] = memref.load %[[KEYS]]
// CHECK:               %[[B:.*]] = memref.load %[[KEYS]]
// CHECK:               arith.cmpi slt, %[[B]], %[[A]]
// CHECK:               %[[FROM:.*]] = arith.select %[[TAKES:.*]], %[[RIGHT]], %[[LEFT]]
// CHECK:               memref.load %[[KEYS]][%[[FROM]]]
// CHECK:               memref.store %{{.*}}, %[[MERGED]][%[[K]]]
tile.func @sort() attributes {strips.scratch_bytes = 512 : i64} {
  %a = strips.scratch 0 : memref<64xi32>
  %b = strips.scratch 256 : memref<64xi32>
  strips.group [64] {
    %x = strips.read %a : memref<64xi32> -> tensor<64xi32>
    %s = tile.sort (%x) {axis = 0 : i32} : (tensor<64xi32>) -> tensor<64xi32> {
    ^bb0(%l: i32, %r: i32):
      %less = arith.cmpi slt, %l, %r : i32
      tile.sort_return %less : i1
    }
    strips.write %s, %b : tensor<64xi32>, memref<64xi32>
    strips.yield
  }
  tile.return
}

// -----

// A masked load of one element a row is done once a row, under its mask: that the loop
// without masks takes the mask for true does not make it unmasked.

// CHECK-LABEL: @load_of_a_row
// CHECK:         scf.for
// CHECK:           %[[INSIDE:.*]] = arith.cmpi slt
// CHECK:           %[[X:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK:             llvm.load
// CHECK:           scf.for
// CHECK-NOT:         llvm.load
tile.func @load_of_a_row(%p: !tile.ptr<f32>, %n: i32) attributes {strips.scratch_bytes = 2048 : i64} {
  %b = strips.scratch 0 : memref<8x64xf32>
  strips.group [8, 64] {
    %r = tile.range 0 to 8 : tensor<8xi32>
    %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %ns = tile.splat %n : i32 -> tensor<8x1xi32>
    %m = arith.cmpi slt, %r1, %ns : tensor<8x1xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x1x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r1 : tensor<8x1x!tile.ptr<f32>>, tensor<8x1xi32>
    %x = tile.load %pp, %m : tensor<8x1x!tile.ptr<f32>>
    %t = tile.broadcast %x : tensor<8x1xf32> -> tensor<8x64xf32>
    strips.write %t, %b : tensor<8x64xf32>, memref<8x64xf32>
    strips.yield
  }
  tile.return
}

// -----

// The version for addresses that overlap has one loop, with masks.

// CHECK-LABEL: @rare
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c16
// CHECK:           llvm.intr.masked.load
// CHECK:           llvm.intr.masked.store
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.func @rare(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  strips.group [64] attributes {strips.unroll = 1 : i64} {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %ns = tile.splat %n : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %r, %ns : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp, %m : tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %qp, %x, %m : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Strips are as long as the rows of a reshaped tile, where longer ones would be put together
// from elements one by one.

// CHECK-LABEL: @reshaped_rows
// CHECK-NOT:     vector.from_elements
// CHECK:         vector.load {{.*}} vector<8xf32>
// CHECK-NOT:     vector.from_elements
// CHECK:         tile.return
tile.func @reshaped_rows() {
  %a = strips.scratch 0 : memref<8x16xf32>
  %b = strips.scratch 512 : memref<4x16xf32>
  strips.group [4, 16] {
    %x = strips.read %a : memref<8x16xf32> -> tensor<8x16xf32>
    %r = tile.reshape %x : tensor<8x16xf32> -> tensor<8x2x8xf32>
    %t = tile.trans %r {order = array<i32: 0, 2, 1>} : tensor<8x2x8xf32> -> tensor<8x8x2xf32>
    %lhs, %rhs = tile.split %t : tensor<8x8x2xf32> -> tensor<8x8xf32>
    %h = tile.reshape %lhs : tensor<8x8xf32> -> tensor<4x16xf32>
    strips.write %h, %b : tensor<4x16xf32>, memref<4x16xf32>
    strips.yield
  }
  tile.return
}

// -----

// A vector is divided by a constant as LLVM does that best, and not in floating point.

// CHECK-LABEL: @divided
// CHECK:         arith.divsi %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK-NOT:     arith.divf
tile.func @divided() {
  %x = strips.scratch 0 : memref<16xi32>
  strips.group [16] {
    %a = strips.read %x : memref<16xi32> -> tensor<16xi32>
    %seven = arith.constant dense<7> : tensor<16xi32>
    %b = tile.rem_int signed %a, %seven : tensor<16xi32>
    strips.write %b, %x : tensor<16xi32>, memref<16xi32>
    strips.yield
  }
  tile.return
}

// -----

// Long chains of four strips take turns; a store comes behind all of them.

// CHECK-LABEL: @chains
// CHECK:         scf.for
// CHECK-COUNT-4:   llvm.load
// CHECK:           %[[E:.*]] = math.erf
// CHECK-NEXT:      math.erf
// CHECK-NEXT:      math.erf
// CHECK-NEXT:      math.erf
// CHECK-NEXT:      arith.addf %[[E]]
// CHECK-COUNT-4:   llvm.store
tile.func @chains(%p: !tile.ptr<f32>) {
  strips.group [1024] {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    %e = math.erf %x : tensor<1024xf32>
    %y = arith.addf %e, %x : tensor<1024xf32>
    tile.store %pp, %y : tensor<1024x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}
