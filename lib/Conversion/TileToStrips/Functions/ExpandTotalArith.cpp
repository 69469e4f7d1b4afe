// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-expand-total-arith: the totally defined arithmetic on scalars (addresses, loop bounds,
// conditions) that remains once the tiles are strips.

#include "tessera/Conversion/TileArith/TotalArith.h"
#include "tessera/Conversion/TileToStrips/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSEXPANDTOTALARITH
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {
struct StripsExpandTotalArith : impl::StripsExpandTotalArithBase<StripsExpandTotalArith> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      bool onScalars = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
      if (!onScalars || op->getNumResults() != 1)
        return;
      OpBuilder builder(op);
      if (Value value = buildTotalArith(builder, op, op->getOperands())) {
        op->replaceAllUsesWith(ValueRange(value));
        op->erase();
      }
    });
  }
};
} // namespace
} // namespace tessera
