// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranges of the integers that tile ops make, from those of their operands, for upstream's
// analyses of integer ranges. If an op is defined for an operand for which upstream's
// is not (a divisor of 0, a shift past the width), the range includes that result.

#include "IntegerRanges.h"

#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

using Ranges = ArrayRef<ConstantIntRanges>;

static unsigned widthOf(Value value) {
  return ConstantIntRanges::getStorageBitwidth(value.getType());
}

static ConstantIntRanges rangeOf(unsigned width, int64_t least, int64_t most) {
  return ConstantIntRanges::fromSigned(APInt(width, least, /*isSigned=*/true),
                                       APInt(width, most, /*isSigned=*/true));
}

static ConstantIntRanges infer(RangeOp op, Ranges) {
  int64_t start = static_cast<int32_t>(op.getStart());
  return rangeOf(widthOf(op.getResult()), start, start + getShape(op.getType())[0] - 1);
}

/// How many programs there may be along an axis where an op stands.
static int64_t getMostPrograms(Operation *op) {
  auto func = op->getParentOfType<FuncOp>();
  auto limit = func ? func->getAttrOfType<IntegerAttr>(kLimitedProgramsAttr) : IntegerAttr();
  return limit ? limit.getInt() : INT32_MAX;
}

static ConstantIntRanges infer(ProgramIdOp op, Ranges) {
  return rangeOf(widthOf(op.getResult()), 0, getMostPrograms(op) - 1);
}

static ConstantIntRanges infer(NumProgramsOp op, Ranges) {
  return rangeOf(widthOf(op.getResult()), 1, getMostPrograms(op));
}

static ConstantIntRanges infer(DivIntOp op, Ranges ranges) {
  const ConstantIntRanges &lhs = ranges[0], &rhs = ranges[1];
  unsigned width = lhs.umin().getBitWidth();
  ConstantIntRanges one = rangeOf(width, 1, 1), ofZero = rangeOf(width, -1, -1);
  if (op.getSignedness() == Signedness::Unsigned) {
    if (rhs.umax().isZero())
      return ofZero;
    if (!rhs.umin().isZero())
      return intrange::inferDivU(ranges);
    ConstantIntRanges divisor = ConstantIntRanges::fromUnsigned(one.umin(), rhs.umax());
    return intrange::inferDivU({lhs, divisor}).rangeUnion(ofZero);
  }
  if (rhs.smin().isStrictlyPositive())
    return intrange::inferDivS(ranges);
  if (rhs.smin().isNonNegative() && rhs.smax().isStrictlyPositive()) {
    ConstantIntRanges divisor = ConstantIntRanges::fromSigned(one.smin(), rhs.smax());
    return intrange::inferDivS({lhs, divisor}).rangeUnion(ofZero);
  }
  // No quotient is larger than what is divided, but for that by 0.
  if (lhs.smin().isMinSignedValue())
    return ConstantIntRanges::maxRange(width);
  APInt most = llvm::APIntOps::smax(lhs.smin().abs(), lhs.smax().abs());
  return ConstantIntRanges::fromSigned(-most, most).rangeUnion(ofZero);
}

static ConstantIntRanges infer(RemIntOp op, Ranges ranges) {
  const ConstantIntRanges &lhs = ranges[0], &rhs = ranges[1];
  APInt zero = APInt::getZero(lhs.umin().getBitWidth());
  if (op.getSignedness() == Signedness::Unsigned)
    return rhs.umin().isZero() ? ConstantIntRanges::fromUnsigned(zero, lhs.umax())
                               : intrange::inferRemU(ranges);
  // The sign is that of what is divided, which is the remainder by 0. No remainder is larger.
  ConstantIntRanges ofDividend = ConstantIntRanges::fromSigned(
      llvm::APIntOps::smin(lhs.smin(), zero), llvm::APIntOps::smax(lhs.smax(), zero));
  return rhs.smin().isStrictlyPositive() ? intrange::inferRemS(ranges).intersection(ofDividend)
                                         : ofDividend;
}

static ConstantIntRanges infer(ShiftOp op, Ranges ranges) {
  const ConstantIntRanges &lhs = ranges[0];
  unsigned width = lhs.umin().getBitWidth();
  APInt zero = APInt::getZero(width);
  bool isShort = ranges[1].umax().ult(width);
  switch (op.getKind()) {
  case ShiftKind::Left:
    return isShort ? intrange::inferShl(ranges) : ConstantIntRanges::maxRange(width);
  case ShiftKind::RightLogical:
    return isShort ? intrange::inferShrU(ranges)
                   : ConstantIntRanges::fromUnsigned(zero, lhs.umax());
  case ShiftKind::RightArithmetic:
    break;
  }
  if (isShort)
    return intrange::inferShrS(ranges);
  return ConstantIntRanges::fromSigned(llvm::APIntOps::smin(lhs.smin(), zero),
                                       lhs.smax().isNegative() ? APInt::getAllOnes(width)
                                                               : lhs.smax());
}

/// An element of the source, or 0 where there is none.
static ConstantIntRanges infer(GatherOp, Ranges ranges) {
  return ranges[0].rangeUnion(rangeOf(ranges[0].umin().getBitWidth(), 0, 0));
}

namespace {

/// Ops whose operands' ranges are not all known yet wait for them.
template <typename Concrete, typename Op>
struct ModelBase : InferIntRangeInterface::ExternalModel<Concrete, Op> {
  void inferResultRangesFromOptional(Operation *op, ArrayRef<IntegerValueRange> ranges,
                                     SetIntLatticeFn setRange) const {
    intrange::detail::defaultInferResultRanges(cast<InferIntRangeInterface>(op), ranges, setRange);
  }
};

template <typename Op> struct RangeModel : ModelBase<RangeModel<Op>, Op> {
  void inferResultRanges(Operation *op, Ranges ranges, SetIntRangeFn setRange) const {
    setRange(op->getResult(0), infer(cast<Op>(op), ranges));
  }
};

/// The result has the elements of all operands, and no others.
template <typename Op> struct SameElementsModel : ModelBase<SameElementsModel<Op>, Op> {
  void inferResultRanges(Operation *op, Ranges ranges, SetIntRangeFn setRange) const {
    ConstantIntRanges all = ranges.front();
    for (const ConstantIntRanges &range : ranges.drop_front())
      all = all.rangeUnion(range);
    for (Value result : op->getResults())
      if (ConstantIntRanges::getStorageBitwidth(result.getType()) == all.umin().getBitWidth())
        setRange(result, all);
  }
};

/// Least and greatest elements are elements.
struct ReduceModel : ModelBase<ReduceModel, ReduceOp> {
  void inferResultRanges(Operation *op, Ranges ranges, SetIntRangeFn setRange) const {
    Block &combine = cast<ReduceOp>(op).getCombine().front();
    Operation &only = combine.front();
    if (ranges.size() == 1 && combine.getOperations().size() == 2 && isIntegerMinMax(&only) &&
        combine.getTerminator()->getOperand(0) == only.getResult(0))
      setRange(op->getResult(0), ranges[0]);
  }
};

template <template <typename> typename ModelOf, typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<ModelOf<Ops>>(context), ...);
}

} // namespace

void tessera::tile::registerIntegerRanges(MLIRContext &context) {
  attach<RangeModel, RangeOp, ProgramIdOp, NumProgramsOp, DivIntOp, RemIntOp, ShiftOp, GatherOp>(
      context);
  attach<SameElementsModel, SplatOp, BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, HintOp, JoinOp,
         SplitOp, CatOp>(context);
  ReduceOp::attachInterface<ReduceModel>(context);
}
