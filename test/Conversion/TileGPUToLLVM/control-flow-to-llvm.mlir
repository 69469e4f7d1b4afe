// RUN: tessera-opt %s --convert-control-flow-to-llvm | FileCheck %s
// RUN: tessera-opt %s --convert-control-flow-to-llvm --mlir-timing --mlir-timing-display=list --mlir-disable-threading \
// RUN:   -o %t 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: sed -e '/^.. BEGIN/,/^.. END/d' %s | tessera-opt --convert-control-flow-to-llvm --mlir-timing \
// RUN:   --mlir-timing-display=list --mlir-disable-threading -o %t 2>&1 | FileCheck %s --check-prefix=NOT-NEEDED

// NEEDED: SCFToControlFlow
// NOT-NEEDED-NOT: SCFToControlFlow
// NOT-NEEDED: ConvertControlFlowToLLVM
// NOT-NEEDED-NOT: SCFToControlFlow

// CHECK-LABEL: llvm.func @straight
// CHECK: nvvm.barrier
// CHECK-NEXT: llvm.return
llvm.func @straight() {
  nvvm.barrier
  llvm.return
}

// BEGIN
// CHECK-LABEL: llvm.func @branch(
// CHECK-SAME: %[[HOLDS:.*]]: i1
// CHECK: llvm.cond_br %[[HOLDS]], ^[[THEN:.*]], ^[[END:.*]]
// CHECK: ^[[THEN]]:
// CHECK: nvvm.barrier
// CHECK: llvm.br ^[[END]]
llvm.func @branch(%holds: i1) {
  scf.if %holds {
    nvvm.barrier
  }
  llvm.return
}

// CHECK-LABEL: llvm.func @loop(
// CHECK: llvm.icmp "slt"
// CHECK: llvm.add
llvm.func @loop(%n: i32) {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  scf.for %i = %0 to %n step %1 : i32 {
    nvvm.barrier
  }
  llvm.return
}
// END
