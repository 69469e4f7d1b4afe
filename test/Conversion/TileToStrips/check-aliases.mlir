// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-check-aliases,canonicalize))' | FileCheck %s

// Two arrays: fused where their ranges are disjoint, or are one and the same; loads first
// where they are not.

// CHECK-LABEL: @two_arrays
// CHECK-SAME:    %[[P:.*]]: !tile.ptr<f32>, %[[Q:.*]]: !tile.ptr<f32>)
// CHECK-SAME:    strips.scratch_bytes = 256 : i64
// CHECK-DAG:     %[[LOAD:.*]] = tile.ptr_to_int %[[P]]
// CHECK-DAG:     %[[LOAD_END:.*]] = arith.addi %[[LOAD]], %c256
// CHECK-DAG:     %[[STORE:.*]] = tile.ptr_to_int %[[Q]]
// CHECK-DAG:     %[[STORE_END:.*]] = arith.addi %[[STORE]], %c256
// CHECK-DAG:     %[[BEFORE:.*]] = arith.cmpi sle, %[[LOAD_END]], %[[STORE]]
// CHECK-DAG:     %[[AFTER:.*]] = arith.cmpi sle, %[[STORE_END]], %[[LOAD]]
// CHECK:         %[[DISJOINT:.*]] = arith.ori %[[BEFORE]], %[[AFTER]]
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[LOAD]], %[[STORE]]
// CHECK:         %[[LICENSED:.*]] = arith.ori %[[DISJOINT]], %[[SAME]]
// CHECK:         scf.if %[[LICENSED]] {
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

// -----

// Rows that an index tile chooses: the lowest and the highest of them are found first,
// eight at a time.

// CHECK-LABEL: @chosen_rows
// CHECK-DAG:     %[[MOST:.*]] = arith.constant dense<9223372036854775807> : vector<8xi64>
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-9223372036854775808> : vector<8xi64>
// CHECK:         %[[ROWS:.*]]:2 = scf.for %{{.*}} = %c0 to %c64 step %c8 iter_args(%[[LOW:.*]] = %[[MOST]], %[[HIGH:.*]] = %[[LEAST]])
// CHECK:           llvm.load {{.*}} -> vector<8xi64>
// CHECK:           %[[AT:.*]] = arith.addi {{.*}} : vector<8xi64>
// CHECK:           arith.minsi %[[LOW]], %[[AT]]
// CHECK:           arith.maxsi %[[HIGH]], %[[AT]]
// CHECK:         %[[FIRST:.*]] = vector.reduction <minsi>, %[[ROWS]]#0
// CHECK:         %[[LAST:.*]] = vector.reduction <maxsi>, %[[ROWS]]#1
// CHECK:         %[[END:.*]] = arith.addi %[[LAST]], %c128
// CHECK:         arith.cmpi sle, %[[END]],
// CHECK:         arith.cmpi sle, %{{.*}}, %[[FIRST]]
// CHECK:         scf.if
// CHECK:           strips.group
// CHECK:         } else {
tile.func @chosen_rows(%table: !tile.ptr<f32>, %index: !tile.ptr<i64>, %out: !tile.ptr<f32>) {
  strips.group [64, 32] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %is = tile.splat %index : !tile.ptr<i64> -> tensor<64x!tile.ptr<i64>>
    %ip = tile.addptr %is, %r : tensor<64x!tile.ptr<i64>>, tensor<64xi32>
    %i = tile.load %ip : tensor<64x!tile.ptr<i64>>
    %width = arith.constant dense<32> : tensor<64xi64>
    %iw = arith.muli %i, %width : tensor<64xi64>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %tr = tile.addptr %ts, %iw : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %t1 = tile.expand_dims %tr {axis = 1 : i32} : tensor<64x!tile.ptr<f32>> -> tensor<64x1x!tile.ptr<f32>>
    %tb = tile.broadcast %t1 : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %tp = tile.addptr %tb, %cb : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    %x = tile.load %tp : tensor<64x32x!tile.ptr<f32>>
    %w = arith.constant dense<32> : tensor<64xi32>
    %rw = arith.muli %r, %w : tensor<64xi32>
    %o1 = tile.expand_dims %rw {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ob = tile.broadcast %o1 : tensor<64x1xi32> -> tensor<64x32xi32>
    %o = arith.addi %ob, %cb : tensor<64x32xi32>
    %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
    %op = tile.addptr %os, %o : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    tile.store %op, %x : tensor<64x32x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// The same pointers, but elements move: what one index stores another has yet to load.

// CHECK-LABEL: @moved
// CHECK-NOT:     scf.if
// CHECK:         strips.group
// CHECK:           tile.load
// CHECK:           strips.write
// CHECK:         strips.group
// CHECK-NOT:       tile.load
// CHECK:           tile.store
tile.func @moved(%p: !tile.ptr<f32>) {
  strips.group [16, 16] {
    %r = tile.range 0 to 16 : tensor<16xi32>
    %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %w = arith.constant dense<16> : tensor<16x1xi32>
    %rw = arith.muli %r1, %w : tensor<16x1xi32>
    %rb = tile.broadcast %rw : tensor<16x1xi32> -> tensor<16x16xi32>
    %c1 = tile.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %cb = tile.broadcast %c1 : tensor<1x16xi32> -> tensor<16x16xi32>
    %o = arith.addi %rb, %cb : tensor<16x16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32>
    %x = tile.load %pp : tensor<16x16x!tile.ptr<f32>>
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %pp, %t : tensor<16x16x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Where no range can be told there is one version, which is as fast as there is a way. What says
// where another load's elements lie is loaded with these, and not kept.

// CHECK-LABEL: @chosen_elements
// CHECK-NOT:     strips.unroll
// CHECK:         %[[KEPT:.*]] = strips.scratch 0 : memref<64xf32>
// CHECK-NEXT:    strips.group [64] {
// CHECK:           %[[INDEX:.*]] = tile.load
// CHECK:           %[[THERE:.*]] = tile.addptr %{{.*}}, %[[INDEX]]
// CHECK:           %[[X:.*]] = tile.load %[[THERE]]
// CHECK:           strips.write %[[X]], %[[KEPT]]
// CHECK:         strips.group [64] {
// CHECK-NOT:       tile.load
// CHECK:           strips.read %[[KEPT]]
// CHECK:           tile.store
// CHECK-NOT:     strips.group
tile.func @chosen_elements(%i: !tile.ptr<i32>, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %is = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %ip = tile.addptr %is, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %index = tile.load %ip : tensor<64x!tile.ptr<i32>>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %index : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %qp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// What is stored, too, and what several others need that are no cheaper, is loaded once.

// CHECK-LABEL: @stored_indices
// CHECK-COUNT-3: strips.scratch {{.*}} : memref<64x
// CHECK-NOT:     strips.scratch
tile.func @stored_indices(%i: !tile.ptr<i32>, %p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %is = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %ip = tile.addptr %is, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %first = tile.load %ip : tensor<64x!tile.ptr<i32>>
    %ifp = tile.addptr %is, %first : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %index = tile.load %ifp : tensor<64x!tile.ptr<i32>>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %pp = tile.addptr %ps, %index : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<i32>>
    %iip = tile.addptr %is, %index : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %y = tile.load %iip : tensor<64x!tile.ptr<i32>>
    %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %qp = tile.addptr %qs, %x : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    tile.store %qp, %y : tensor<64x!tile.ptr<i32>>
    strips.yield
  }
  tile.return
}

// -----

// What reaches further than all addresses is cut off there, and does not wrap to a short range.

// CHECK-LABEL: @far_apart
// CHECK-SAME:    %[[P:.*]]: !tile.ptr<f32>, %[[Q:.*]]: !tile.ptr<f32>, %[[N:.*]]: i64)
// CHECK-DAG:     %[[FAR:.*]] = arith.constant 288230376151711748 : i64
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 1143771333935364 : i64
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant -1143771333935364 : i64
// CHECK:         %[[BELOW:.*]] = arith.minsi %[[N]], %[[MOST]]
// CHECK:         %[[STRIDE:.*]] = arith.maxsi %[[BELOW]], %[[LEAST]]
// CHECK:         arith.muli %[[STRIDE]], %c252
// CHECK:         %[[BEGIN:.*]] = tile.ptr_to_int %[[Q]]
// CHECK:         arith.addi %[[BEGIN]], %[[FAR]]
tile.func @far_apart(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i64) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %w = arith.extsi %r : tensor<64xi32> to tensor<64xi64>
    %first = arith.constant dense<1> : tensor<64xi32>
    %mask = arith.cmpi slt, %r, %first : tensor<64xi32>
    %ns = tile.splat %n : i64 -> tensor<64xi64>
    %po = arith.muli %w, %ns : tensor<64xi64>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %po : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %x = tile.load %pp, %mask : tensor<64x!tile.ptr<f32>>
    %far = arith.constant dense<2305843009213693952> : tensor<64xi64>
    %qo = arith.muli %w, %far : tensor<64xi64>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %qo : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    tile.store %qp, %x, %mask : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Other elements of the array need no check; with one in common addresses are compared.

// CHECK-LABEL: @elements_behind
// CHECK-NOT:     scf.if
// CHECK:         tile.load
// CHECK-NEXT:    tile.store
// CHECK:         tile.return
tile.func @elements_behind(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %n = arith.constant dense<64> : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %qp = tile.addptr %pp, %n : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    tile.store %qp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// CHECK-LABEL: @elements_overlapping
// CHECK:         arith.cmpi sle
// CHECK:         scf.if
tile.func @elements_overlapping(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  strips.group [64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %n = arith.constant dense<63> : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %qp = tile.addptr %pp, %n : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    tile.store %qp, %x : tensor<64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}
