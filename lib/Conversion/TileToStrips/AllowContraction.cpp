// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks the user's floating-point arithmetic as open to fused multiply-adds. LLVM fuses
// only what both the product and the sum allow.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {
#define GEN_PASS_DEF_STRIPSALLOWCONTRACTION
#include "tessera/Conversion/TileToStrips/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
struct AllowContractionPass : tessera::impl::StripsAllowContractionBase<AllowContractionPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
        return;
      auto math = cast<arith::ArithFastMathInterface>(op);
      arith::FastMathFlags flags =
          math.getFastMathFlagsAttr().getValue() | arith::FastMathFlags::contract;
      op->setAttr(math.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(op->getContext(), flags));
    });
  }
};
} // namespace
