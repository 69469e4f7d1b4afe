// RUN: tessera-opt %s --split-input-file --tile-count-while-loops | FileCheck %s

// CHECK-LABEL: tile.func private @up(
// CHECK-SAME: %[[N:arg[0-9]+]]: i32
tile.func private @up(%x: !tile.ptr<f32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[R:.+]] = scf.for %[[I:.+]] = %c0{{.*}} to %[[N]] step %c4{{.*}} iter_args(%{{.+}} = %c0{{.*}}) -> (i32)
  // CHECK:   tile.addptr %{{.+}}, %[[I]]
  // CHECK:   %[[NEXT:.+]] = arith.addi %[[I]], %c4
  // CHECK:   scf.yield %[[NEXT]]
  // CHECK: tile.return %[[R]]
  %r = scf.while (%i = %c0) : (i32) -> i32 {
    %goes = arith.cmpi slt, %i, %n : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
    tile.store %p, %zero : !tile.ptr<f32>
    %next = arith.addi %i, %c4 : i32
    scf.yield %next : i32
  }
  tile.return %r : i32
}

// -----

// From n down to above 0, with the bound on the left, and carried values in another order.
// CHECK-LABEL: tile.func private @down(
// CHECK-SAME: %[[N:arg[0-9]+]]: i32
tile.func private @down(%x: !tile.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %step = arith.constant -8 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[R:.+]]:2 = scf.for %[[J:.+]] = %c0{{.*}} to %[[N]] step %c8{{.*}} iter_args(%{{.+}} = %[[N]], %[[S:.+]] = %{{.+}}) -> (i32, f32)
  // CHECK:   %[[I:.+]] = arith.subi %[[N]], %[[J]]
  // CHECK:   tile.addptr %{{.+}}, %[[I]]
  // CHECK: tile.return %[[R]]#1
  %r:2 = scf.while (%i = %n, %s = %zero) : (i32, f32) -> (f32, i32) {
    %goes = arith.cmpi slt, %c0, %i : i32
    scf.condition(%goes) %s, %i : f32, i32
  } do {
  ^bb0(%s: f32, %i: i32):
    %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %sum = arith.addf %s, %v : f32
    %next = arith.addi %i, %step : i32
    scf.yield %next, %sum : i32, f32
  }
  tile.return %r#0 : f32
}

// -----

// Down to 0: -1 - i counts up, whatever i is.
// CHECK-LABEL: tile.func @down_to(
// CHECK-SAME: %[[N:arg[0-9]+]]: i32
tile.func @down_to(%x: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[FROM:.+]] = arith.subi %[[MINUS:.+]], %[[N]]
  // CHECK: scf.for %[[J:.+]] = %[[FROM]] to %c0{{.*}} step %c1
  // CHECK:   %[[I:.+]] = arith.subi %[[MINUS]], %[[J]]
  // CHECK:   tile.addptr %{{.+}}, %[[I]]
  %r = scf.while (%i = %n) : (i32) -> i32 {
    %goes = arith.cmpi sge, %i, %c0 : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
    tile.store %p, %zero : !tile.ptr<f32>
    %next = arith.subi %i, %c1 : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

// The bound changes; the step may be 0; n + 1 may wrap; the counter doubles.
// CHECK-LABEL: tile.func @declined(
// CHECK-COUNT-4: scf.while
// CHECK-NOT: scf.for
tile.func @declined(%x: !tile.ptr<i32>, %n: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.while (%i = %c0) : (i32) -> i32 {
    %bound = tile.load %x : !tile.ptr<i32>
    %goes = arith.cmpi slt, %i, %bound : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    tile.store %x, %i : !tile.ptr<i32>
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %b = scf.while (%i = %c0) : (i32) -> i32 {
    %goes = arith.cmpi slt, %i, %n : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    tile.store %x, %i : !tile.ptr<i32>
    %next = arith.addi %i, %step : i32
    scf.yield %next : i32
  }
  %c = scf.while (%i = %c0) : (i32) -> i32 {
    %goes = arith.cmpi sle, %i, %n : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    tile.store %x, %i : !tile.ptr<i32>
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %d = scf.while (%i = %c1) : (i32) -> i32 {
    %goes = arith.cmpi slt, %i, %n : i32
    scf.condition(%goes) %i : i32
  } do {
  ^bb0(%i: i32):
    tile.store %x, %i : !tile.ptr<i32>
    %next = arith.addi %i, %i : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

// A counter of 8 bits: 99 + 33 wraps, and the loop goes on from there; 89 + 8 does not.
// CHECK-LABEL: tile.func private @narrow(
// CHECK: scf.while
// CHECK: scf.for
tile.func private @narrow() -> (i8, i8) {
  %c0 = arith.constant 0 : i8
  %c8 = arith.constant 8 : i8
  %c33 = arith.constant 33 : i8
  %c90 = arith.constant 90 : i8
  %c100 = arith.constant 100 : i8
  %a = scf.while (%i = %c0) : (i8) -> i8 {
    %goes = arith.cmpi slt, %i, %c100 : i8
    scf.condition(%goes) %i : i8
  } do {
  ^bb0(%i: i8):
    %next = arith.addi %i, %c33 : i8
    scf.yield %next : i8
  }
  %b = scf.while (%i = %c0) : (i8) -> i8 {
    %goes = arith.cmpi slt, %i, %c90 : i8
    scf.condition(%goes) %i : i8
  } do {
  ^bb0(%i: i8):
    %next = arith.addi %i, %c8 : i8
    scf.yield %next : i8
  }
  tile.return %a, %b : i8, i8
}
