// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipeline from tile IR to the CPU, on one page.
//
// Tiles never become vectors of a tile's size: LLVM would take seconds and spill most of the
// values. They become loops over strips, vectors as wide as the machine's, and as many tiles as
// possible share a loop.

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

/// Regions need no simplification here: each has one block, and dead code is removed anyway.
static std::unique_ptr<Pass> createCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

void tessera::buildStripsPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  std::optional<HostMachine> machine = HostMachine::parse(options.machine);

  // CPUs have no hardware for block pointers and descriptors.
  manager.addPass(tile::createTileLowerDescriptorsPass());

  // Runs once all indices exist, and before passes choose code that depends on their limits.
  manager.addPass(
      tile::createTileLimitLaunchesPass({options.limitLaunches, /*programBounds=*/false}));

  // A tile that crosses a call would need memory on both sides.
  manager.addPass(createStripsInlineCalls());

  // Simplify the new pointers and masks like the user's own: compute on scalars where elements are
  // equal, and outside of loops.
  OpPassManager &kernels = manager.nest<tile::FuncOp>();
  kernels.addPass(createCanonicalizer());
  kernels.addPass(tile::createTileReorderBroadcastsPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(tile::createTileLoopInvariantCodeMotionPass());
  kernels.addPass(createCanonicalizer());

  // Runs once equal pointers have equal forms, and before the next pass duplicates code.
  kernels.addPass(createStripsReduceAtomics({options.deterministic, options.remarks}));

  // Programs away from the edge get code without wrapping indices. Runs once no other pass moves
  // code, since it duplicates everything behind a remainder.
  kernels.addPass(tile::createTileVersionWrapsPass());

  // The remaining promises exceed the known facts. Passes below use them only with a check.
  kernels.addPass(createStripsCheckPromises());

  // Only the user's arithmetic may be contracted, not that of the passes below. With
  // `deterministic`, results would depend on the machine's instructions.
  if (options.fpFusion && !options.deterministic)
    kernels.addPass(tile::createTileAllowContractionPass());

  // Expand scaled dots, which no CPU has an instruction for, to plain dots.
  kernels.addPass(tile::createTileDecomposeScaledDotPass());

  // Choose the operations that share a loop nest. All later steps follow the groups; none moves an
  // operation from one to another.
  kernels.addPass(createStripsGroup());

  // Tiles that outlive their group get memory. Runs before aliases are checked, since a group that
  // may not be fused accesses buffers of this kind.
  kernels.addPass(createStripsMaterialize());

  // Runs once tiles with checked promises leave their group only through memory. Then a version of
  // a group costs only its code.
  kernels.addPass(createStripsVersionPromises());

  // Strip by strip, a store precedes a later strip's load, while in the program all loads come
  // first. If that may matter, the group gets a version for overlapping addresses.
  kernels.addPass(createStripsCheckAliases());

  // Dots have their operands in memory now, and their own blocking.
  kernels.addPass(createStripsLowerDot({options.machine, options.remarks, options.deterministic}));

  // Most tiles are within all bounds. Runs once dots have found what writes their operands.
  kernels.addPass(createStripsVersionMasks());

  // The groups become loops over vectors: no tile remains.
  StripsLowerOptions strips;
  strips.machineName = options.machine;
  strips.remarks = options.remarks;
  strips.deterministic = options.deterministic;
  kernels.addPass(createStripsLower(strips));

  // One call runs many programs, so that their common values are computed once. Only here the
  // scratch memory of a kernel is known.
  manager.addPass(createStripsLowerPrograms());

  // The code before and behind that loop serves all programs of a thread.
  manager.addNestedPass<mlir::func::FuncOp>(createStripsLowerPrivateCopies({options.machine}));

  // Hoist invariants before the expansions below make many operations of one.
  manager.addPass(createStripsHoistInvariants());
  manager.addPass(createCSEPass());

  // Runs now that loads of one condition share a conditional.
  manager.addPass(createStripsSplitLoops());

  // Many later passes of MLIR and LLVM take time quadratic in a function's size.
  manager.addPass(createStripsOutlineParts());

  // Expand arithmetic that is defined for every input, then floats that the machine cannot compute
  // with, then functions, which only need the two remaining wide types.
  manager.addPass(createStripsExpandTotalArith());
  // AVX512-BF16 has both, dot products and conversions.
  bool hasBF16 =
      machine && machine->arch == "x86" && (machine->bf16Dot || machine->hasBF16Conversion);
  manager.addPass(createStripsLegalizeFloats({machine && machine->hasF16Conversion, hasBF16}));
  bool hasScale = machine && machine->features.contains("+avx512vl");
  // Not of a GPU: the width of AVX-512, whose instruction looks up a whole vector.
  bool hasTables = hasScale && machine->vectorBits == 512;
  // Every CPU with AVX2 has fused multiply-adds, and every AArch64.
  bool hasFMA = machine && !machine->features.empty();
  manager.addPass(createStripsExpandMath({options.deterministic, hasScale, hasTables, hasFMA}));
  // From here on, LLVM merges equal code, which it does in any case.
  manager.addPass(createCanonicalizer());
}

void tessera::buildLLVMPipeline(OpPassManager &manager, const HostPipelineOptions &options) {
  // A loop's variable must not wrap. Runs last, since passes on loops handle `scf.for` best.
  manager.addPass(tile::createTileEndLoopsPass());
  manager.addPass(createSCFToControlFlowPass());
  // Convert all dialects at once. Only vector operations with a counterpart in LLVM are in use: the
  // pass for all others is the slowest of MLIR's conversions.
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  // Emit the locations. In full, since a function with only lines has no name in debuggers.
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
