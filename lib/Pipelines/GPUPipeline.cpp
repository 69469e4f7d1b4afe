// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way of a kernel to an NVIDIA GPU, on one page.
//
// Tiles stay whole for as long as possible: it is decided on tiles where they live, and
// only the last step makes registers of single threads of them.

#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Conversion/TileToTileGPU/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

void tessera::buildTileGPUPipeline(OpPassManager &manager, const GPUPipelineOptions &options) {
  // Block pointers and descriptors become pointers and masks: nothing here uses the
  // hardware that they describe, but what that asks of arrays holds.
  manager.addPass(tile::createTileLowerDescriptorsPass({/*aligned=*/true}));

  // What indices must not do is known once all of them are there, and before code is chosen that
  // depends on it.
  manager.addPass(
      tile::createTileLimitLaunchesPass({options.limitLaunches, /*programBounds=*/true}));

  // What that brought in is cleaned up like the user's own.
  OpPassManager &kernels = manager.nest<tile::FuncOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(tile::createTileReorderBroadcastsPass());
  kernels.addPass(createCSEPass());
  // With equal indices one value, to be found again in the masks of stores.
  kernels.addPass(tile::createTileMaskWrapsPass());
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());
  kernels.addPass(createCanonicalizerPass());

  // Only what the user wrote may be contracted, not what lowering writes. With
  // `deterministic` it would make results depend on what LLVM sees.
  if (options.fpFusion && !options.deterministic)
    kernels.addPass(tile::createTileAllowContractionPass());

  // Scaled dots become such of types that tensor cores take.
  // With `deterministic`, batches alone become dots of f32.
  tile::TileDecomposeScaledDotPassOptions scaled;
  scaled.forTensorCores = !options.deterministic;
  scaled.batchesAlone = options.deterministic;
  kernels.addPass(tile::createTileDecomposeScaledDotPass(scaled));
  kernels.addPass(createCSEPass());

  // From here on every tile has a layout, though none is chosen yet.
  ConvertTileToTileGPUOptions toGPU;
  toGPU.numWarps = options.numWarps;
  toGPU.numCTAs = options.numCTAs;
  toGPU.target = options.arch;
  toGPU.deterministic = options.deterministic;
  toGPU.flushResults = options.flushResults;
  manager.addPass(createConvertTileToTileGPU(toGPU));
  buildLayoutPipeline(manager, options);
}

void tessera::buildLayoutPipeline(OpPassManager &manager, const GPUPipelineOptions &options) {
  // The longest programs begin first; how long they are is seen while loops are the user's.
  manager.addPass(tilegpu::createTileGPUOrderProgramsPass());

  // Programs with tiles of a matmul change places, so that those beside each other load the same.
  manager.addPass(tilegpu::createTileGPUOrderTilesPass({/*assumeApart=*/options.tensorMaps}));

  // Of programs with large dots each block of a cluster does a part, by itself, if TMA can bring
  // what all of them need to all of them. From then on programs are those of a block, before
  // anything is chosen for tiles. Without clusters a launch is told what two blocks would take.
  if ((options.numCTAs == 1 || options.divideTiles) && options.tensorMaps && options.specialize &&
      !options.deterministic)
    manager.addPass(tilegpu::createTileGPUDivideProgramsPass());

  // What has no registers as a whole is done in slices, before anybody looks at tiles.
  manager.addPass(tilegpu::createTileGPUSliceTilesPass({/*assumeApart=*/options.tensorMaps}));

  // Dots on tensor cores, with operands where the instructions read them. The order of
  // their sums is their own.
  if (!options.deterministic)
    manager.addPass(tilegpu::createTileGPUAccelerateMatmulPass());

  // Else blocks of a cluster divide a sum of dots between them, each with whole tiles, which is
  // before anybody plans how these come; where they cannot, they share tiles. A launch of few
  // programs is told that they could.
  if (!options.deterministic && (options.numCTAs == 1 || options.divideSums))
    manager.addPass(tilegpu::createTileGPUSplitKPass());

  // A schedule that its verifier refuses makes way for a simpler one: that ends no compilation.
  tilegpu::TileGPUExpandSchedulePassOptions expanding;
  expanding.dropRefused = !options.strictSchedules;

  // Where TMA can bring what is multiplied, one thread orders that: of its own, or
  // where threads have more to compute than tensor cores to multiply, of the program.
  // In a cluster it does so for blocks that divide a program, or a sum.
  if (options.tensorMaps) {
    if (options.specialize) {
      tilegpu::TileGPUWarpSpecializePassOptions specializing;
      specializing.numStages = options.numStages;
      specializing.strict = options.strictSchedules;
      specializing.refused = options.refusedPlans;
      specializing.skew = options.skew;
      specializing.mostPrograms = options.mostPrograms;
      manager.addPass(tilegpu::createTileGPUWarpSpecializePass(specializing));
      manager.addPass(tilegpu::createTileGPUExpandSchedulePass(expanding));
    }
    // It also takes results to memory, but not of tiles that blocks share.
    manager.addPass(tilegpu::createTileGPUStoreByTensorMapPass());
  }

  // Which other loads are copied ahead, and how far, while tiles are whole: it changes what is
  // loaded when, and so what is worth which layout.
  tilegpu::TileGPUPipelinePassOptions pipelining;
  pipelining.numStages = options.numStages;
  pipelining.strict = options.strictSchedules;
  pipelining.refused = options.refusedPlans;
  pipelining.skew = options.skew;
  manager.addPass(tilegpu::createTileGPUPipelinePass(pipelining));
  manager.addPass(tilegpu::createTileGPUExpandSchedulePass(expanding));

  // Loops that stream through memory do several iterations at a time, so that more is in flight.
  manager.addPass(tilegpu::createTileGPUOverlapLoadsPass());
  manager.nest<tile::FuncOp>().addPass(tile::createTileUnrollLoopsPass());

  // Warps wait for each other once for several reductions.
  manager.addPass(tilegpu::createTileGPUMergeReductionsPass());

  // Each access to memory says in which layouts it would be fast; the choice is made for
  // the function as a whole, against the price of converting between layouts.
  manager.addPass(tilegpu::createTileGPUCoalescePass());
  manager.addPass(tilegpu::createTileGPUAssignLayoutsPass());
  manager.addPass(createCanonicalizerPass());
  // Where tensor cores wait, a warp had better load a row than exchange it.
  manager.addPass(tilegpu::createTileGPUReloadRowsPass());
  manager.addPass(createCSEPass());

  // Dots by multiply-adds and mma.sync read slices of their operands, ahead of multiplying them:
  // the last part of the schedule, since the layout of the sums says what a slice is.
  // It knows of one block alone.
  manager.addPass(tilegpu::createTileGPUPrefetchPass());

  // What does not change in a loop over rows waits in shared memory, if registers do not do; and
  // where there is room, so does the next row. Launches that such a loop is wrong for have another
  // variant of the kernel where there may be tensor maps.
  manager.addPass(tilegpu::createTileGPUSpillInvariantsPass());
  if (options.tensorMaps) {
    tilegpu::TileGPULoadRowsAheadPassOptions rows;
    rows.numStages = options.numStages;
    rows.strict = options.strictSchedules;
    rows.refused = options.refusedPlans;
    manager.addPass(tilegpu::createTileGPULoadRowsAheadPass(rows));
  }
  manager.addPass(tilegpu::createTileGPUExpandSchedulePass(expanding));
  buildSharedMemoryPipeline(manager);
}

void tessera::buildSharedMemoryPipeline(OpPassManager &manager) {
  // Conversions and loads move to where their results are used, so that registers are
  // held for no longer than needed. After CSE, which would undo it.
  manager.addPass(tilegpu::createTileGPUReorderInstructionsPass());

  // Who has an SM for himself asks for what comes next there: now it is known who does.
  manager.addPass(tilegpu::createTileGPUPrefetchNextRowPass());
  // And what is the same for all programs of an SM stays in its cache.
  manager.addPass(tilegpu::createTileGPUStreamRowsPass());

  // Warpgroups that store for themselves need not meet.
  manager.addPass(tilegpu::createTileGPUStoreByWarpgroupsPass());

  // Shared memory is given out when it is known what needs it for how long; and only then
  // which accesses to it may meet, and need a barrier between them.
  manager.addPass(tilegpu::createTileGPUAllocateSharedMemoryPass());
  manager.addPass(tilegpu::createTileGPUInsertBarriersPass());

  // Barriers order threads. What tensor cores and TMA see of what threads wrote is
  // up to fences of the writers, before those barriers.
  manager.addPass(tilegpu::createTileGPUInsertProxyFencesPass());
}

void tessera::buildThreadPipeline(OpPassManager &manager) {
  // What can be said of tiles alone is noted while they are whole: how much an access moves, how
  // exact a function has to be, of which boxes copies are.
  manager.addPass(createTileGPUPlanAccesses());
  manager.addPass(createTileGPUMarkNarrowResults());
  manager.addPass(createTileGPUReplaceNarrowCopies());
  manager.addPass(createTileGPUMarkBoxes());
  manager.addPass(createTileGPUDeclareSharedMemory());

  // Tiles become the registers of a thread.
  manager.addPass(createConvertTileGPUToLLVM());
}

void tessera::buildNVVMPipeline(OpPassManager &manager, const GPUPipelineOptions &options) {
  buildThreadPipeline(manager);

  // Control flow on scalars is left, of which the variables of loops must not wrap.
  manager.addPass(tile::createTileEndLoopsPass());
  manager.addPass(createConvertControlFlowToLLVM());
  // LLVM does not look for assembly that is there twice.
  manager.addPass(createCSEPass());
  // Profilers and sanitizers show the user's lines. Directives alone: PTX with more debug
  // information than that is assembled without optimising.
  LLVM::DIScopeForLLVMFuncOpPassOptions lines;
  lines.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass(lines));
}

void tessera::buildGPUPipeline(OpPassManager &manager, const GPUPipelineOptions &options) {
  buildTilePipeline(manager);
  buildTileGPUPipeline(manager, options);
  buildNVVMPipeline(manager, options);
}

void tessera::registerGPUPipeline() {
  PassPipelineRegistration<GPUPipelineOptions>(
      "tessera-gpu-pipeline", "Compiles kernels for a GPU, as far as the LLVM dialect",
      buildGPUPipeline);
  PassPipelineRegistration<>("tessera-thread-pipeline",
                             "From tiles with layouts and shared memory to the code of a thread",
                             buildThreadPipeline);
  PassPipelineRegistration<GPUPipelineOptions>(
      "tessera-tilegpu-pipeline", "Gives every tile a layout, and shared memory its places",
      buildTileGPUPipeline);
}
