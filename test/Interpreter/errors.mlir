// RUN: not tessera-interpret %s --kernel asserts --arg i32=3 2>&1 | FileCheck %s --check-prefix=ASSERT
// RUN: tessera-interpret %s --kernel asserts --arg i32=4 | count 0
// RUN: not tessera-interpret %s --kernel asserts 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not tessera-interpret %s --kernel absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not tessera-interpret %s 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not tessera-interpret %s --kernel endless --arg i32=0 2>&1 | FileCheck %s --check-prefix=STEP

// ASSERT: errors.mlir:[[#@LINE+9]]:3: error: assertion failed in program (0, 0, 0) of kernel 'asserts': n must be 4 [E065]
// COUNT: error: kernel 'asserts' takes 1 arguments, got 0 [E051]
// ABSENT: error: the module has no kernel 'absent' [E051]
// ABSENT-NEXT: fix: its kernels: asserts, endless
// SEVERAL: the file has 2 kernels (asserts, endless); choose one with --kernel
// STEP: error: the step of a loop is 0 [E039]
tile.func @asserts(%n: i32) {
  %four = arith.constant 4 : i32
  %ok = arith.cmpi eq, %n, %four : i32
  tile.assert %ok, "n must be 4" : i1
  tile.return
}

tile.func @endless(%step: i32) {
  %zero = arith.constant 0 : i32
  %ten = arith.constant 10 : i32
  scf.for %i = %zero to %ten step %step : i32 {
  }
  tile.return
}
