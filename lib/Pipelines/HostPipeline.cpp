// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way of a kernel to the CPU, on one page.
//
// Tiles are never made into vectors of a tile's size: LLVM would take seconds over them
// and spill most of what it computes. They become loops over strips, vectors as wide as
// the machine's, and as many tiles as possible share a loop.

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Machine/HostMachine.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

/// There is nothing to simplify about regions here: each has one block, and what is dead goes
/// by the way.
static std::unique_ptr<Pass> createCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

void tessera::buildStripsPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  std::optional<HostMachine> machine = HostMachine::parse(options.machine);

  // There is nothing on a CPU that a block pointer or a descriptor would map to.
  manager.addPass(tile::createTileLowerDescriptorsPass());

  // What indices must not do is known once all of them are there, and before code is chosen that
  // depends on it.
  manager.addPass(
      tile::createTileLimitLaunchesPass({options.limitLaunches, /*programBounds=*/false}));

  // A tile that crossed a call would have to be in memory on both sides.
  manager.addPass(createStripsInlineCalls());

  // The pointers and masks that the two brought in are cleaned up like the user's own:
  // work on scalars where elements are equal, and out of the loops.
  OpPassManager &kernels = manager.nest<tile::FuncOp>();
  kernels.addPass(createCanonicalizer());
  kernels.addPass(tile::createTileReorderBroadcastsPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());
  kernels.addPass(createCanonicalizer());

  // Once pointers are in the form in which it shows that they are the same, and before the
  // next pass writes what follows twice.
  kernels.addPass(createStripsReduceAtomics({options.deterministic, options.remarks}));

  // Programs away from the edge get code without wrapping indices. Once no other pass
  // moves code: it writes all that follows a remainder twice.
  kernels.addPass(tile::createTileVersionWrapsPass());

  // Promises that are left say more than what is known now. No pass below believes them unchecked.
  kernels.addPass(createStripsCheckPromises());

  // Only what the user wrote may be contracted, not what the passes below write. With
  // `deterministic` it would make results depend on whether the machine has the
  // instruction.
  if (options.fpFusion && !options.deterministic)
    kernels.addPass(tile::createTileAllowContractionPass());

  // No CPU has an instruction for them; what is left is a dot like any other.
  kernels.addPass(tile::createTileDecomposeScaledDotPass());

  // First it is settled which operations share a loop nest. All later steps follow the
  // groups; none moves an operation from one to another.
  kernels.addPass(createStripsGroup());

  // Tiles that outlive their group get memory. Before aliases are checked, since a group
  // that may not be fused reads and writes buffers of this kind.
  kernels.addPass(createStripsMaterialize());

  // Once a tile of which a promise is checked no longer leaves its group but through memory, a
  // version of a group costs nothing but its code.
  kernels.addPass(createStripsVersionPromises());

  // Strip by strip, a store comes before a later strip's load, where the program said
  // that all loads come first. A group that could tell the difference gets a version
  // for the case that the addresses overlap.
  kernels.addPass(createStripsCheckAliases());

  // Dots have their operands in memory now, and their own way of blocking.
  kernels.addPass(createStripsLowerDot({options.machine, options.remarks, options.deterministic}));

  // The groups become loops over vectors: the last tile is gone.
  StripsLowerOptions strips;
  strips.machineName = options.machine;
  strips.remarks = options.remarks;
  strips.deterministic = options.deterministic;
  kernels.addPass(createStripsLower(strips));

  // One call runs many programs, so that what they share is computed once. Only here is
  // it known how much scratch memory a kernel needs.
  manager.addPass(createStripsLowerPrograms());

  // Behind and before that loop there is a place now for what concerns all programs of a
  // thread.
  manager.addNestedPass<mlir::func::FuncOp>(createStripsLowerPrivateCopies({options.machine}));

  // What is hoisted out of the loops must be so before the expansions below make many
  // operations of one.
  manager.addPass(createStripsHoistInvariants());
  manager.addPass(createCSEPass());

  // Now one conditional holds what is loaded under one condition.
  manager.addPass(createStripsSplitLoops());

  // Much of what follows takes the square of a function's size, in MLIR as in LLVM.
  manager.addPass(createStripsOutlineParts());

  // Arithmetic that is defined for every input, in operations that are not; then floats
  // that the machine cannot compute with; then functions, which only have to exist for
  // the two wide types that are left.
  manager.addPass(createStripsExpandTotalArith());
  // AVX512-BF16 has both, dot products and conversions.
  bool hasBF16 = machine && machine->arch == "x86" && machine->bf16Dot;
  manager.addPass(createStripsLegalizeFloats({machine && machine->hasF16Conversion, hasBF16}));
  bool hasScale = machine && machine->features.contains("+avx512vl");
  // Every CPU with AVX2 has fused multiply-adds, and every AArch64.
  bool hasFMA = machine && !machine->features.empty();
  manager.addPass(createStripsExpandMath({options.deterministic, hasScale, hasFMA}));
  // What is the same twice is left to LLVM from here on, which looks for it in any case.
  manager.addPass(createCanonicalizer());
}

void tessera::buildLLVMPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  // A loop's variable must not wrap. Last, for every pass on loops knows `scf.for` better.
  manager.addPass(tile::createTileEndLoopsPass());
  manager.addPass(createSCFToControlFlowPass());
  // All dialects at once. Of the operations on vectors only those are in use that have a
  // counterpart in LLVM: the pass for all others is the slowest of MLIR's conversions.
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  // The locations are there already; this has them written out. In full, for a function that has
  // lines alone has no name in debuggers.
  if (options.lineInfo) {
    LLVM::DIScopeForLLVMFuncOpPassOptions lines;
    lines.emissionKind = LLVM::DIEmissionKind::Full;
    manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass(lines));
  }
}

void tessera::buildHostPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  buildTilePipeline(manager);
  buildStripsPipeline(manager, options);
  buildLLVMPipeline(manager, options);
}

void tessera::registerLLVMConversions(DialectRegistry &registry) {
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
}

void tessera::registerHostPipeline() {
  PassPipelineRegistration<HostPipelineOptions>(
      "tessera-host-pipeline", "Compiles kernels for the CPU, as far as the LLVM dialect",
      buildHostPipeline);
  PassPipelineRegistration<HostPipelineOptions>(
      "tessera-strips-pipeline", "Makes tiles loops of hardware vectors", buildStripsPipeline);
  PassPipelineRegistration<HostPipelineOptions>(
      "tessera-llvm-pipeline", "Takes loops of vectors to the LLVM dialect", buildLLVMPipeline);
}
