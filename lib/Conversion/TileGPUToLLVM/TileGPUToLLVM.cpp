// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-tilegpu-to-llvm: one dialect conversion with the patterns of every family. It
// needs what is known of addresses before it starts, since it takes apart what the
// access analysis looks at: see planAccesses.

#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

#include "AccessPlan.h"
#include "AsyncOps.h"
#include "ClusterWaits.h"
#include "NarrowResults.h"
#include "Patterns.h"
#include "TensorMapOps.h"
#include "WarpSpecialize.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_CONVERTTILEGPUTOLLVM
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"

namespace {

/// Every tile has a layout, for the number of warps and blocks there are.
LogicalResult checkLayouts(ModuleOp module, unsigned numWarps) {
  unsigned numBlocks = tilegpu::getNumBlocks(module);
  auto checkType = [&](Operation *op, Type type) -> LogicalResult {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      return success();
    tilegpu::LayoutAttr layout = tilegpu::getLayoutAttr(tile);
    if (!layout)
      return op->emitOpError("has the tile ") << tile << ", which has no layout";
    if (layout.getNumWarps() != numWarps)
      return op->emitOpError("has a tile over ")
             << layout.getNumWarps() << " warps in a program of " << numWarps;
    if (layout.getNumBlocks() != numBlocks)
      return op->emitOpError("has a tile over ")
             << layout.getNumBlocks() << " blocks in a cluster of " << numBlocks;
    return success();
  };
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getOperandTypes())
      if (failed(checkType(op, type)))
        return WalkResult::interrupt();
    for (Type type : op->getResultTypes())
      if (failed(checkType(op, type)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Without a way back each replaced tile asks which of its registers comes last, for which its
/// block is numbered anew: with one, a conversion takes a tenth longer, but not the square of the
/// block.
constexpr size_t kLongBlock = 500;

bool hasLongBlock(ModuleOp module) {
  WalkResult result = module.walk([](Block *block) {
    bool isLong = llvm::hasNItemsOrMore(*block, kLongBlock);
    return isLong ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Kernel parameters have no type of one bit: such an argument comes as a byte.
void widenBoolArguments(LLVM::LLVMFuncOp kernel, const TargetHooks &hooks) {
  SmallVector<Type> types(kernel.getArgumentTypes());
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  for (BlockArgument argument : kernel.getArguments()) {
    if (!argument.getType().isInteger(1))
      continue;
    ThreadBuilder thread(builder, argument.getLoc(), hooks);
    types[argument.getArgNumber()] = thread.intType(8);
    argument.setType(thread.intType(8));
    Value zero = thread.constant(thread.intType(8), 0);
    Value flag = thread.compare(LLVM::ICmpPredicate::ne, argument, zero);
    argument.replaceAllUsesExcept(flag, flag.getDefiningOp());
  }
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(kernel.getFunctionType().getReturnType(),
                                                     types, /*isVarArg=*/false));
}

struct ConvertTileGPUToLLVM : impl::ConvertTileGPUToLLVMBase<ConvertTileGPUToLLVM> {
  ConvertTileGPUToLLVM() = default;
  explicit ConvertTileGPUToLLVM(TargetHooksFactory createHooks)
      : createHooks(std::move(createHooks)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    std::optional<unsigned> numWarps = tilegpu::getNumWarps(module);
    if (!numWarps) {
      module.emitError("the module does not say how many warps a program has (")
          << tilegpu::kNumWarpsAttr << ')';
      return signalPassFailure();
    }
    if (failed(checkLayouts(module, *numWarps)))
      return signalPassFailure();
    const GPUMachine &machine = tilegpu::getMachine(module);
    std::unique_ptr<TargetHooks> hooks = createHooks(machine);
    planAccesses(module);
    markNarrowResults(module);
    replaceNarrowCopies(module);
    markBoxes(module);
    declareSharedMemory(module);
    expandWarpSpecialize(module, *hooks);

    TileGPUTypeConverter converter(context, LowerToLLVMOptions(context), machine, *hooks);
    ConversionTarget target(*context);
    RewritePatternSet patterns(context);
    target.addLegalDialect<LLVM::LLVMDialect>();
    hooks->addLegalDialects(target);
    target.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
    target.addIllegalDialect<tile::TileDialect, tilegpu::TileGPUDialect, arith::ArithDialect,
                             math::MathDialect, ub::UBDialect>();
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    populateFunctionPatterns(converter, patterns);
    populateProgramPatterns(converter, patterns);
    populateClusterPatterns(converter, patterns);
    populateCreationPatterns(converter, patterns);
    populateElementwisePatterns(converter, patterns);
    populateMathPatterns(converter, patterns);
    populateInlineAsmPatterns(converter, patterns);
    populateMemoryPatterns(converter, patterns);
    populateAsyncPatterns(converter, patterns);
    populateMBarrierPatterns(converter, patterns);
    populateTensorMapPatterns(converter, patterns);
    populateAtomicPatterns(converter, patterns);
    populateReportPatterns(converter, patterns);
    populateLayoutPatterns(converter, patterns);
    populateReductionPatterns(converter, patterns);
    populateShapePatterns(converter, patterns);
    populateMatmulPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    ConversionConfig config;
    config.allowPatternRollback = hasLongBlock(module);
    if (failed(applyPartialConversion(module, target, std::move(patterns), config)))
      return signalPassFailure();

    SmallVector<UnrealizedConversionCastOp> casts;
    module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
    reconcileUnrealizedCasts(casts);
    nameBarriers(module, *hooks);
    sinkClusterWaits(module, *hooks);
    module.walk([&](LLVM::LLVMFuncOp function) {
      if (hooks->isKernel(function))
        widenBoolArguments(function, *hooks);
    });
  }

private:
  TargetHooksFactory createHooks = createTargetHooks;
};

} // namespace

std::unique_ptr<Pass> createConvertTileGPUToLLVM(TargetHooksFactory createHooks) {
  return std::make_unique<ConvertTileGPUToLLVM>(std::move(createHooks));
}

} // namespace tessera
