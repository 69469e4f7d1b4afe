// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-inline-calls: functions of tiles go into their callers.

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSINLINECALLS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

struct StripsInlineCalls : impl::StripsInlineCallsBase<StripsInlineCalls> {
  void runOnOperation() override {
    bool found = false;
    for (tile::FuncOp func : getOperation().getOps<tile::FuncOp>()) {
      bool takesTiles = llvm::any_of(func.getArgumentTypes(), llvm::IsaPred<RankedTensorType>) ||
                        llvm::any_of(func.getResultTypes(), llvm::IsaPred<RankedTensorType>);
      if (func.isKernel() || !takesTiles)
        continue;
      func.setNoinline(false);
      found = true;
    }
    if (!found)
      return;
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createInlinerPass());
    manager.addPass(createSymbolDCEPass());
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace tessera
