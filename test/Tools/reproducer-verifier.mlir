// A pass after which the verifier fails is the one that failed.
// RUN: rm -rf %t && mkdir %t
// RUN: not tessera-opt %s --reproducer-dir=%t --pass-pipeline='builtin.module(tile.func(test-fail-pass))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOLD
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t/reproducer-verifier.test-fail-pass.reproducer.mlir
// RUN: not tessera-opt --run-reproducer %t/reproducer-verifier.test-fail-pass.reproducer.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AGAIN

// TOLD: 'tile.func' op is a kernel, and a kernel returns nothing
// TOLD: replay with
// FILE: tile.func private @corrupted() -> i32
// FILE: pipeline: "builtin.module(tile.func(test-fail-pass{
// AGAIN: 'tile.func' op is a kernel, and a kernel returns nothing

tile.func private @corrupted() -> i32 attributes {test.corrupt} {
  %c1 = arith.constant 1 : i32
  tile.return %c1 : i32
}
