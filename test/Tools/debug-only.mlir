// REQUIRES: assertions
// RUN: tessera-opt %s --tile-loop-invariant-code-motion --debug-only=tile-loop-invariant-code-motion -o /dev/null 2>&1 \
// RUN:   | FileCheck %s
// RUN: tessera-opt %s --tile-loop-invariant-code-motion --debug-only=another -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --allow-empty --check-prefix=SILENT

// CHECK: [tile-loop-invariant-code-motion {{.*}}] 1 loads stay in a loop that may write memory
// SILENT-NOT: loads

tile.func @kernel(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : !tile.ptr<i32>
    tile.store %p, %x : !tile.ptr<i32>
  }
  tile.return
}
