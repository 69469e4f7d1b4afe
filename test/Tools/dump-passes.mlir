// The IR after each pass that changed it, numbered in order.
// RUN: rm -rf %t
// RUN: tessera-opt %s --dump-passes=%t --canonicalize --cse --tile-unroll-loops -o %t.mlir
// RUN: ls %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=FIRST --input-file=%t/dump-passes.001-canonicalize.mlir

// CHECK: dump-passes.001-canonicalize.mlir
// CHECK-NOT: cse
// CHECK-NEXT: dump-passes.003-tile-unroll-loops.mlir
// CHECK-NOT: {{.}}

// FIRST: arith.constant 5 : i32 loc(
// FIRST: tile.loop_unroll_factor

tile.func @kernel(%p: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.addi %c4, %c1 : i32
  scf.for %i = %c0 to %c4 step %c1 : i32 {
    tile.store %p, %c5 : !tile.ptr<i32>
  } {tile.loop_unroll_factor = 2 : i32}
  tile.return
}
