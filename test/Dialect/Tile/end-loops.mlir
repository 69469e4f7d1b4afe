// RUN: tessera-opt --tile-end-loops --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @may_wrap(
// CHECK-SAME: %[[LOWER:.+]]: i32, %[[UPPER:.+]]: i32, %[[INIT:.+]]: f32
func.func @may_wrap(%lower: i32, %upper: i32, %init: f32) -> f32 {
  %step = arith.constant 2 : i32
  // CHECK: %[[STEP:.+]] = arith.constant 2 : i32
  // CHECK: %[[LEAST:.+]] = arith.constant -2147483648 : i32
  // CHECK: %[[FIRST:.+]] = arith.constant -2147483646 : i32
  // CHECK: %[[NONE:.+]] = arith.cmpi slt, %[[UPPER]], %[[FIRST]]
  // CHECK: %[[BELOW:.+]] = arith.subi %[[UPPER]], %[[STEP]]
  // CHECK: %[[LIMIT:.+]] = arith.select %[[NONE]], %[[LEAST]], %[[BELOW]]
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[LOWER]], %[[UPPER]]
  // CHECK: %[[RESULT:.+]] = scf.if %[[RUNS]] -> (f32) {
  // CHECK:   %[[TURNS:.+]]:2 = scf.while (%[[I:.+]] = %[[LOWER]], %[[X:.+]] = %[[INIT]])
  // CHECK:     %[[Y:.+]] = arith.addf %[[X]], %[[X]]
  // CHECK:     %[[AGAIN:.+]] = arith.cmpi slt, %[[I]], %[[LIMIT]]
  // CHECK:     scf.condition(%[[AGAIN]]) %[[I]], %[[Y]]
  // CHECK:   } do {
  // CHECK:   ^bb0(%[[J:.+]]: i32, %[[Z:.+]]: f32):
  // CHECK:     %[[NEXT:.+]] = arith.addi %[[J]], %[[STEP]] overflow<nsw>
  // CHECK:     scf.yield %[[NEXT]], %[[Z]]
  // CHECK:   scf.yield %[[TURNS]]#1
  // CHECK: } else {
  // CHECK:   scf.yield %[[INIT]]
  // CHECK: return %[[RESULT]]
  %result = scf.for %i = %lower to %upper step %step iter_args(%x = %init) -> f32 : i32 {
    %y = arith.addf %x, %x : f32
    scf.yield %y : f32
  }
  return %result : f32
}

// -----

// What a loop yields may be what it was given, or its variable.
// CHECK-LABEL: func.func @yields_arguments(
// CHECK: scf.while (%[[I:.+]] = %{{.+}}, %[[X:.+]] = %{{.+}}, %[[Y:.+]] = %{{.+}})
// CHECK: %[[AGAIN:.+]] = arith.cmpi ult, %[[I]]
// CHECK: scf.condition(%[[AGAIN]]) %[[I]], %[[Y]], %[[I]]
// CHECK: arith.addi %{{.+}}, %{{.+}} overflow<nuw>
func.func @yields_arguments(%lower: i64, %upper: i64, %step: i64) -> (i64, i64) {
  %result:2 = scf.for unsigned %i = %lower to %upper step %step
      iter_args(%x = %lower, %y = %upper) -> (i64, i64) : i64 {
    scf.yield %y, %i : i64, i64
  }
  return %result#0, %result#1 : i64, i64
}

// -----

// CHECK-LABEL: func.func @cannot_wrap(
// CHECK-NOT: scf.while
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.while
func.func @cannot_wrap(%p: memref<?xi32>, %lower: i32, %upper: i32, %n: index) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %far = arith.constant 2147483646 : i32
  %four = arith.constant 4 : index
  %zero = arith.constant 0 : index
  scf.for %i = %lower to %upper step %c1 : i32 {
    memref.store %i, %p[%zero] : memref<?xi32>
  }
  scf.for %i = %lower to %far step %c2 : i32 {
    memref.store %i, %p[%zero] : memref<?xi32>
  }
  scf.for %i = %zero to %n step %four {
    memref.store %c1, %p[%i] : memref<?xi32>
  }
  return
}

// -----

// The value after 2147483646 is 2147483648.
// CHECK-LABEL: func.func @constants_that_wrap(
// CHECK: scf.while
func.func @constants_that_wrap(%p: memref<?xi32>, %lower: i32) {
  %c2 = arith.constant 2 : i32
  %far = arith.constant 2147483647 : i32
  %zero = arith.constant 0 : index
  scf.for %i = %lower to %far step %c2 : i32 {
    memref.store %i, %p[%zero] : memref<?xi32>
  }
  return
}
