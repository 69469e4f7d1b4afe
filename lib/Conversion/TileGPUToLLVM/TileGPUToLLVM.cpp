// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-tilegpu-to-llvm: one dialect conversion with the patterns of every family. Earlier passes
// have marked ops with the facts that are needed before tiles become registers.

#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

#include "Exchange/ClusterWaits.h"
#include "Fragments/VerifyLayouts.h"
#include "Patterns.h"
#include "Plans/ArgumentTables.h"
#include "Plans/TensorMapMemory.h"
#include "Plans/WarpSpecialize.h"
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

/// Without rollback, each replaced tile looks for the last of its registers, for which its block is
/// renumbered. With rollback, a conversion takes a tenth longer, but not quadratic time.
constexpr size_t kMinOpsOfLongBlock = 500;

bool hasLongBlock(ModuleOp module) {
  WalkResult result = module.walk([](Block *block) {
    bool isLong = llvm::hasNItemsOrMore(*block, kMinOpsOfLongBlock);
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
    if (failed(verifyLayouts(module)))
      return signalPassFailure();
    const GPUMachine &machine = tilegpu::getMachine(module);
    std::unique_ptr<TargetHooks> hooks = createHooks(machine);
    if (failed(verifyCapabilities(module, *hooks)))
      return signalPassFailure();
    makeArgumentTables(module);
    claimTensorMapMemory(module, *hooks);
    // Not a pass of its own: ops that one thread runs would be in no partition between the two.
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
    populateLocalScalarPatterns(converter, patterns);
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
