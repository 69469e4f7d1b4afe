// RUN: tessera-opt --tile-unroll-loops --canonicalize --split-input-file %s | FileCheck %s

// A trip count that divides: one loop.
// CHECK-LABEL: tile.func @even(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<i32>
tile.func @even(%p: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  // CHECK-DAG: %[[C0:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C1:.+]] = arith.constant 1 : i32
  // CHECK-DAG: %[[C2:.+]] = arith.constant 2 : i32
  // CHECK-DAG: %[[C8:.+]] = arith.constant 8 : i32
  // CHECK: scf.for %[[I:.+]] = %[[C0]] to %[[C8]] step %[[C2]] : i32
  // CHECK:   tile.store %[[P]], %[[I]]
  // CHECK:   %[[J:.+]] = arith.addi %[[I]], %[[C1]] overflow<nsw>
  // CHECK:   tile.store %[[P]], %[[J]]
  // CHECK: }
  // CHECK-NOT: tile.loop_unroll_factor
  // CHECK-NOT: scf.for
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 2 : i32}
  tile.return
}

// -----

// A rest runs one by one; carried values go through both loops. Other hints stay.
// CHECK-LABEL: tile.func private @odd(
// CHECK-SAME: %[[X:.+]]: f32, %[[Y:.+]]: f32
tile.func private @odd(%x: f32, %y: f32) -> f32 {
  %c3 = arith.constant 3 : i32
  %c2 = arith.constant 2 : i32
  %c14 = arith.constant 14 : i32
  // Iterations at 3, 5, 7, 9, 11, 13; groups of four.
  // CHECK: %[[A0:.+]] = arith.addf %[[X]], %[[Y]]
  // CHECK: %[[A1:.+]] = arith.addf %[[A0]], %[[Y]]
  // CHECK: %[[A2:.+]] = arith.addf %[[A1]], %[[Y]]
  // CHECK: %[[A3:.+]] = arith.addf %[[A2]], %[[Y]]
  // CHECK: %[[R:.+]] = scf.for %{{.+}} = %c11_i32 to %c14_i32 step %c2_i32 iter_args(%[[S:.+]] = %[[A3]])
  // CHECK: tile.num_stages = 3
  // CHECK: tile.return %[[R]]
  %r = scf.for %i = %c3 to %c14 step %c2 iter_args(%s = %x) -> f32 : i32 {
    %t = arith.addf %s, %y : f32
    scf.yield %t : f32
  } {tile.loop_unroll_factor = 4 : i32, tile.num_stages = 3 : i32}
  tile.return %r : f32
}

// -----

// Any bounds: the number of iterations is computed without leaving [lower, upper].
// CHECK-LABEL: tile.func @dynamic(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<i32>, %[[LB:.+]]: i32, %[[UB:.+]]: i32
tile.func @dynamic(%p: !tile.ptr<i32>, %lb: i32, %ub: i32) {
  %c1 = arith.constant 1 : i32
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[LB]], %[[UB]]
  // CHECK: %[[D:.+]] = arith.subi %[[UB]], %[[LB]]
  // CHECK: %[[TRIPS:.+]] = arith.select %[[RUNS]], %{{.+}}, %{{.+}}
  // CHECK: %[[REST:.+]] = tile.rem_int unsigned %[[TRIPS]], %c4_i32
  // CHECK: %[[COVERED:.+]] = arith.subi %[[TRIPS]], %[[REST]]
  // CHECK: %[[HAS:.+]] = arith.cmpi ne, %[[REST]], %c0_i32
  // CHECK: %[[MIDDLE:.+]] = arith.addi %[[LB]], %[[COVERED]]
  // CHECK: %[[SPLIT:.+]] = arith.select %[[HAS]], %[[MIDDLE]], %[[UB]]
  // CHECK: %[[END:.+]] = arith.select %[[RUNS]], %[[SPLIT]], %[[LB]]
  // CHECK: scf.for %{{.+}} = %[[LB]] to %[[END]] step %c4_i32
  // CHECK-COUNT-4: tile.store
  // CHECK: scf.for %{{.+}} = %[[END]] to %[[UB]] step %c1_i32
  // CHECK-COUNT-1: tile.store
  scf.for %i = %lb to %ub step %c1 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 4 : i32}
  tile.return
}

// -----

// Nested loops, each by its own factor.
// CHECK-LABEL: tile.func @nest(
tile.func @nest(%p: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK-COUNT-2: tile.store
  // CHECK: scf.for
  // CHECK-COUNT-2: tile.store
  // CHECK-NOT: tile.store
  // CHECK: tile.return
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    scf.for %j = %c0 to %c8 step %c1 : i32 {
      tile.store %p, %j : !tile.ptr<i32>
    } {tile.loop_unroll_factor = 2 : i32}
  } {tile.loop_unroll_factor = 2 : i32}
  tile.return
}

// -----

// CHECK-LABEL: tile.func @nothing_asked(
tile.func @nothing_asked(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: tile.loop_unroll_factor
  // CHECK-NOT: scf.for
  // CHECK: tile.return
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 0 : i32}
  tile.return
}

// -----

// The step of two iterations is no i32: all four iterations run one by one. (Their bounds are
// further apart than an i32 counts, so they are counted in 64 bits.)
// CHECK-LABEL: tile.func @long_steps(
tile.func @long_steps(%p: !tile.ptr<i32>) {
  %first = arith.constant -2147483648 : i32
  %end = arith.constant 2147483647 : i32
  %step = arith.constant 1073741824 : i32
  // CHECK: scf.for %{{.+}} = %c0_i64 to %c4_i64 step %c1_i64
  // CHECK-COUNT-1: tile.store
  // CHECK-NOT: tile.store
  scf.for %i = %first to %end step %step : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 2 : i32}
  tile.return
}
