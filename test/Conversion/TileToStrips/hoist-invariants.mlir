// RUN: tessera-opt %s --strips-hoist-invariants | FileCheck %s
// RUN: tessera-opt %s --strips-hoist-invariants=limit=3 | FileCheck %s --check-prefix=LONG

// What is the same at each iteration leaves a loop, unless the loop is so long that too much would.

// CHECK-LABEL: func.func @double(
// CHECK: arith.muli
// CHECK: scf.for
// LONG-LABEL: func.func @double(
// LONG: scf.for
// LONG: arith.muli
func.func @double(%m: memref<8xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %twice = arith.muli %n, %n : index
    %x = arith.addi %twice, %i : index
    memref.store %x, %m[%i] : memref<8xindex>
  }
  return
}
