// RUN: tessera-opt --strips-split-loops --canonicalize --split-input-file %s | FileCheck %s

// Rows within the bound, four an iteration and the rest, without asking; then the others, which
// ask.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[P:.+]]: !llvm.ptr, %[[FIRST:.+]]: i32, %[[N:.+]]: i32
// CHECK: %[[SOME:.+]] = arith.cmpi slt, %[[FIRST]], %[[N]]
// CHECK: %[[LEFT:.+]] = arith.subi %[[N]], %[[FIRST]]
// CHECK: %[[MOST:.+]] = arith.minui %[[LEFT]], %c16_i32
// CHECK: %[[COUNT:.+]] = arith.select %[[SOME]], %[[MOST]], %c0_i32
// CHECK: %[[END:.+]] = arith.index_cast %[[COUNT]] : i32 to index
// CHECK: %[[A:.+]] = scf.for %{{.+}} = %c0 to %[[FOURS:.+]] step %c4 iter_args(%{{.+}} = %cst)
// CHECK-NOT: scf.if
// CHECK-COUNT-4: llvm.load
// CHECK: %[[B:.+]] = scf.for %{{.+}} = %[[FOURS]] to %[[END]] step %c1 iter_args(%{{.+}} = %[[A]])
// CHECK-NOT: scf.if
// CHECK: llvm.load
// CHECK: %[[C:.+]] = scf.for %{{.+}} = %[[END]] to %c16 step %c1 iter_args(%{{.+}} = %[[B]])
// CHECK: %[[IN:.+]] = arith.cmpi slt, %{{.+}}, %[[N]]
// CHECK: scf.if %[[IN]]
// CHECK: return %[[C]]
func.func @sum(%p: !llvm.ptr, %first: i32, %n: i32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %zero) -> (f32) {
    %j = arith.index_cast %i : index to i32
    %row = arith.addi %first, %j : i32
    %in = arith.cmpi slt, %row, %n : i32
    %x = scf.if %in -> (f32) {
      %at = llvm.getelementptr %p[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %value = llvm.load %at : !llvm.ptr -> f32
      scf.yield %value : f32
    } else {
      scf.yield %zero : f32
    }
    %sum = arith.addf %t, %x : f32
    scf.yield %sum : f32
  }
  return %s : f32
}

// -----

// The bound on the left, itself included.
// CHECK-LABEL: func.func @inclusive(
// CHECK: %[[SOME:.+]] = arith.cmpi sge, %arg2, %arg1
// CHECK: %[[LEFT:.+]] = arith.subi %arg2, %arg1
// CHECK: %[[MOST:.+]] = arith.minui %[[LEFT]], %c15_i64
// CHECK: %[[MORE:.+]] = arith.addi %[[MOST]], %c1_i64
// CHECK: arith.select %[[SOME]], %[[MORE]], %c0_i64
// CHECK-NOT: scf.if
// CHECK: to %c16 step %c1
// CHECK: arith.cmpi sge, %arg2
// CHECK-NEXT: scf.if
func.func @inclusive(%p: !llvm.ptr, %first: i64, %n: i64) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1 : i32
  %s = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %one) -> (i32) {
    %j = arith.index_cast %i : index to i64
    %row = arith.addi %j, %first : i64
    %in = arith.cmpi sge, %n, %row : i64
    %x = scf.if %in -> (i32) {
      %at = llvm.getelementptr %p[%row] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %value = llvm.load %at : !llvm.ptr -> i32
      scf.yield %value : i32
    } else {
      scf.yield %one : i32
    }
    %product = arith.muli %t, %x : i32
    scf.yield %product : i32
  }
  return %s : i32
}

// -----

// Two bounds, one that the loop changes, one that has no sign, where what counts up may come
// from below zero, and one of sums that are widened after they may have wrapped: as they were.
// CHECK-LABEL: func.func @not_these(
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.for
func.func @not_these(%first: i32, %n: i32, %m: i32, %wide: i64) -> (i32, i32, i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i32
  %a = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %zero) -> (i32) {
    %j = arith.index_cast %i : index to i32
    %row = arith.addi %first, %j : i32
    %in = arith.cmpi slt, %row, %n : i32
    %in2 = arith.cmpi slt, %row, %m : i32
    %x = scf.if %in -> (i32) {
      %d = arith.divsi %t, %m : i32
      scf.yield %d : i32
    } else {
      scf.yield %t : i32
    }
    %y = scf.if %in2 -> (i32) {
      %d = arith.divsi %x, %n : i32
      scf.yield %d : i32
    } else {
      scf.yield %x : i32
    }
    scf.yield %y : i32
  }
  %b = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %n) -> (i32) {
    %j = arith.index_cast %i : index to i32
    %in = arith.cmpi slt, %j, %t : i32
    %x = scf.if %in -> (i32) {
      %d = arith.divsi %t, %m : i32
      scf.yield %d : i32
    } else {
      scf.yield %t : i32
    }
    scf.yield %x : i32
  }
  %c = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %n) -> (i32) {
    %j = arith.index_cast %i : index to i32
    %row = arith.addi %first, %j : i32
    %in = arith.cmpi ult, %row, %m : i32
    %x = scf.if %in -> (i32) {
      %d = arith.divsi %t, %m : i32
      scf.yield %d : i32
    } else {
      scf.yield %t : i32
    }
    scf.yield %x : i32
  }
  %d = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %n) -> (i32) {
    %j = arith.index_cast %i : index to i32
    %row = arith.addi %first, %j : i32
    %row64 = arith.extsi %row : i32 to i64
    %in = arith.cmpi slt, %row64, %wide : i64
    %x = scf.if %in -> (i32) {
      %q = arith.divsi %t, %m : i32
      scf.yield %q : i32
    } else {
      scf.yield %t : i32
    }
    scf.yield %x : i32
  }
  return %a, %b, %c, %d : i32, i32, i32, i32
}
