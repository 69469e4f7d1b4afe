// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/ProgramTrend.h"

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

namespace {

using Trend = ProgramTrend;

/// Of a sum.
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
  /// Of what is multiplied with, or divided by, `factor`.
  Trend scale(Trend trend, Value factor);

  unsigned axis;
  /// Longer formulas are nobody's bounds.
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
  // Of anything that is computed from what is the same in all programs, that holds, too.
  bool isSame =
      isPure(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
        return !isa<ShapedType>(operand.getType()) && get(operand) == Trend::Same;
      });
  if (isSame)
    return Trend::Same;
  auto of = [&](unsigned operand) { return get(op->getOperand(operand)); };
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op))
    return join(of(0), of(1));
  if (isa<arith::SubIOp>(op))
    return join(of(0), negate(of(1)));
  if (isa<arith::MulIOp>(op))
    return of(1) == Trend::Same ? scale(of(0), op->getOperand(1)) : scale(of(1), op->getOperand(0));
  if (isa<tile::DivIntOp, arith::DivSIOp, arith::DivUIOp>(op))
    return scale(of(0), op->getOperand(1));
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, tile::HintOp>(op))
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
  // What a loop counts or carries is another matter.
  auto function = dyn_cast<tile::FuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
  return function && function.isKernel() ? Trend::Same : Trend::Unknown;
}

Trend tessera::getProgramTrendOfDifference(Value first, Value second, unsigned axis) {
  Walk walk(axis);
  return join(walk.get(first), negate(walk.get(second)));
}
