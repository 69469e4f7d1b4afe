// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks the user's floating-point arithmetic as open to fused multiply-adds. LLVM fuses
// only what both the product and the sum allow.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEALLOWCONTRACTIONPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;

namespace {
struct TileAllowContractionPass
    : tessera::tile::impl::TileAllowContractionPassBase<TileAllowContractionPass> {
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
