// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-control-flow-to-llvm: MLIR's own conversions, for modules that have need of them.

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_CONVERTCONTROLFLOWTOLLVM
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"

namespace {

OpPassManager makeConversions() {
  OpPassManager passes(ModuleOp::getOperationName());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes;
}

struct ConvertControlFlowToLLVM : impl::ConvertControlFlowToLLVMBase<ConvertControlFlowToLLVM> {
  void getDependentDialects(DialectRegistry &registry) const override {
    makeConversions().getDependentDialects(registry);
  }

  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      bool isDone = isa<ModuleOp>(op) ||
                    isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect());
      return isDone ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (!result.wasInterrupted())
      return;
    OpPassManager conversions = makeConversions();
    if (failed(runPipeline(conversions, getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace tessera
