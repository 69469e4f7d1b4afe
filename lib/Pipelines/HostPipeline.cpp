// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way of a kernel to the CPU, on one page.
//
// Tiles are never made into vectors of a tile's size: LLVM would take seconds over them
// and spill most of what it computes. They become loops over strips, vectors as wide as
// the machine's, and as many tiles as possible share a loop.

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

void tessera::buildStripsPipeline(OpPassManager &manager, const HostPipelineOptions &) {
  // What is hoisted out of the loops must be so before the expansions below make many
  // operations of one.
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCSEPass());

  // Arithmetic that is defined for every input, in operations that are not; then floats
  // that the machine cannot compute with; then functions, which only have to exist for
  // the two wide types that are left.
  manager.addPass(createStripsExpandTotalArith());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void tessera::buildLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createSCFToControlFlowPass());
  // Vectors apart and first: some of their operations become others before there is an
  // LLVM operation for them.
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  // LLVM folds more than this, but reading fewer operations is faster than making LLVM
  // drop them.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void tessera::buildHostPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  buildTilePipeline(manager);
  buildStripsPipeline(manager, options);
  buildLLVMPipeline(manager);
}

void tessera::registerHostPipeline() {
  PassPipelineRegistration<HostPipelineOptions>(
      "tessera-host-pipeline", "Compiles kernels for the CPU, as far as the LLVM dialect",
      buildHostPipeline);
  PassPipelineRegistration<HostPipelineOptions>(
      "tessera-strips-pipeline", "Makes tiles loops of hardware vectors", buildStripsPipeline);
  PassPipelineRegistration<>("tessera-llvm-pipeline", "Takes loops of vectors to the LLVM dialect",
                             buildLLVMPipeline);
}
