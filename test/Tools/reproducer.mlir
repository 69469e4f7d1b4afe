// A failing pass leaves the IR from before it and the pipeline that fails on it.
// RUN: rm -rf %t && mkdir %t
// RUN: not tessera-opt %s --reproducer-dir=%t \
// RUN:   --pass-pipeline='builtin.module(canonicalize,tile.func(test-fail-pass{silent=true}),cse)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOLD
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t/reproducer.test-fail-pass.reproducer.mlir
// RUN: not tessera-opt --run-reproducer %t/reproducer.test-fail-pass.reproducer.mlir -o %t/out.mlir
// RUN: ls %t | FileCheck %s --check-prefix=LEFT

// TOLD: replay with: tessera-opt --run-reproducer {{.*}}/reproducer.test-fail-pass.reproducer.mlir

// FILE: // The pass 'test-fail-pass' failed on 'reproducer'
// FILE: tile.func @fine(
// What canonicalize did is in it.
// FILE-NOT: arith.addi
// FILE: tile.func @fails()
// FILE: pipeline: "builtin.module(tile.func(test-fail-pass{silent=true}))"

// Nothing else is left behind, half-written files neither.
// LEFT: reproducer.test-fail-pass.reproducer.mlir
// LEFT-NOT: {{.}}

tile.func @fine(%p: !tile.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.addi %c1, %c1 : i32
  tile.store %p, %c2 : !tile.ptr<i32>
  tile.return
}

tile.func @fails() attributes {test.fail} {
  tile.return
}
