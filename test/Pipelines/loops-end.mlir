// REQUIRES: ptxas
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a"}' | FileCheck %s --check-prefix=PTX
// RUN: tessera-opt %s --tessera-host-pipeline | FileCheck %s --check-prefix=HOST

// On both targets the variable of a loop is compared before it is moved, with a limit of one
// step below the bound: a bound near the type's largest value ends the loop, and an iteration
// has no more instructions.

// PTX: .visible .entry count(
// PTX: max.s32 [[CLAMPED:%r[0-9]+]], %r{{[0-9]+}}, -2147483646;
// PTX: add.s32 [[LIMIT:%r[0-9]+]], [[CLAMPED]], -2;
// PTX: [[LOOP:\$L__BB0_[0-9]+]]:
// PTX: setp.lt.s32 [[AGAIN:%p[0-9]+]], %r{{[0-9]+}}, [[LIMIT]];
// PTX: @[[AGAIN]] bra [[LOOP]];

// HOST-LABEL: llvm.func @count(
// HOST: %[[LIMIT:.+]] = llvm.select
// HOST: %[[AGAIN:.+]] = llvm.icmp "slt" %{{.+}}, %[[LIMIT]]
// HOST: llvm.cond_br %[[AGAIN]]
// HOST: llvm.add %{{.+}}, %{{.+}} overflow<nsw>
tile.func @count(%out: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  scf.for %i = %c0 to %n step %c2 : i32 {
    tile.store %out, %i : !tile.ptr<i32>
  }
  tile.return
}
