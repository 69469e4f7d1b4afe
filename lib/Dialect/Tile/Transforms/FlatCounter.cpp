// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlatCounter.h"
#include "tessera/Analysis/Access/IntegerRanges.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using llvm::APInt;

//===----------------------------------------------------------------------===//
// Sums with constants
//===----------------------------------------------------------------------===//

OffsetValue OffsetValue::of(Value value) {
  constexpr unsigned kMaxTerms = 8;
  APInt offset = APInt::getZero(value.getType().getIntOrFloatBitWidth());
  for (unsigned term = 0; term < kMaxTerms; ++term) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return {Value(), offset + constant};
    if (auto add = value.getDefiningOp<arith::AddIOp>()) {
      bool isRight = matchPattern(add.getRhs(), m_ConstantInt(&constant));
      if (!isRight && !matchPattern(add.getLhs(), m_ConstantInt(&constant)))
        break;
      offset += constant;
      value = isRight ? add.getLhs() : add.getRhs();
    } else if (auto sub = value.getDefiningOp<arith::SubIOp>();
               sub && matchPattern(sub.getRhs(), m_ConstantInt(&constant))) {
      offset -= constant;
      value = sub.getLhs();
    } else {
      break;
    }
  }
  return {value, offset};
}

Value OffsetValue::emit(OpBuilder &builder, Location loc, Type type) const {
  if (base && offset.isZero())
    return base;
  Value constant = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, offset));
  return base ? arith::AddIOp::create(builder, loc, base, constant) : constant;
}

namespace {

/// A comparison as "left >= right" or "left == right", or the opposite.
struct PeriodComparison {
  OffsetValue left, right;
  bool isEqual;
  bool isNegated;
  /// True if a constant was added to the right side, which may wrap.
  bool hasOffset;

  static std::optional<PeriodComparison> of(arith::CmpIOp compare, Value left);
};

/// `left` is the base of the side that becomes the left one.
std::optional<PeriodComparison> PeriodComparison::of(arith::CmpIOp compare, Value base) {
  using arith::CmpIPredicate;
  if (!compare.getLhs().getType().isInteger())
    return std::nullopt;
  OffsetValue left = OffsetValue::of(compare.getLhs()), right = OffsetValue::of(compare.getRhs());
  CmpIPredicate predicate = compare.getPredicate();
  if (left.base != base) {
    std::swap(left, right);
    if (left.base != base)
      return std::nullopt;
    predicate = exchangeSides(predicate);
  }
  bool hasOffset = right.base && !right.offset.isZero();
  if (predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne)
    return PeriodComparison{left, right, true, predicate == CmpIPredicate::ne, hasOffset};
  // A larger constant could take the sum of a small period beyond the type.
  if (!(left.offset.isZero() || left.offset.isOne()) ||
      (right.base && !right.offset.isAllOnes() && !right.offset.isZero()))
    return std::nullopt;
  switch (predicate) {
  case CmpIPredicate::sge:
  case CmpIPredicate::slt:
    break;
  case CmpIPredicate::sgt:
  case CmpIPredicate::sle:
    // `left > right` is `left >= right + 1`.
    if (!right.base && right.offset.isMaxSignedValue())
      return std::nullopt;
    right.offset += 1;
    break;
  default:
    return std::nullopt;
  }
  return PeriodComparison{left, right, false,
                          predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle,
                          hasOffset};
}

PeriodTest getTest(const PeriodComparison &comparison) {
  if (comparison.isEqual)
    return PeriodTest::Equal;
  return comparison.hasOffset ? PeriodTest::AtLeastOf : PeriodTest::AtLeast;
}

} // namespace

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

/// True if a carried value is used for nothing but counting.
bool FlatCounter::isOnlyCounted(scf::ForOp loop) const {
  constexpr unsigned kMaxUses = 16;
  auto select = dyn_cast<arith::SelectOp>(recurrence);
  Operation *condition = select ? select.getCondition().getDefiningOp() : nullptr;
  SmallVector<Value> values = {loop.getRegionIterArg(*carried)};
  for (unsigned next = 0; next < values.size(); ++next) {
    for (Operation *user : values[next].getUsers()) {
      if (user == recurrence || user == condition)
        continue;
      if (!isa<arith::AddIOp, arith::SubIOp>(user) || values.size() == kMaxUses)
        return false;
      values.push_back(user->getResult(0));
    }
  }
  // The condition of the wrap decides about the counter alone, or opens a tile.
  return wrapsFirst || !condition || condition->hasOneUse();
}

/// A carried value `c` whose next value is `select(wraps, 0, c + 1)` or `select(wraps, 0, c) + 1`.
std::optional<FlatCounter> FlatCounter::findCarried(scf::ForOp loop, unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  if (!argument.getType().isInteger() || argument.getType() != loop.getInductionVar().getType() ||
      !loop.getResult(number).use_empty())
    return std::nullopt;
  OffsetValue next = OffsetValue::of(loop.getYieldedValues()[number]);
  auto select = next.base ? next.base.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!select || select->getBlock() != loop.getBody())
    return std::nullopt;
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  std::optional<PeriodComparison> wraps =
      compare ? PeriodComparison::of(compare, argument) : std::nullopt;
  if (!wraps)
    return std::nullopt;
  OffsetValue reset = OffsetValue::of(select.getTrueValue()),
              count = OffsetValue::of(select.getFalseValue());
  if (wraps->isNegated)
    std::swap(reset, count);
  if (reset.base || count.base != argument || !(next.offset + count.offset).isOne())
    return std::nullopt;

  FlatCounter counter;
  counter.carried = number;
  counter.recurrence = select;
  counter.shift = APInt::getZero(next.offset.getBitWidth());
  counter.wrap = getTest(*wraps);
  counter.wrapIsNegated = wraps->isNegated;
  OffsetValue initial = OffsetValue::of(loop.getInitArgs()[number]);
  // The carried value is what the iteration before counted, plus `next.offset` if that was added
  // after the wrap. The wrap comes where the count is one below the period.
  bool isZero = !initial.base && initial.offset.isZero(),
       isMinusOne = !initial.base && initial.offset.isAllOnes();
  counter.period = {wraps->right.base, wraps->right.offset - wraps->left.offset + 1};
  OffsetValue beforeFirst = {counter.period.base, counter.period.offset - 1};
  if (next.offset.isZero() && reset.offset.isZero() && isZero) {
    // The iteration uses the carried value, and counts for the next one.
    counter.value = argument;
  } else if (next.offset.isZero() && reset.offset.isZero() &&
             (isMinusOne || initial == beforeFirst)) {
    counter.value = select;
    if (initial == beforeFirst)
      counter.wrapsFirst = select.getCondition();
  } else if (next.offset.isZero() && reset.offset.isAllOnes() && isMinusOne) {
    // The iteration adds 1 first. The count is the carried value plus 1.
    counter.value = argument;
    counter.shift += 1;
    counter.period.offset += 1;
  } else if (next.offset.isOne() && reset.offset.isZero()) {
    // The iteration wraps what the last one has increased.
    counter.period.offset -= 1;
    if (!isZero && !(initial == counter.period))
      return std::nullopt;
    counter.value = select;
    if (!isZero)
      counter.wrapsFirst = select.getCondition();
  } else {
    return std::nullopt;
  }
  if (counter.period.base && !loop.isDefinedOutsideOfLoop(counter.period.base))
    return std::nullopt;
  if (counter.value == select.getResult() && !counter.isOnlyCounted(loop))
    return std::nullopt;
  return counter;
}

/// A carried value `c` whose next value is `(c + 1) % period`.
std::optional<FlatCounter> FlatCounter::findCarriedRemainder(scf::ForOp loop, unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  if (!argument.getType().isInteger() || argument.getType() != loop.getInductionVar().getType() ||
      !loop.getResult(number).use_empty())
    return std::nullopt;
  auto remainder = loop.getYieldedValues()[number].getDefiningOp<RemIntOp>();
  if (!remainder || remainder->getBlock() != loop.getBody() ||
      remainder.getSignedness() != Signedness::Signed ||
      !loop.isDefinedOutsideOfLoop(remainder.getRhs()))
    return std::nullopt;
  OffsetValue dividend = OffsetValue::of(remainder.getLhs());
  if (dividend.base != argument || !dividend.offset.isOne())
    return std::nullopt;
  FlatCounter counter;
  counter.carried = number;
  counter.recurrence = remainder;
  counter.shift = APInt::getZero(dividend.offset.getBitWidth());
  counter.period = OffsetValue::of(remainder.getRhs());
  counter.wrap = PeriodTest::Remainder;
  OffsetValue initial = OffsetValue::of(loop.getInitArgs()[number]);
  OffsetValue beforeFirst = {counter.period.base, counter.period.offset - 1};
  if (!initial.base && initial.offset.isZero())
    counter.value = argument;
  else if (initial == beforeFirst || (!initial.base && initial.offset.isAllOnes()))
    counter.value = remainder;
  else
    return std::nullopt;
  if (counter.value == remainder.getResult() && !counter.isOnlyCounted(loop))
    return std::nullopt;
  return counter;
}

/// A remainder of the loop's variable, which counts from 0 in steps of 1.
std::optional<FlatCounter> FlatCounter::findRemainder(scf::ForOp loop) {
  if (!matchPattern(loop.getLowerBound(), m_Zero()) || !matchPattern(loop.getStep(), m_One()))
    return std::nullopt;
  Value variable = loop.getInductionVar();
  for (auto remainder : loop.getBody()->getOps<RemIntOp>()) {
    if (remainder.getType() != variable.getType() ||
        remainder.getSignedness() != Signedness::Signed ||
        !loop.isDefinedOutsideOfLoop(remainder.getRhs()))
      continue;
    OffsetValue dividend = OffsetValue::of(remainder.getLhs());
    if (dividend.base != variable || !dividend.offset.isZero())
      continue;
    FlatCounter counter;
    counter.value = remainder;
    counter.recurrence = remainder;
    counter.shift = dividend.offset;
    counter.period = OffsetValue::of(remainder.getRhs());
    counter.wrap = PeriodTest::Remainder;
    counter.iteration = variable;
    return counter;
  }
  return std::nullopt;
}

std::optional<FlatCounter> FlatCounter::find(scf::ForOp loop) {
  if (loop.getUnsignedCmp() || !loop.getInductionVar().getType().isInteger())
    return std::nullopt;
  for (auto find : {findCarried, findCarriedRemainder})
    for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
      if (std::optional<FlatCounter> counter = find(loop, number))
        return counter;
  return findRemainder(loop);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static Moment negate(Moment moment) {
  switch (moment) {
  case Moment::Unknown:
    return Moment::Unknown;
  case Moment::First:
    return Moment::NotFirst;
  case Moment::NotFirst:
    return Moment::First;
  case Moment::Last:
    return Moment::NotLast;
  case Moment::NotLast:
    return Moment::Last;
  }
  return Moment::Unknown;
}

/// `(t + 1) % period == 0`
Moment FlatCounter::classifyRemainder(arith::CmpIOp compare) const {
  auto remainder = compare.getLhs().getDefiningOp<RemIntOp>();
  if (!iteration || !remainder || !matchPattern(compare.getRhs(), m_Zero()) ||
      remainder.getSignedness() != Signedness::Signed ||
      remainder.getType() != iteration.getType() ||
      !(OffsetValue::of(remainder.getRhs()) == period))
    return Moment::Unknown;
  OffsetValue dividend = OffsetValue::of(remainder.getLhs());
  if (dividend.base != iteration || !dividend.offset.isOne())
    return Moment::Unknown;
  if (compare.getPredicate() == arith::CmpIPredicate::eq)
    return Moment::Last;
  return compare.getPredicate() == arith::CmpIPredicate::ne ? Moment::NotLast : Moment::Unknown;
}

/// True if a comparison asks whether the next iteration's count is 0.
bool FlatCounter::isWrapped(arith::CmpIOp compare) const {
  return carried && isa<BlockArgument>(value) && shift.isZero() &&
         compare.getLhs().getDefiningOp() == recurrence && matchPattern(compare.getRhs(), m_Zero());
}

/// A flag that the loop carries: it holds at first, and behind the last iteration of a tile. It has
/// to ask for the end as the counter does, so that both agree about a period that is not positive.
Moment FlatCounter::classifyFlag(BlockArgument flag) const {
  auto loop = dyn_cast<scf::ForOp>(flag.getOwner()->getParentOp());
  if (!loop || flag == loop.getInductionVar())
    return Moment::Unknown;
  Value next = loop.getTiedLoopYieldedValue(flag)->get();
  PeriodTest test = wrap;
  Moment moment = isa<BlockArgument>(next) ? Moment::Unknown : classify(next, test);
  Value first = loop.getTiedLoopInit(flag)->get();
  if (test != wrap)
    return Moment::Unknown;
  if (moment == Moment::Last && matchPattern(first, m_One()))
    return Moment::First;
  return moment == Moment::NotLast && matchPattern(first, m_Zero()) ? Moment::NotFirst
                                                                    : Moment::Unknown;
}

Moment FlatCounter::classify(Value condition, PeriodTest &test) const {
  if (condition == wrapsFirst)
    return wrapIsNegated ? Moment::NotFirst : Moment::First;
  if (auto flag = dyn_cast<BlockArgument>(condition))
    return classifyFlag(flag);
  if (auto inverse = condition.getDefiningOp<arith::XOrIOp>();
      inverse && matchPattern(inverse.getRhs(), m_One()))
    return negate(classify(inverse.getLhs(), test));
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return Moment::Unknown;
  if (Moment moment = classifyRemainder(compare); moment != Moment::Unknown) {
    test = PeriodTest::Remainder;
    return moment;
  }
  if (isWrapped(compare)) {
    test = wrap;
    if (compare.getPredicate() == arith::CmpIPredicate::eq)
      return Moment::Last;
    return compare.getPredicate() == arith::CmpIPredicate::ne ? Moment::NotLast : Moment::Unknown;
  }
  std::optional<PeriodComparison> comparison = PeriodComparison::of(compare, value);
  if (!comparison)
    return Moment::Unknown;
  // The count is the base plus `shift`: count + left >= right.
  APInt left = comparison->left.offset - shift, right = comparison->right.offset;
  auto decide = [&](Moment moment) { return comparison->isNegated ? negate(moment) : moment; };
  test = getTest(*comparison);
  if (comparison->right.base == period.base && right - left == period.offset - 1)
    return decide(Moment::Last);
  if (comparison->right.base)
    return Moment::Unknown;
  // count == 0, or !(count >= 1)
  if (comparison->isEqual && right == left)
    return decide(Moment::First);
  if (!comparison->isEqual && right - left == 1)
    return decide(Moment::NotFirst);
  return Moment::Unknown;
}
