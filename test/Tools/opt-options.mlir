// The options of MLIR's driver that we rely on.
// RUN: tessera-opt %s --tessera-tile-pipeline --mlir-timing --mlir-timing-display=list -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TIMING
// RUN: tessera-opt %s --verify-roundtrip | FileCheck %s --check-prefix=ROUNDTRIP
// RUN: tessera-opt %s --canonicalize --mlir-print-ir-after-all -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PRINT
// RUN: tessera-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: tessera-opt %s --emit-bytecode | tessera-opt | FileCheck %s --check-prefix=ROUNDTRIP

// TIMING: Execution time report
// TIMING: TileReorderBroadcastsPass
// ROUNDTRIP: tile.func @kernel
// PRINT: IR Dump After Canonicalizer
// DIALECTS: tile

tile.func @kernel(%p: !tile.ptr<i32>) {
  tile.return
}
