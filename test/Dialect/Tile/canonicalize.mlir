// RUN: tessera-opt --canonicalize --split-input-file %s | FileCheck %s

// A splat under any shape is a splat, and a constant one a constant.
// CHECK-LABEL: tile.func private @splats(
// CHECK-SAME: %[[X:.+]]: f32
tile.func private @splats(%x: f32) -> (tensor<64x32xf32>, tensor<8x8xf32>, tensor<1x64xf32>, tensor<16x8xi32>) {
  // CHECK-DAG: %[[A:.+]] = tile.splat %[[X]] : f32 -> tensor<64x32xf32>
  // CHECK-DAG: %[[B:.+]] = tile.splat %[[X]] : f32 -> tensor<8x8xf32>
  // CHECK-DAG: %[[C:.+]] = tile.splat %[[X]] : f32 -> tensor<1x64xf32>
  // CHECK-DAG: %[[D:.+]] = arith.constant dense<7> : tensor<16x8xi32>
  // CHECK: tile.return %[[A]], %[[B]], %[[C]], %[[D]]
  %s = tile.splat %x : f32 -> tensor<64xf32>
  %e = tile.expand_dims %s {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %b = tile.broadcast %e : tensor<64x1xf32> -> tensor<64x32xf32>
  %r = tile.reshape %s : tensor<64xf32> -> tensor<8x8xf32>
  %t = tile.trans %e {order = array<i32: 1, 0>} : tensor<64x1xf32> -> tensor<1x64xf32>
  %c7 = arith.constant 7 : i32
  %k = tile.splat %c7 : i32 -> tensor<8x1xi32>
  %kb = tile.broadcast %k : tensor<8x1xi32> -> tensor<8x16xi32>
  %kt = tile.trans %kb {order = array<i32: 1, 0>} : tensor<8x16xi32> -> tensor<16x8xi32>
  tile.return %b, %r, %t, %kt : tensor<64x32xf32>, tensor<8x8xf32>, tensor<1x64xf32>, tensor<16x8xi32>
}

// Shape ops that undo each other, or do nothing.
// CHECK-LABEL: tile.func private @shapes(
// CHECK-SAME: %[[X:.+]]: tensor<4x8xf32>, %[[Y:.+]]: tensor<2x4x8xf32>, %[[R:.+]]: tensor<8x1x1xf32>
tile.func private @shapes(%x: tensor<4x8xf32>, %y: tensor<2x4x8xf32>, %r: tensor<8x1x1xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8x2xf32>, tensor<8x4x2xf32>) {
  // CHECK-DAG: %[[T:.+]] = tile.trans %[[Y]] {order = array<i32: 1, 2, 0>}
  // CHECK-DAG: %[[B:.+]] = tile.broadcast %[[R]] : tensor<8x1x1xf32> -> tensor<8x4x2xf32>
  // CHECK: tile.return %[[X]], %[[X]], %[[X]], %[[T]], %[[B]]
  %a = tile.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = tile.reshape %a : tensor<32xf32> -> tensor<4x8xf32>
  %c = tile.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %d = tile.trans %c {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  %e = tile.broadcast %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %f = tile.trans %y {order = array<i32: 1, 0, 2>} : tensor<2x4x8xf32> -> tensor<4x2x8xf32>
  %g = tile.trans %f {order = array<i32: 0, 2, 1>} : tensor<4x2x8xf32> -> tensor<4x8x2xf32>
  %h = tile.broadcast %r : tensor<8x1x1xf32> -> tensor<8x4x1xf32>
  %i = tile.broadcast %h : tensor<8x4x1xf32> -> tensor<8x4x2xf32>
  tile.return %b, %d, %e, %g, %i : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8x2xf32>, tensor<8x4x2xf32>
}

// Repeating comes after making dimensions.
// CHECK-LABEL: tile.func private @expand_of_broadcast(
tile.func private @expand_of_broadcast(%x: tensor<4x1xf32>) -> tensor<4x1x8xf32> {
  // CHECK: %[[E:.+]] = tile.expand_dims %{{.+}} {axis = 1 : i32} : tensor<4x1xf32> -> tensor<4x1x1xf32>
  // CHECK: tile.broadcast %[[E]] : tensor<4x1x1xf32> -> tensor<4x1x8xf32>
  %b = tile.broadcast %x : tensor<4x1xf32> -> tensor<4x8xf32>
  %e = tile.expand_dims %b {axis = 1 : i32} : tensor<4x8xf32> -> tensor<4x1x8xf32>
  tile.return %e : tensor<4x1x8xf32>
}

// CHECK-LABEL: tile.func private @range(
tile.func private @range() -> (tensor<1xi32>, tensor<1xi32>) {
  // CHECK-DAG: %[[A:.+]] = arith.constant dense<5> : tensor<1xi32>
  // CHECK-DAG: %[[B:.+]] = arith.constant dense<-3> : tensor<1xi32>
  // CHECK: tile.return %[[A]], %[[B]]
  %a = tile.range 5 to 6 : tensor<1xi32>
  %b = tile.range -3 to -2 : tensor<1xi32>
  tile.return %a, %b : tensor<1xi32>, tensor<1xi32>
}

// CHECK-LABEL: tile.func private @bitcasts(
// CHECK-SAME: %[[X:.+]]: tensor<64xf32>
tile.func private @bitcasts(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  // CHECK: tile.return %[[X]], %[[X]]
  %a = tile.bitcast %x : tensor<64xf32> -> tensor<64xi32>
  %b = tile.bitcast %a : tensor<64xi32> -> tensor<64xf32>
  %c = tile.bitcast %x : tensor<64xf32> -> tensor<64xf32>
  tile.return %b, %c : tensor<64xf32>, tensor<64xf32>
}

// -----

// Masks that are constants, and an other that says what is true anyway.
// CHECK-LABEL: tile.func private @loads(
// CHECK-SAME: %[[P:.+]]: tensor<64x!tile.ptr<f32>>, %[[M:.+]]: tensor<64xi1>, %[[O:.+]]: tensor<64xf32>
tile.func private @loads(%p: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %o: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %true = arith.constant dense<true> : tensor<64xi1>
  %false = arith.constant dense<false> : tensor<64xi1>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %minus = arith.constant dense<-0.0> : tensor<64xf32>
  // CHECK-DAG: %[[MINUS:.+]] = arith.constant dense<-0.000000e+00>
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant dense<0.000000e+00>
  // CHECK: %[[A:.+]] = tile.load %[[P]] : tensor
  %a = tile.load %p, %true, %o : tensor<64x!tile.ptr<f32>>
  %b = tile.load %p, %false, %o : tensor<64x!tile.ptr<f32>>
  %c = tile.load %p, %false : tensor<64x!tile.ptr<f32>>
  // CHECK: %[[D:.+]] = tile.load %[[P]], %[[M]] : tensor
  %d = tile.load %p, %m, %zero : tensor<64x!tile.ptr<f32>>
  // CHECK: %[[E:.+]] = tile.load %[[P]], %[[M]], %[[MINUS]] : tensor
  %e = tile.load %p, %m, %minus : tensor<64x!tile.ptr<f32>>
  // CHECK: tile.return %[[A]], %[[O]], %[[ZERO]], %[[D]], %[[E]]
  tile.return %a, %b, %c, %d, %e : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// A volatile load is neither dropped nor shared, whatever its mask.
// CHECK-LABEL: tile.func private @volatile_loads(
tile.func private @volatile_loads(%p: !tile.ptr<i32>) {
  // CHECK-COUNT-2: tile.load %{{.+}} {isVolatile}
  %a = tile.load %p {isVolatile} : !tile.ptr<i32>
  %b = tile.load %p {isVolatile} : !tile.ptr<i32>
  tile.return
}

// CHECK-LABEL: tile.func private @stores(
// CHECK-SAME: %[[P:.+]]: tensor<64x!tile.ptr<f32>>, %[[X:.+]]: tensor<64xf32>
tile.func private @stores(%p: tensor<64x!tile.ptr<f32>>, %x: tensor<64xf32>) {
  %true = arith.constant dense<true> : tensor<64xi1>
  %false = arith.constant dense<false> : tensor<64xi1>
  // CHECK-NEXT: tile.store %[[P]], %[[X]] : tensor
  // CHECK-NEXT: tile.return
  tile.store %p, %x, %true : tensor<64x!tile.ptr<f32>>
  tile.store %p, %x, %false : tensor<64x!tile.ptr<f32>>
  tile.return
}

// An unused load goes, an unused atomic or foreign call does not.
// CHECK-LABEL: tile.func private @dead(
tile.func private @dead(%p: !tile.ptr<i32>, %x: i32) {
  // CHECK-NEXT: tile.atomic_rmw
  // CHECK-NEXT: tile.extern_elementwise "f" %{{.+}} : (i32) -> i32
  // CHECK-NEXT: tile.return
  %a = tile.load %p : !tile.ptr<i32>
  %b = tile.atomic_rmw add, relaxed, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
  %c = tile.extern_elementwise "f" %x : (i32) -> i32
  %d = tile.extern_elementwise "f" %x {pure} : (i32) -> i32
  tile.return
}

// -----

// Bounds that are further apart than their type counts: the iterations are counted.
// CHECK-LABEL: tile.func @long_loop(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<i32>
tile.func @long_loop(%p: !tile.ptr<i32>, %x: i32) {
  %first = arith.constant -2147483648 : i32
  %end = arith.constant 2147483647 : i32
  %step = arith.constant 1000000000 : i32
  // CHECK: %[[R:.+]] = scf.for %[[K:.+]] = %c0_i64 to %c5_i64 step %c1_i64 iter_args(%[[S:.+]] = %
  // CHECK:   %[[NUMBER:.+]] = arith.trunci %[[K]] : i64 to i32
  // CHECK:   %[[MOVED:.+]] = arith.muli %[[NUMBER]], %c1000000000_i32
  // CHECK:   %[[I:.+]] = arith.addi %[[MOVED]], %c-2147483648_i32
  // CHECK:   arith.addi %[[S]], %[[I]]
  // CHECK: } {tile.num_stages = 3 : i32}
  // CHECK: tile.store %[[P]], %[[R]]
  %r = scf.for %i = %first to %end step %step iter_args(%s = %x) -> i32 : i32 {
    %t = arith.addi %s, %i : i32
    scf.yield %t : i32
  } {tile.num_stages = 3 : i32}
  tile.store %p, %r : !tile.ptr<i32>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @empty_long_loop(
tile.func @empty_long_loop(%p: !tile.ptr<i32>) {
  %first = arith.constant 2147483647 : i32
  %end = arith.constant -2147483648 : i32
  %step = arith.constant 1 : i32
  // CHECK-NEXT: tile.return
  scf.for %i = %first to %end step %step : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  }
  tile.return
}

// A lookup at a constant index is that item, and behind the end the last one. One of equal items is
// that item.
// CHECK-LABEL: tile.func private @lookups(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[Q:.+]]: !tile.ptr<f32>, %[[I:.+]]: i32
tile.func private @lookups(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %i: i32)
    -> (!tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>) {
  // CHECK: %[[KEPT:.+]] = tile.lookup %[[I]], [%[[P]], %[[Q]]]
  // CHECK: tile.return %[[Q]], %[[Q]], %[[Q]], %[[P]], %[[KEPT]]
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %minus = arith.constant -1 : i64
  %0 = tile.lookup %c1, [%p, %q] : i32, !tile.ptr<f32>
  %1 = tile.lookup %c2, [%p, %q] : i32, !tile.ptr<f32>
  %2 = tile.lookup %minus, [%p, %q] : i64, !tile.ptr<f32>
  %3 = tile.lookup %i, [%p, %p] : i32, !tile.ptr<f32>
  %4 = tile.lookup %i, [%p, %q] : i32, !tile.ptr<f32>
  tile.return %0, %1, %2, %3, %4 : !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>
}
