// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-mark-narrow-results: which functions need not be exact to the last bit of f32.
//
// Softmax of 16-bit floats computes exp in f32, and rounds what it divides to 16 bits:
//
//     %e = math.exp %x : tensor<4096xf32>
//     %s = tile.reduce(%e) add              a sum of what is not negative
//     %y = arith.divf %e, splat(%s)
//     %z = tile.fp_to_fp %y -> bf16         eight bits of %e are left
//
// Products and quotients keep relative errors as they are, and so does a sum without
// cancellation; a difference does not. So the uses are followed through those ops alone.
//
// In gelu, x * 0.5 * (1 + erf(x / sqrt(2))), the sum 1 + erf is rounded to 16 bits. So an erf that
// is exact for 1 + erf suffices.

#include "Exchange/ScratchMemory.h"
#include "NarrowResults.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUMARKNARROWRESULTS
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

/// The constant that a tile has everywhere, or a scalar is; no number if it is none.
double getConstant(Value value) {
  DenseFPElementsAttr elements;
  FloatAttr number;
  if (auto splat = value.getDefiningOp<tile::SplatOp>())
    value = splat.getSource();
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<FloatAttr>().getValueAsDouble();
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  return std::numeric_limits<double>::quiet_NaN();
}

Value getOther(OpOperand &use) {
  return use.getOwner()->getOperand(use.getOperandNumber() == 0 ? 1 : 0);
}

/// True if a reduction is a plain sum.
bool isSum(tile::ReduceOp op) {
  Block &body = *op.getBody();
  return op->getNumOperands() == 1 && llvm::hasNItems(body.without_terminator(), 1) &&
         isa<arith::AddFOp>(body.front());
}

/// `isPositive`: the value is known not to be negative.
bool endsNarrow(Value value, bool isPositive, unsigned depth = 0) {
  constexpr unsigned kDeepest = 16;
  return depth < kDeepest &&
         llvm::all_of(
             value.getUses(),
             [&](OpOperand &use) {
               Operation *user = use.getOwner();
               auto follow = [&](bool staysPositive) {
                 return endsNarrow(user->getResult(0), staysPositive, depth + 1);
               };
               if (isa<arith::TruncFOp, tile::FpToFpOp>(user))
                 return getElementTypeOrSelf(user->getResult(0).getType())
                            .getIntOrFloatBitWidth() <= 16;
               if (tile::movesOneTile(user))
                 return follow(isPositive);
               if (isa<arith::MulFOp, arith::DivFOp>(user))
                 return follow(false);
               if (isa<arith::AddFOp>(user))
                 return isPositive && getConstant(getOther(use)) >= 0 && follow(true);
               auto reduce = dyn_cast<tile::ReduceOp>(user);
               return reduce && isPositive && isSum(reduce) && follow(true);
             });
}

/// True if a function from -1 to 1, times `scale`, is added to as much at least, and nothing
/// else.
bool endsNarrowAboveZero(Value value, double scale = 1) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::AddFOp>(user))
      return getConstant(getOther(use)) >= scale &&
             endsNarrow(user->getResult(0), /*isPositive=*/true);
    double factor = isa<arith::MulFOp>(user) && scale == 1 ? getConstant(getOther(use)) : 0;
    return factor > 0 && endsNarrowAboveZero(user->getResult(0), factor);
  });
}

struct TileGPUMarkNarrowResults
    : tessera::impl::TileGPUMarkNarrowResultsBase<TileGPUMarkNarrowResults> {
  void runOnOperation() final {
    auto mark = [](Operation *op, bool isNarrow) {
      if (getElementTypeOrSelf(op->getResult(0).getType()).isF32() && !isDeterministic(op) &&
          isNarrow)
        op->setAttr(kNarrowResultAttr, UnitAttr::get(op->getContext()));
    };
    getOperation().walk([&](Operation *op) {
      if (isa<math::ExpOp>(op))
        mark(op, endsNarrow(op->getResult(0), /*isPositive=*/true));
      else if (isa<math::ErfOp>(op))
        mark(op, endsNarrowAboveZero(op->getResult(0)));
    });
  }
};

} // namespace
