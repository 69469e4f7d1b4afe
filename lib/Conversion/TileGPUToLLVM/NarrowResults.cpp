// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

#include "NarrowResults.h"

#include "ScratchMemory.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

namespace {

bool isNonNegativeConstant(Value value) {
  DenseFPElementsAttr elements;
  FloatAttr number;
  if (auto splat = value.getDefiningOp<tile::SplatOp>())
    value = splat.getSource();
  if (matchPattern(value, m_Constant(&elements)))
    return elements.isSplat() && !elements.getSplatValue<APFloat>().isNegative();
  return matchPattern(value, m_Constant(&number)) && !number.getValue().isNegative();
}

/// Whether a reduction is a plain sum.
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
               if (isa<tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::TransOp,
                       tile::ReshapeOp, tilegpu::ConvertLayoutOp>(user))
                 return follow(isPositive);
               if (isa<arith::MulFOp, arith::DivFOp>(user))
                 return follow(false);
               Value other = user->getOperand(
                   use.getOperandNumber() == 0 && user->getNumOperands() > 1 ? 1 : 0);
               if (isa<arith::AddFOp>(user))
                 return isPositive && isNonNegativeConstant(other) && follow(true);
               auto reduce = dyn_cast<tile::ReduceOp>(user);
               return reduce && isPositive && isSum(reduce) && follow(true);
             });
}

} // namespace

void tessera::markNarrowResults(ModuleOp module) {
  module.walk([&](math::ExpOp op) {
    if (getElementTypeOrSelf(op.getType()).isF32() && !isDeterministic(op) &&
        endsNarrow(op.getResult(), /*isPositive=*/true))
      op->setAttr(kNarrowResultAttr, UnitAttr::get(op.getContext()));
  });
}
