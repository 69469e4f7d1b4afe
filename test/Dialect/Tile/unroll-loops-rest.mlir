// RUN: tessera-opt %s --tile-unroll-loops=halve-rest | FileCheck %s

// Four iterations at once, then two, then one.
// CHECK-LABEL: tile.func @halved(
tile.func @halved(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for
  // CHECK-COUNT-4: tile.store
  // CHECK: scf.for
  // CHECK-COUNT-2: tile.store
  // CHECK: scf.for
  // CHECK-COUNT-1: tile.store
  // CHECK-NOT: tile.store
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 4 : i32}
  tile.return
}
