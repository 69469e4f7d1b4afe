// RUN: tessera-opt --tile-remove-dead-carries --canonicalize --split-input-file %s | FileCheck %s

// A value that is computed from itself, and a tile that only this one needs.

// CHECK-LABEL: tile.func @itself
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT: tile.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK: tile.store %{{.*}}, %[[R]]
tile.func @itself(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %tile = arith.constant dense<0.0> : tensor<64xf32>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %product = %zero, %a = %tile) -> (f32, f32, tensor<64xf32>) : i32 {
    %x = tile.load %p : !tile.ptr<f32>
    %next = arith.addf %sum, %x : f32
    %other = arith.mulf %product, %x : f32
    %xs = tile.splat %other : f32 -> tensor<64xf32>
    %b = arith.addf %a, %xs : tensor<64xf32>
    scf.yield %next, %other, %b : f32, f32, tensor<64xf32>
  }
  tile.store %q, %r#0 : !tile.ptr<f32>
  tile.return
}

// -----

// Two loops, of which the inner one's result is for the outer one's dead value alone; and two
// values that exchange their places, of which one is stored.

// CHECK-LABEL: tile.func @nested
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (f32, f32)
// CHECK-NOT: scf.for
// CHECK: tile.store %{{.*}}, %[[A]]
// CHECK: scf.yield %[[B]], %[[A]]
tile.func @nested(%q: !tile.ptr<f32>, %n: i32, %x: f32, %y: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %dead = %x) -> (f32, f32, f32) : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%t = %dead) -> (f32) : i32 {
      %u = arith.mulf %t, %a : f32
      scf.yield %u : f32
    }
    tile.store %q, %a : !tile.ptr<f32>
    scf.yield %b, %a, %s : f32, f32, f32
  }
  tile.return
}

// -----

// A carried value that decides: about a store within a conditional, about a loop's bound, within a
// `while` loop, within a reduction.

// CHECK-LABEL: tile.func @decides
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (i32, i32, i32)
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.while
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32
tile.func @decides(%q: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c0, %c = %c0) -> (i32, i32, i32) : i32 {
    %even = arith.cmpi eq, %a, %c1 : i32
    scf.if %even {
      tile.store %q, %i : !tile.ptr<i32>
    }
    scf.for %j = %c0 to %b step %c1 : i32 {
      tile.store %q, %j : !tile.ptr<i32>
    }
    %w = scf.while (%k = %c) : (i32) -> i32 {
      %more = arith.cmpi slt, %k, %n : i32
      scf.condition(%more) %k : i32
    } do {
    ^bb0(%k: i32):
      tile.store %q, %k : !tile.ptr<i32>
      %l = arith.addi %k, %c1 : i32
      scf.yield %l : i32
    }
    %next_a = arith.subi %c1, %a : i32
    %next_b = arith.addi %b, %c1 : i32
    %next_c = arith.addi %c, %c1 : i32
    scf.yield %next_a, %next_b, %next_c : i32, i32, i32
  }
  tile.return
}

// -----

// In a `while` loop, a `for` loop's carried value that a store needs stays, and another one goes.

// CHECK-LABEL: tile.func @within_while
// CHECK: scf.while
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (i32)
// CHECK: tile.store %{{.*}}, %[[A]]
tile.func @within_while(%q: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%a = %k, %dead = %k) -> (i32, i32) : i32 {
      tile.store %q, %a : !tile.ptr<i32>
      %next = arith.addi %a, %k : i32
      %other = arith.muli %dead, %k : i32
      scf.yield %next, %other : i32, i32
    }
    %l = arith.addi %k, %c1 : i32
    scf.yield %l : i32
  }
  tile.return
}
