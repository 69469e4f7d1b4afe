// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipeline from tile IR to an NVIDIA GPU, on one page.
//
// Tiles stay whole for as long as possible. Passes on tiles choose their places, and only the last
// step lowers them to the registers of single threads.

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
#include "tessera/Machine/MMAShape.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

void tessera::buildTileGPUPipeline(OpPassManager &manager, const GPUPipelineOptions &options) {
  // Block pointers and descriptors become pointers and masks. No pass here uses the hardware that
  // they describe, but its requirements on arrays hold.
  manager.addPass(tile::createTileLowerDescriptorsPass({/*aligned=*/true}));

  // Do short iterations with dots in pairs. Runs before limits are chosen, since it changes
  // indices. A schedule that takes too many registers is replaced by one without producer warps,
  // and then by one without pairs and copies by TMA.
  const GPUMachine *machine = GPUMachine::find(options.arch);
  if (machine && hasAsyncDots(*machine) && options.tensorMaps && options.limitLaunches &&
      options.specialize && !options.deterministic)
    manager.addNestedPass<tile::FuncOp>(tile::createTilePairIterationsPass());

  // Runs once all indices exist, and before passes choose code that depends on their limits.
  manager.addPass(
      tile::createTileLimitLaunchesPass({options.limitLaunches, /*programBounds=*/true}));

  // Simplify the new index arithmetic like the user's own.
  OpPassManager &kernels = manager.nest<tile::FuncOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(tile::createTileReorderBroadcastsPass());
  kernels.addPass(createCSEPass());
  // Runs once equal indices are one value, which is then recognised in the masks of stores.
  kernels.addPass(tile::createTileMaskWrapsPass());
  // Runs once masks are final. Loops without conditionals are unrolled later, so that the loads of
  // several iterations are in flight.
  kernels.addPass(tile::createTilePredicateLoadsPass());
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());
  kernels.addPass(tile::createTileVersionAddressesPass());
  kernels.addPass(createCanonicalizerPass());

  // Only the user's arithmetic may be contracted, not that of lowerings. With `deterministic`,
  // results would depend on LLVM's view of the code.
  if (options.fpFusion && !options.deterministic)
    kernels.addPass(tile::createTileAllowContractionPass());

  // Scaled dots become such of types that tensor cores take.
  // With `deterministic`, batches alone become dots of f32.
  tile::TileDecomposeScaledDotPassOptions scaled;
  scaled.forTensorCores = !options.deterministic;
  scaled.batchesAlone = options.deterministic;
  kernels.addPass(tile::createTileDecomposeScaledDotPass(scaled));
  kernels.addPass(createCSEPass());
  // Runs while each load of a loop is in the loop, and once equal values are one.
  kernels.addPass(tile::createTileMarkMaximaPass());

  // From here on every tile has an encoding, though no layout is chosen yet.
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
  // Start the longest programs first. Runs here because loops are still the user's, which shows
  // their lengths.
  manager.addPass(tilegpu::createTileGPUOrderProgramsPass());

  // Order programs with tiles of a matmul so that concurrent ones load the same tiles.
  manager.addPass(tilegpu::createTileGPUOrderTilesPass({/*assumeApart=*/options.tensorMaps}));

  // Partition programs with large dots among the blocks of a cluster, if TMA can multicast their
  // common tiles. Must run before any choice for tiles, since programs are those of a block from
  // then on. Without clusters, a launch gets the cost of two blocks. Multicasts need a producer.
  if ((options.numCTAs == 1 || options.divideTiles) && options.tensorMaps && options.specialize &&
      options.mostPrograms > 0 && !options.deterministic)
    manager.addPass(tilegpu::createTileGPUDivideProgramsPass());

  // Divide tiles that exceed the registers. Must run before any pass plans for tiles.
  manager.addPass(tilegpu::createTileGPUSliceTilesPass({/*assumeApart=*/options.tensorMaps}));

  // Map dots to tensor cores, with operands where the instructions read them. Tensor cores sum in
  // an order of their own, so `deterministic` forbids them.
  if (!options.deterministic)
    manager.addPass(tilegpu::createTileGPUAccelerateMatmulPass());

  // Otherwise split K across the cluster. Must run before copies are scheduled. If that is not
  // possible, blocks share tiles. A launch of few programs gets the cost of splitting.
  if (!options.deterministic && (options.numCTAs == 1 || options.divideSums))
    manager.addPass(tilegpu::createTileGPUSplitKPass());

  // A refused schedule is replaced by a simpler one, instead of ending the compilation.
  tilegpu::TileGPUExpandSchedulePassOptions expanding;
  expanding.dropRefused = !options.strictSchedules;

  // If TMA can copy the operands of dots, one thread issues the copies. It is one of a producer
  // warp, or one of the program if threads compute longer than tensor cores multiply. In a cluster,
  // this is for blocks that partition a program or split a sum.
  if (options.tensorMaps) {
    if (options.specialize) {
      tilegpu::TileGPUWarpSpecializePassOptions specializing;
      specializing.numStages = options.numStages;
      specializing.strict = options.strictSchedules;
      specializing.refused = options.refusedPlans;
      specializing.skew = options.skew;
      specializing.mostPrograms = options.mostPrograms;
      specializing.hold = options.hold;
      manager.addPass(tilegpu::createTileGPUWarpSpecializePass(specializing));
      manager.addPass(tilegpu::createTileGPUExpandSchedulePass(expanding));
    }
    // TMA also stores results, except those of tiles that blocks share.
    manager.addPass(tilegpu::createTileGPUStoreByTensorMapPass());
  }

  // Schedule cp.async for other loads. Must run before layouts are chosen, since it changes the
  // loads and so the costs of layouts.
  tilegpu::TileGPUPipelinePassOptions pipelining;
  pipelining.numStages = options.numStages;
  pipelining.strict = options.strictSchedules;
  pipelining.refused = options.refusedPlans;
  pipelining.skew = options.skew;
  pipelining.assumeApart = options.tensorMaps;
  manager.addPass(tilegpu::createTileGPUPipelinePass(pipelining));
  manager.addPass(tilegpu::createTileGPUExpandSchedulePass(expanding));

  // Unroll loops that stream through memory, so that more loads are in flight.
  manager.addPass(tilegpu::createTileGPUOverlapLoadsPass());
  manager.nest<tile::FuncOp>().addPass(tile::createTileUnrollLoopsPass());

  // Merge reductions, which share their barriers then.
  manager.addPass(tilegpu::createTileGPUMergeReductionsPass());

  // Each access to memory proposes its fast layouts. The choice is made for the function as a
  // whole, against the cost of conversions.
  manager.addPass(tilegpu::createTileGPUCoalescePass());
  manager.addPass(tilegpu::createTileGPUAssignLayoutsPass());
  manager.addPass(createCanonicalizerPass());
  // While tensor cores wait, loading a row is faster than exchanging it.
  manager.addPass(tilegpu::createTileGPUReloadRowsPass());
  manager.addPass(createCSEPass());

  // Dots by multiply-adds and mma.sync prefetch slices of their operands. This is the last part of
  // the schedule, since slices follow from the layout of the accumulators. It handles single blocks
  // only.
  manager.addPass(tilegpu::createTileGPUPrefetchPass());

  // Spill invariants of loops over rows to shared memory, if registers do not suffice, and prefetch
  // the next row there, if there is room. The latter has launch conditions. Only kernels that may
  // have tensor maps have another variant for launches outside of them.
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
  // Sink conversions and loads to their uses, which shortens live ranges. Runs after CSE, which
  // would undo it.
  manager.addPass(tilegpu::createTileGPUReorderInstructionsPass());

  // If occupancy is one program per SM, prefetch the next row into L2. Runs here because occupancy
  // is known now.
  manager.addPass(tilegpu::createTileGPUPrefetchNextRowPass());
  // Keep tiles that all programs of an SM share in its cache.
  manager.addPass(tilegpu::createTileGPUStreamRowsPass());

  // Store by warpgroups, which need no common barrier then.
  manager.addPass(tilegpu::createTileGPUStoreByWarpgroupsPass());

  // Allocate shared memory once live ranges are final. Only then it is known which accesses may
  // alias, and need a barrier between them.
  manager.addPass(tilegpu::createTileGPUAllocateSharedMemoryPass());
  manager.addPass(tilegpu::createTileGPUInsertBarriersPass());

  // Barriers order threads. Writes of threads become visible to tensor cores and TMA by fences of
  // the writers, before those barriers.
  manager.addPass(tilegpu::createTileGPUInsertProxyFencesPass());
}

void tessera::buildThreadPipeline(OpPassManager &manager) {
  // Mark ops with facts about whole tiles: the width of an access, the required accuracy of a
  // function, the boxes of copies.
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

  // Only control flow on scalars remains. Variables of loops must not wrap.
  manager.addPass(tile::createTileEndLoopsPass());
  manager.addPass(createConvertControlFlowToLLVM());
  // LLVM does not merge equal inline assembly.
  manager.addPass(createCSEPass());
  // Profilers and sanitizers show the user's lines. Directives alone: PTX with more debug
  // information than that is assembled without optimising.
  LLVM::DIScopeForLLVMFuncOpPassOptions lines;
  lines.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass(lines));
}

void tessera::registerLayoutRules(DialectRegistry &registry) {
  tilegpu::registerLayoutRuleModels(registry);
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
