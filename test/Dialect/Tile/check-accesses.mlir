// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.func(tile-check-accesses))' --split-input-file | FileCheck %s

// The offset of an access that cannot wrap needs no second computation.
// CHECK-LABEL: @scalar
// CHECK-SAME: (%[[X:.*]]: !tile.ptr<f32>, %[[I:.*]]: i32)
tile.func @scalar(%x: !tile.ptr<f32>, %i: i32) {
  // CHECK: %[[P:.*]] = tile.addptr %[[X]], %[[I]]
  // CHECK: %[[OK:.*]] = tile.check_access %[[P]] of %[[X]] {access = "load", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  // CHECK: tile.load %[[P]], %[[OK]]
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  // CHECK: %[[OK:.*]] = tile.check_access %[[X]] of %[[X]] {access = "store", argument = 0 : i32}
  // CHECK: tile.store %[[X]], %{{.*}}, %[[OK]]
  tile.store %x, %v : !tile.ptr<f32>
  tile.return
}

// -----

// What wraps in 32 bits is computed in 64 beside it; the mask is part of the check.
// CHECK-LABEL: @wraps


tile.func @wraps(%x: !tile.ptr<i8>, %row: i32, %ld: i32) {
  // CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
  // CHECK-DAG: arith.extsi %{{.*}} : i32 to i64
  // CHECK: arith.muli %{{.*}} : i64
  %at = arith.muli %row, %ld : i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %s = tile.splat %at : i32 -> tensor<64xi32>
  %i = arith.addi %s, %range : tensor<64xi32>
  %ptrs = tile.splat %x : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %p = tile.addptr %ptrs, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  %m = arith.cmpi slt, %i, %s : tensor<64xi32>
  // CHECK: %[[OK:.*]] = tile.check_access %[[P:.*]] of %{{.*}}, %{{.*}} exact %{{.*}} {access = "load", argument = 0 : i32}
  // CHECK: tile.load %[[P]], %[[OK]]
  %v = tile.load %p, %m : tensor<64x!tile.ptr<i8>>
  tile.return
}

// -----

// A pointer that a loop moves along is that of its argument still.
// CHECK-LABEL: @carried
tile.func @carried(%x: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%p = %x) -> (!tile.ptr<f32>) : i32 {
    // CHECK: tile.check_access %{{.*}} of %arg0 {access = "load", argument = 0 : i32}
    %v = tile.load %p : !tile.ptr<f32>
    %q = tile.addptr %p, %c1 : !tile.ptr<f32>, i32
    scf.yield %q : !tile.ptr<f32>
  }
  tile.return
}

// -----

// Of two arguments, or found in memory: unknown.
// CHECK-LABEL: @unknown
// CHECK-NOT: argument = 1
tile.func @unknown(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %a: i64, %c: i1) {
  %p = arith.select %c, %x, %y : !tile.ptr<f32>
  // CHECK: arith.select
  // CHECK-NEXT: tile.load
  %v = tile.load %p : !tile.ptr<f32>
  %q = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  // CHECK: tile.int_to_ptr
  // CHECK-NEXT: tile.store
  tile.store %q, %v : !tile.ptr<f32>
  tile.return
}

// -----

// CHECK-LABEL: @swap
tile.func @swap(%x: !tile.ptr<i32>, %v: i32) {
  // CHECK: %[[OK:.*]] = tile.check_access
  // CHECK: tile.atomic_cas acq_rel, gpu, %{{.+}}, %{{.+}}, %{{.+}}, %[[OK]] : !tile.ptr<i32>, i32, i1
  %old = tile.atomic_cas acq_rel, gpu, %x, %v, %v : !tile.ptr<i32>, i32
  tile.return
}

// -----

// One item of a list: a check for each, for the index that chooses it. An index behind the end gives
// the last item.
// CHECK-LABEL: @chosen
// CHECK-SAME: (%[[X:.*]]: !tile.ptr<f32>, %[[Y:.*]]: !tile.ptr<f32>, %[[AT:.*]]: i32, %[[C:.*]]: i1)
tile.func @chosen(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %at: i32, %c: i1) {
  // CHECK: %[[M:.*]] = tile.splat %[[C]]
  %m = tile.splat %c : i1 -> tensor<8xi1>
  // CHECK: %[[BASE:.*]] = tile.lookup
  %base = tile.lookup %at, [%x, %y] : i32, !tile.ptr<f32>
  %range = tile.range 0 to 8 : tensor<8xi32>
  %ptrs = tile.splat %base : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %p = tile.addptr %ptrs, %range : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[AT]], %{{.*}} : i32
  // CHECK: %[[FIRSTS:.*]] = tile.splat %[[FIRST]]
  // CHECK: %[[MASK:.*]] = arith.andi %[[M]], %[[FIRSTS]]
  // CHECK: %[[OK:.*]] = tile.check_access %[[P:.*]] of %[[BASE]], %[[MASK]] {access = "load", argument = 0 : i32}
  // CHECK: %[[LAST:.*]] = arith.cmpi uge, %[[AT]], %{{.*}} : i32
  // CHECK: tile.check_access %[[P]] of %[[BASE]], %{{.*}} {access = "load", argument = 1 : i32}
  // CHECK: %[[ALL:.*]] = arith.ori %[[OK]], %{{.*}}
  // CHECK: tile.load %[[P]], %[[ALL]]
  %v = tile.load %p, %m : tensor<8x!tile.ptr<f32>>
  tile.return
}

// -----

// An item that is no argument, or one of two lists: unknown.
// CHECK-LABEL: @unknown_items
// CHECK-NOT: tile.check_access
tile.func @unknown_items(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %at: i32, %c: i1) {
  %c1 = arith.constant 1 : i32
  %moved = tile.addptr %x, %c1 : !tile.ptr<f32>, i32
  %p = tile.lookup %at, [%moved, %y] : i32, !tile.ptr<f32>
  %v = tile.load %p : !tile.ptr<f32>
  %q = tile.lookup %at, [%x, %y] : i32, !tile.ptr<f32>
  %r = tile.lookup %c1, [%y, %x] : i32, !tile.ptr<f32>
  %s = arith.select %c, %q, %r : !tile.ptr<f32>
  tile.store %s, %v : !tile.ptr<f32>
  tile.return
}
