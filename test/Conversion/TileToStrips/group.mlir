// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-group))' | FileCheck %s

// The maximum closes a group; the loaded tile is yielded for the next one, which
// computes the index arithmetic again.

// CHECK-LABEL: @reduce_then_use
// CHECK:         %[[FIRST:.*]]:2 = strips.group [64] -> f32, tensor<64xf32> {
// CHECK:           %[[X:.*]] = tile.load
// CHECK:           %[[MAX:.*]] = tile.reduce(%[[X]])
// CHECK:           strips.yield %[[MAX]], %[[X]]
// CHECK:         strips.group [64] {
// CHECK-DAG:       tile.range
// CHECK-DAG:       %[[T:.*]] = tile.splat %[[FIRST]]#0
// CHECK:           %[[D:.*]] = arith.subf %[[FIRST]]#1, %[[T]]
// CHECK:           tile.store %{{.*}}, %[[D]]
// CHECK-NEXT:      strips.yield
// CHECK-NOT:       strips.group
tile.func @reduce_then_use(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
  %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %m : f32 -> tensor<64xf32>
  %d = arith.subf %x, %t : tensor<64xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %qp, %d : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// What is stored and what is loaded later do not share a group.

// CHECK-LABEL: @load_after_store
// CHECK:         strips.group
// CHECK-NOT:       tile.load
// CHECK:           tile.store
// CHECK-NEXT:      strips.yield
// CHECK:         strips.group
// CHECK:           %[[X:.*]] = tile.load
// CHECK:           tile.store %{{.*}}, %[[X]]
tile.func @load_after_store(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %r : tensor<64x!tile.ptr<i32>>
  %x = tile.load %qp : tensor<64x!tile.ptr<i32>>
  tile.store %pp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// Other elements of the array, which a launch need not tell, may be loaded in any order.

// CHECK-LABEL: @load_of_other_elements
// CHECK:         strips.group
// CHECK:           %[[R:.*]] = tile.range
// CHECK-NOT:       strips.yield
// CHECK:           tile.store %{{.*}}, %[[R]]
// CHECK-NOT:       strips.yield
// CHECK:           %[[X:.*]] = tile.load
// CHECK-NOT:       strips.yield
// CHECK:           tile.store %{{.*}}, %[[X]]
// CHECK-NEXT:      strips.yield
// CHECK-NOT:     strips.group
tile.func @load_of_other_elements(%p: !tile.ptr<i32> {tile.divisibility = 16 : i64}) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64xi32>
  %qp = tile.addptr %pp, %n : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %rp = tile.addptr %qp, %n : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %r : tensor<64x!tile.ptr<i32>>
  %x = tile.load %qp : tensor<64x!tile.ptr<i32>>
  tile.store %rp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// One element in common.

// CHECK-LABEL: @load_of_an_element_stored
// CHECK:         strips.group
// CHECK-NOT:       tile.load
// CHECK:           tile.store
// CHECK-NEXT:      strips.yield
// CHECK:         strips.group
// CHECK:           tile.load
// CHECK:           tile.store
tile.func @load_of_an_element_stored(%p: !tile.ptr<i32> {tile.divisibility = 16 : i64}) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %n = arith.constant dense<63> : tensor<64xi32>
  %qp = tile.addptr %pp, %n : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %rp = tile.addptr %qp, %n : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %r : tensor<64x!tile.ptr<i32>>
  %x = tile.load %qp : tensor<64x!tile.ptr<i32>>
  tile.store %rp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// What touches no memory is not in the way.

// CHECK-LABEL: @assert_between_stores
// CHECK:         tile.assert
// CHECK:         strips.group
// CHECK:           tile.store
// CHECK:           tile.store
// CHECK-NEXT:      strips.yield
// CHECK-NOT:     strips.group
tile.func @assert_between_stores(%p: !tile.ptr<i32>, %ok: i1) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %nine = arith.constant dense<9> : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %r : tensor<64x!tile.ptr<i32>>
  tile.assert %ok, "it is" : i1
  tile.store %pp, %nine : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// A load between two stores, used after both: they do not share a group, or it had no place.

// CHECK-LABEL: @load_between_stores
// CHECK:         strips.group [64] {
// CHECK-NOT:       tile.load
// CHECK:           tile.store
// CHECK-NEXT:      strips.yield
// CHECK:         strips.group [64] {
// CHECK-DAG:       tile.store %{{.*}}, %cst
// CHECK-DAG:       %[[X:.*]] = tile.load
// CHECK:           tile.store %{{.*}}, %[[X]]
// CHECK-NEXT:      strips.yield
// CHECK-NOT:     strips.group
tile.func @load_between_stores(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %nine = arith.constant dense<9> : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %r : tensor<64x!tile.ptr<i32>>
  %x = tile.load %pp : tensor<64x!tile.ptr<i32>>
  tile.store %pp, %nine : tensor<64x!tile.ptr<i32>>
  tile.store %qp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// A load that comes before a barrier is done before it, though it is used after it.

// CHECK-LABEL: @load_before_barrier
// CHECK:         %[[X:.*]] = strips.group [64] -> tensor<64xi32> {
// CHECK:           %[[LOADED:.*]] = tile.load
// CHECK:           strips.yield %[[LOADED]]
// CHECK:         tile.barrier
// CHECK:         strips.group
// CHECK:           tile.store %{{.*}}, %[[X]]
tile.func @load_before_barrier(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %x = tile.load %qp : tensor<64x!tile.ptr<i32>>
  tile.barrier
  tile.store %pp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// A loop needs its initial tile, and a dot its operands, from groups before it.

// CHECK-LABEL: @loop
// CHECK:         %[[BEFORE:.*]]:2 = strips.group [16, 16] -> tensor<16x16xf32>, tensor<16x16xf32> {
// CHECK-DAG:       %[[ZERO:.*]] = arith.constant dense<0.0
// CHECK-DAG:       %[[A:.*]] = tile.load
// CHECK:           strips.yield %[[ZERO]], %[[A]]
// CHECK:         %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[BEFORE]]#0)
// CHECK:           %[[E:.*]] = strips.group
// CHECK:             math.exp %[[ACC]]
// CHECK:           %[[D:.*]] = tile.dot %[[BEFORE]]#1, %[[E]], %[[ACC]]
// CHECK:           scf.yield %[[D]]
// CHECK:         strips.group
// CHECK:           tile.store %{{.*}}, %[[SUM]]
tile.func @loop(%n: i32, %x: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = tile.range 0 to 256 : tensor<256xi32>
  %i = tile.reshape %r : tensor<256xi32> -> tensor<16x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32>
  %a = tile.load %xp : tensor<16x16x!tile.ptr<f32>>
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %e = math.exp %acc : tensor<16x16xf32>
    %d = tile.dot %a, %e, %acc {precision = 2 : i32, max_imprecise_acc = 0 : i32}
       : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
  %qp = tile.addptr %qs, %i : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32>
  tile.store %qp, %s : tensor<16x16x!tile.ptr<f32>>
  tile.return
}

// -----

// A scan takes its elements in order: what it scans is computed in strips before.

// CHECK-LABEL: @scan
// CHECK:         %[[E:.*]] = strips.group
// CHECK:           math.exp
// CHECK:         %[[S:.*]] = strips.group
// CHECK-NEXT:      %[[RUNNING:.*]] = tile.scan(%[[E]])
// CHECK:           strips.yield %[[RUNNING]]
// CHECK:         strips.group
// CHECK:           tile.store %{{.*}}, %[[S]]
tile.func @scan(%x: !tile.ptr<f32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %xp : tensor<64x!tile.ptr<f32>>
  %e = math.exp %v : tensor<64xf32>
  %s = tile.scan (%e) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  tile.store %xp, %s : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// A branch computes the quotient for itself; the group that yields it further down,
// because a gather reads all of it, does not stand for it there.

// CHECK-LABEL: @quotient_in_a_branch
// CHECK:         %[[LOADED:.*]] = strips.group
// CHECK:           tile.load
// CHECK:         scf.if
// CHECK-NEXT:      %[[Q:.*]] = strips.group
// CHECK:             tile.div_int unsigned %[[LOADED]]
// CHECK:           scf.yield %[[Q]]
// CHECK:         %[[SOURCE:.*]] = strips.group
// CHECK:           tile.div_int unsigned %[[LOADED]]
// CHECK:         strips.group
// CHECK:           tile.gather %[[SOURCE]]
tile.func @quotient_in_a_branch(%x: !tile.ptr<i64>, %out: !tile.ptr<i64>, %d: i64, %c: i1) {
  %r = tile.range 0 to 8 : tensor<8xi32>
  %xs = tile.splat %x : !tile.ptr<i64> -> tensor<8x!tile.ptr<i64>>
  %xp = tile.addptr %xs, %r : tensor<8x!tile.ptr<i64>>, tensor<8xi32>
  %v = tile.load %xp : tensor<8x!tile.ptr<i64>>
  %ds = tile.splat %d : i64 -> tensor<8xi64>
  %q = tile.div_int unsigned %v, %ds : tensor<8xi64>
  %g = tile.gather %q, %r {axis = 0 : i32} : tensor<8xi64>, tensor<8xi32> -> tensor<8xi64>
  %w = scf.if %c -> (tensor<8xi64>) {
    scf.yield %q : tensor<8xi64>
  } else {
    scf.yield %v : tensor<8xi64>
  }
  %os = tile.splat %out : !tile.ptr<i64> -> tensor<8x!tile.ptr<i64>>
  %op = tile.addptr %os, %r : tensor<8x!tile.ptr<i64>>, tensor<8xi32>
  tile.store %op, %g : tensor<8x!tile.ptr<i64>>
  tile.store %xp, %w : tensor<8x!tile.ptr<i64>>
  tile.return
}

// -----

// A tile that both branches need is computed in each of them.

// CHECK-LABEL: @two_regions
// CHECK:         scf.if
// CHECK:           %[[YES:.*]] = strips.group
// CHECK-NEXT:        tile.range
// CHECK:           scf.yield %[[YES]]
// CHECK:         } else {
// CHECK:           %[[NO:.*]] = strips.group
// CHECK-NEXT:        tile.range
// CHECK:           scf.yield %[[NO]]
tile.func @two_regions(%c: i1, %p: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %d = arith.addi %r, %r : tensor<64xi32>
  %x = scf.if %c -> tensor<64xi32> {
    scf.yield %d : tensor<64xi32>
  } else {
    %e = arith.muli %d, %r : tensor<64xi32>
    scf.yield %e : tensor<64xi32>
  }
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %pp, %x : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// A long computation that is one for a row is done before, for all rows at once, with others
// of that kind; a short one is done again for each row.

// CHECK-LABEL: @rows_before
// CHECK:         %[[ROWS:.*]]:2 = strips.group [16] -> tensor<16xi32>, tensor<16xi32> {
// CHECK:           tile.load
// CHECK:           strips.yield
// CHECK:         strips.group [16, 32] {
// CHECK-NOT:       tile.load
// CHECK:           tile.expand_dims %[[ROWS]]#0
// CHECK:           %[[MORE:.*]] = arith.addi %[[ROWS]]#1
// CHECK:           tile.expand_dims %[[MORE]]
// CHECK:           tile.store
tile.func @rows_before(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  %r = tile.range 0 to 16 : tensor<16xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %x = tile.load %pp : tensor<16x!tile.ptr<i32>>
  %x1 = arith.muli %x, %x : tensor<16xi32>
  %x2 = arith.xori %x1, %x : tensor<16xi32>
  %x3 = arith.muli %x2, %x1 : tensor<16xi32>
  %x4 = arith.xori %x3, %x2 : tensor<16xi32>
  %x5 = arith.muli %x4, %x3 : tensor<16xi32>
  %a = arith.xori %x5, %x4 : tensor<16xi32>
  %b = arith.muli %x5, %x4 : tensor<16xi32>
  %c = arith.addi %b, %r : tensor<16xi32>
  %a1 = tile.expand_dims %a {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %b1 = tile.expand_dims %b {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %c1 = tile.expand_dims %c {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %bc = arith.addi %b1, %c1 : tensor<16x1xi32>
  %abc = arith.addi %a1, %bc : tensor<16x1xi32>
  %all = tile.broadcast %abc : tensor<16x1xi32> -> tensor<16x32xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<16x32x!tile.ptr<i32>>
  tile.store %qs, %all : tensor<16x32x!tile.ptr<i32>>
  tile.return
}

// -----

// The load is done before the second store, and after the reduction that says where: these
// two do not share a group, though they have one shape.

// CHECK-LABEL: @load_between_reduction_and_store
// CHECK:         %[[MAX:.*]] = strips.group [8, 16] -> tensor<16xi32> {
// CHECK-NOT:       tile.store
// CHECK:         %[[X:.*]] = strips.group [16] -> tensor<16xi32> {
// CHECK:           tile.addptr %{{.*}}, %[[MAX]]
// CHECK:           tile.load
// CHECK:         strips.group [8, 16] {
// CHECK:           tile.store
// CHECK:         strips.group [16] {
// CHECK:           tile.store %{{.*}}, %[[X]]
// CHECK-NOT:     strips.group
tile.func @load_between_reduction_and_store(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %n: i32) {
  %r = tile.range 0 to 128 : tensor<128xi32>
  %i = tile.reshape %r : tensor<128xi32> -> tensor<8x16xi32>
  %m = tile.reduce (%i) {axis = 0 : i32} : (tensor<8x16xi32>) -> tensor<16xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.maxsi %a, %b : i32
    tile.reduce_return %c : i32
  }
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %m : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %x = tile.load %pp : tensor<16x!tile.ptr<i32>>
  %qs = tile.splat %p : !tile.ptr<i32> -> tensor<8x16x!tile.ptr<i32>>
  %qp = tile.addptr %qs, %i : tensor<8x16x!tile.ptr<i32>>, tensor<8x16xi32>
  %ns = tile.splat %n : i32 -> tensor<8x16xi32>
  tile.store %qp, %ns : tensor<8x16x!tile.ptr<i32>>
  %l = tile.range 0 to 16 : tensor<16xi32>
  %os = tile.splat %q : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %op = tile.addptr %os, %l : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  tile.store %op, %x : tensor<16x!tile.ptr<i32>>
  tile.return
}

// -----

// What is used at two indices is computed twice, what that is made of would be four times: it is
// computed before.

// CHECK-LABEL: @moved_sums
// CHECK:         %[[X2:.*]] = strips.group [64] -> tensor<64xi32> {
// CHECK-COUNT-2:   arith.addi %{{.*}} : tensor<64xi32>
// CHECK-NOT:       arith.addi %{{.*}} : tensor<64xi32>
// CHECK:         strips.group [64] {
// CHECK-COUNT-2:   arith.addi %{{.*}} : tensor<64xi32>
// CHECK-NOT:       arith.addi %{{.*}} : tensor<64xi32>
// CHECK:           tile.store
tile.func @moved_sums(%p: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %x0 = tile.load %pp : tensor<64x!tile.ptr<i32>>
  %a0 = tile.reshape %x0 : tensor<64xi32> -> tensor<16x4xi32>
  %b0 = tile.trans %a0 {order = array<i32: 1, 0>} : tensor<16x4xi32> -> tensor<4x16xi32>
  %c0 = tile.reshape %b0 : tensor<4x16xi32> -> tensor<64xi32>
  %x1 = arith.addi %c0, %x0 : tensor<64xi32>
  %a1 = tile.reshape %x1 : tensor<64xi32> -> tensor<16x4xi32>
  %b1 = tile.trans %a1 {order = array<i32: 1, 0>} : tensor<16x4xi32> -> tensor<4x16xi32>
  %c1 = tile.reshape %b1 : tensor<4x16xi32> -> tensor<64xi32>
  %x2 = arith.addi %c1, %x1 : tensor<64xi32>
  %a2 = tile.reshape %x2 : tensor<64xi32> -> tensor<16x4xi32>
  %b2 = tile.trans %a2 {order = array<i32: 1, 0>} : tensor<16x4xi32> -> tensor<4x16xi32>
  %c2 = tile.reshape %b2 : tensor<4x16xi32> -> tensor<64xi32>
  %x3 = arith.addi %c2, %x2 : tensor<64xi32>
  %a3 = tile.reshape %x3 : tensor<64xi32> -> tensor<16x4xi32>
  %b3 = tile.trans %a3 {order = array<i32: 1, 0>} : tensor<16x4xi32> -> tensor<4x16xi32>
  %c3 = tile.reshape %b3 : tensor<4x16xi32> -> tensor<64xi32>
  %x4 = arith.addi %c3, %x3 : tensor<64xi32>
  tile.store %pp, %x4 : tensor<64x!tile.ptr<i32>>
  tile.return
}
