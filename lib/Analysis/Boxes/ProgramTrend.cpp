// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Boxes/ProgramTrend.h"

#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;

namespace {

using Trend = ProgramTrend;

/// The trend of a sum.
Trend join(Trend first, Trend second) {
  if (first == Trend::Same || first == second)
    return second;
  return second == Trend::Same ? first : Trend::Unknown;
}

Trend negate(Trend trend) {
  switch (trend) {
  case Trend::Grows:
    return Trend::Shrinks;
  case Trend::Shrinks:
    return Trend::Grows;
  default:
    return trend;
  }
}

class Walk {
public:
  explicit Walk(unsigned axis) : axis(axis) {}

  Trend get(Value value);

private:
  Trend getOf(Operation *op);
  /// The trend of a product with, or a quotient by, `factor`.
  Trend scale(Trend trend, Value factor);

  unsigned axis;
  /// Not of a GPU: longer formulas do not occur as bounds.
  unsigned left = 200;
};

} // namespace

Trend Walk::scale(Trend trend, Value factor) {
  if (get(factor) != Trend::Same)
    return Trend::Unknown;
  APInt constant;
  if (!matchPattern(factor, m_ConstantInt(&constant)))
    return trend; // a size
  return constant.isZero() ? Trend::Same : constant.isNegative() ? negate(trend) : trend;
}

Trend Walk::getOf(Operation *op) {
  if (auto program = dyn_cast<tile::ProgramIdOp>(op))
    return static_cast<unsigned>(program.getAxis()) == axis ? Trend::Grows : Trend::Same;
  if (isa<tile::NumProgramsOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return Trend::Same;
  // The same holds for every value that is computed from values that are equal in all programs.
  bool isSame =
      isPure(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
        return !isa<ShapedType>(operand.getType()) && get(operand) == Trend::Same;
      });
  if (isSame)
    return Trend::Same;
  auto of = [&](unsigned operand) { return get(op->getOperand(operand)); };
  if (isa<arith::AddIOp>(op) || tile::isIntegerMinMax(op))
    return join(of(0), of(1));
  if (isa<arith::SubIOp>(op))
    return join(of(0), negate(of(1)));
  if (isa<arith::MulIOp>(op))
    return of(1) == Trend::Same ? scale(of(0), op->getOperand(1)) : scale(of(1), op->getOperand(0));
  if (isa<tile::DivIntOp, arith::DivSIOp, arith::DivUIOp>(op))
    return scale(of(0), op->getOperand(1));
  auto isInteger = [](Type type) { return type.isIntOrIndex(); };
  if (tile::keepsElements(op) ||
      (isa<CastOpInterface>(op) && llvm::all_of(op->getOperandTypes(), isInteger) &&
       llvm::all_of(op->getResultTypes(), isInteger)))
    return of(0);
  if (isa<arith::SelectOp>(op))
    return of(0) == Trend::Same ? join(of(1), of(2)) : Trend::Unknown;
  return Trend::Unknown;
}

Trend Walk::get(Value value) {
  if (left == 0)
    return Trend::Unknown;
  --left;
  if (Operation *op = value.getDefiningOp())
    return getOf(op);
  // Values that a loop counts or carries may differ.
  auto function = dyn_cast<tile::FuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
  return function && function.isKernel() ? Trend::Same : Trend::Unknown;
}

namespace {

/// A sum of multiples of scalars, without its constants: `pid * 128 + 64` and `pid * 128` are one.
class Sum {
public:
  void add(Value value, int64_t scale);
  Trend getTrend(Walk &walk) const;

private:
  llvm::SmallMapVector<Value, int64_t, 4> scales;
  unsigned left = 200; ///< Not of a GPU: as in a walk
};

} // namespace

void Sum::add(Value value, int64_t scale) {
  if (left == 0) {
    scales[value] += scale;
    return;
  }
  --left;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return;
  if (auto op = value.getDefiningOp<arith::AddIOp>()) {
    add(op.getLhs(), scale);
    return add(op.getRhs(), scale);
  }
  if (auto op = value.getDefiningOp<arith::SubIOp>()) {
    add(op.getLhs(), scale);
    return add(op.getRhs(), -scale);
  }
  // Larger ones do not occur as tiles, and must not wrap here.
  constexpr int64_t kMaxFactor = 1 << 20;
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (product && matchPattern(product.getRhs(), m_ConstantInt(&constant)) &&
      constant.abs().ule(kMaxFactor) && std::abs(scale) <= kMaxFactor)
    return add(product.getLhs(), scale * constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp, tile::HintOp>(op))
    return add(op->getOperand(0), scale);
  scales[value] += scale;
}

Trend Sum::getTrend(Walk &walk) const {
  Trend trend = Trend::Same;
  for (auto [value, scale] : scales)
    if (scale != 0)
      trend = join(trend, scale < 0 ? negate(walk.get(value)) : walk.get(value));
  return trend;
}

Trend tessera::getProgramTrendOfDifference(Value first, Value second, unsigned axis) {
  Walk walk(axis);
  Sum difference;
  difference.add(first, 1);
  difference.add(second, -1);
  return difference.getTrend(walk);
}
