// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The target-independent pipeline of tile IR, on one page.
//
// The goal is IR that shows the shape of every access: one function, scalars where elements are
// equal, pointers as a base plus strides times indices.

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

/// Region simplification merges identical blocks, but not blocks that differ in operands: a
/// barrier's number must not depend on the branch.
static std::unique_ptr<Pass> createTileCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
  return createCanonicalizerPass(config);
}

void tessera::buildTilePipeline(OpPassManager &manager) {
  // One function per kernel, except for functions marked `noinline`. Runs first, since the call
  // gives a device function's pointers their shape, and its constants their value. Unused functions
  // are removed.
  manager.addPass(createInlinerPass());
  manager.addPass(createSymbolDCEPass());

  // Propagate constants through branches and loops, then into ops. Every later pass matches
  // patterns in the folders' form.
  manager.addPass(createSCCPPass());
  manager.addPass(createTileCanonicalizer());
  manager.addPass(createCSEPass());

  OpPassManager &kernels = manager.nest<tile::FuncOp>();

  // Loops that count are `for` loops for all later passes, in whichever spelling.
  kernels.addPass(tile::createTileCountWhileLoopsPass());

  // Split flat loops over the iterations of all tiles. Runs once equal conditions are one value,
  // and before the passes that match loops and carried values.
  kernels.addPass(tile::createTileSplitFlatLoopsPass());

  // Compute index arithmetic on scalars and small shapes. Runs before combining and inductions,
  // since both match splats.
  kernels.addPass(tile::createTileReorderBroadcastsPass());

  // A loop that adds a splat to a tile of pointers carries a scalar from here on. Runs here because
  // the amount is a splat now, and the hoisting below moves the initial tile.
  kernels.addPass(tile::createTileRewriteInductionsPass());

  // Carried values that nothing needs, such as inductions replaced above. The canonicalizer then
  // removes them.
  kernels.addPass(tile::createTileRemoveDeadCarriesPass());
  kernels.addPass(createTileCanonicalizer());

  // The carried scalar moves on to the base of the pointers it was added to.
  kernels.addPass(tile::createTileReorderBroadcastsPass());

  // Combine pairs of ops. Runs once scalars have settled: a mask must be the same value in both ops
  // to be recognised.
  kernels.addPass(createCSEPass());
  kernels.addPass(tile::createTileCombinePass());

  // Hoist loop invariants. Runs after the inductions, whose initial tiles it moves, and before
  // unrolling, which would duplicate the invariants.
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());

  // Runs last, since it only makes the program longer. The copies are simplified afterwards.
  kernels.addPass(tile::createTileUnrollLoopsPass());
  kernels.addPass(createTileCanonicalizer());
  kernels.addPass(createCSEPass());
}

void tessera::buildCheckPipeline(OpPassManager &manager, bool expand) {
  // Only the kernel itself shows the argument that a pointer is computed from.
  manager.addPass(createInlinerPass());
  manager.addPass(createSymbolDCEPass());

  // The interpreter itself checks blocks of descriptors and block pointers. In compiled code, they
  // are loads and stores like others.
  if (expand)
    manager.addPass(tile::createTileLowerDescriptorsPass());

  // Runs before any simplification: wraps must be found as written.
  manager.addNestedPass<tile::FuncOp>(tile::createTileCheckAccessesPass());
  if (expand)
    manager.addNestedPass<tile::FuncOp>(tile::createTileExpandAccessChecksPass());
}

void tessera::registerTilePipeline() {
  PassPipelineRegistration<>(
      "tessera-check-pipeline", "Checks accesses against the memory behind arguments, in code",
      [](OpPassManager &manager) { buildCheckPipeline(manager, /*expand=*/true); });
  PassPipelineRegistration<>("tessera-tile-pipeline", "Cleans up tile IR for any target",
                             buildTilePipeline);
}
