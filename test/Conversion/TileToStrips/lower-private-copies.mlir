// RUN: tessera-opt --allow-unregistered-dialect --strips-lower-private-copies=machine=avx512 --split-input-file %s | FileCheck %s

// Neutral first, a quarter as many elements as there are lanes; added line by line behind the
// loop, four floats at once where they are aligned. A program that follows one which asked for it
// has the copy grow.
// CHECK-LABEL: func.func @add(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: i64, %[[END:[a-z0-9]+]]: i64, %[[SCRATCH:[a-z0-9]+]]: !llvm.ptr)
// CHECK-SAME:    strips.scratch_bytes = 4194496
// CHECK:   %[[BASE:.+]] = llvm.load
// CHECK:   %[[MEMORY:.+]] = llvm.getelementptr %[[SCRATCH]][128]
// CHECK:   %[[COUNT:.+]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK:   %[[FEW:.+]] = arith.minui %[[COUNT]], %c4194304_i64
// CHECK:   %[[ALL:.+]] = arith.muli %[[FEW]], %c4096_i64
// CHECK:   %[[QUARTER:.+]] = arith.divui %[[ALL]], %c4_i64
// CHECK:   %[[HELD:.+]] = arith.minui %[[QUARTER]], %c4194304_i64
// CHECK:   %[[MOST:.+]] = arith.andi %[[HELD]], %c-64_i64
// CHECK:   %[[FIRST:.+]] = arith.minui %[[MOST]], %c262144_i64
// CHECK:   scf.for %{{.+}} = %{{.+}} to %[[FIRST]] step %c64_i64 {{.*}} {
// CHECK:     llvm.store %cst{{.*}}, %{{.+}} : vector<16xf32>
// CHECK:   %[[ADDRESS:.+]] = llvm.ptrtoint %[[MEMORY]]
// CHECK:   %[[WANTED:.+]] = llvm.getelementptr %[[MEMORY]][%c4194336_i64]
// CHECK:   %[[SIZE:.+]] = llvm.getelementptr %[[MEMORY]][%c4194344_i64]
// CHECK:   llvm.store %c0_i64{{.*}}, %[[WANTED]]
// CHECK:   llvm.store %[[FIRST]], %[[SIZE]]
// CHECK:   scf.for %{{.+}} = %[[BEGIN]] to %[[END]]
// CHECK:     %[[NOW:.+]] = llvm.load %[[SIZE]]
// CHECK:     arith.cmpi ult, %[[NOW]], %[[MOST]]
// CHECK:     scf.if
// CHECK:       scf.for %{{.+}} = %[[NOW]] to %[[MOST]] step %c64_i64
// CHECK:       llvm.store %[[MOST]], %[[SIZE]]
// CHECK:     %[[BYTES:.+]] = llvm.load %[[SIZE]]
// CHECK-NOT: strips.private_copy
// CHECK:     "test.use"(%[[BYTES]], %[[ADDRESS]], %[[BYTES]], %[[ADDRESS]])
// CHECK:   %[[ALL:.+]] = llvm.load %[[SIZE]]
// CHECK:   scf.for %{{.+}} = %{{.+}} to %[[ALL]] step %c64_i64
// CHECK:     %[[SOME:.+]] = vector.reduction <or>
// CHECK:     scf.if %[[SOME]] {
// CHECK:       scf.for %{{.+}} step %c16_i64
// CHECK:         scf.if
// CHECK:           scf.if
// CHECK:             llvm.cmpxchg %{{.+}} acq_rel acquire : !llvm.ptr, i128
// CHECK:           } else {
// CHECK-COUNT-4:     llvm.atomicrmw fadd %{{.+}} acq_rel
// CHECK:   return
func.func @add(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32
    attributes {strips.scratch_bytes = 100 : i64} {
  %c1 = arith.constant 1 : i64
  %status = arith.constant 0 : i32
  %base = llvm.load %launch : !llvm.ptr -> i64
  scf.for %program = %begin to %end step %c1 : i64 {
    %bytes, %memory = strips.private_copy %base of f32 by 1024
    %bytes2, %memory2 = strips.private_copy %base of f32 by 64
    "test.use"(%bytes, %memory, %bytes2, %memory2) : (i64, i64, i64, i64) -> ()
  }
  return %status : i32
}

// -----

// A base that is not known before the loop: no private copy.
// CHECK-LABEL: func.func @changes(
// CHECK-NOT: strips.private_copy
// CHECK:     "test.use"(%[[ZERO:.+]], %[[ZERO]])
func.func @changes(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32 {
  %c1 = arith.constant 1 : i64
  %status = arith.constant 0 : i32
  scf.for %program = %begin to %end step %c1 : i64 {
    %base = llvm.load %launch : !llvm.ptr -> i64
    %bytes, %memory = strips.private_copy %base of i64 by 1024
    "test.use"(%bytes, %memory) : (i64, i64) -> ()
  }
  return %status : i32
}
