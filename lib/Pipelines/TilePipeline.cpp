// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens to tile IR before any target is thought of, on one page.
//
// The goal is IR in which the shape of every access can be read off: one function, work
// on scalars where elements are equal, pointers as a base plus strides times indices.

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

/// Regions are simplified as far as identical blocks, never by merging blocks that differ
/// in operands: a barrier may not change its number with the branch taken.
static std::unique_ptr<Pass> createTileCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
  return createCanonicalizerPass(config);
}

void tessera::buildTilePipeline(OpPassManager &manager) {
  // One function a kernel, but for what the user marked `noinline`. Before anything else:
  // a device function's pointers get their shape, and its constants their value, from
  // the call. The functions that nobody calls any more go.
  manager.addPass(createInlinerPass());
  manager.addPass(createSymbolDCEPass());

  // Constants first through branches and loops, then into ops. Every later pass looks
  // for patterns in the form that the folders leave.
  manager.addPass(createSCCPPass());
  manager.addPass(createTileCanonicalizer());
  manager.addPass(createCSEPass());

  OpPassManager &kernels = manager.nest<tile::FuncOp>();

  // Index arithmetic to the scalars and small shapes that it is made of. Before
  // combining and before inductions, for both look for splats.
  kernels.addPass(tile::createTileReorderBroadcastsPass());

  // A loop that adds a splat to a tile of pointers carries a scalar from here on. Only
  // now is the amount a splat; and the hoisting below finds the initial tile.
  kernels.addPass(tile::createTileRewriteInductionsPass());
  kernels.addPass(createTileCanonicalizer());

  // The carried scalar moves on to the base of the pointers it was added to.
  kernels.addPass(tile::createTileReorderBroadcastsPass());

  // Pairs of ops that are one. After the scalars have settled: a mask must be the same
  // value in both ops to be seen as the same.
  kernels.addPass(createCSEPass());
  kernels.addPass(tile::createTileCombinePass());

  // Out of loops goes what an iteration does not change. After the inductions, whose initial
  // tiles it moves, and before unrolling, which would make many of what can be one.
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());

  // Last, since it only makes the program longer; the copies share and fold what they can.
  kernels.addPass(tile::createTileUnrollLoopsPass());
  kernels.addPass(createTileCanonicalizer());
  kernels.addPass(createCSEPass());
}

void tessera::buildCheckPipeline(OpPassManager &manager, bool expand) {
  // Only in the kernel itself it can be seen which argument a pointer is computed from.
  manager.addPass(createInlinerPass());
  manager.addPass(createSymbolDCEPass());

  // The interpreter checks blocks of descriptors and block pointers by itself. For code they
  // are loads and stores like others.
  if (expand)
    manager.addPass(tile::createTileLowerDescriptorsPass());

  // Before anything is simplified: what wraps must be found as it was written.
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
