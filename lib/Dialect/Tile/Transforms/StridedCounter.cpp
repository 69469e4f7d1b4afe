// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StridedCounter.h"
#include "tessera/Analysis/Access/IntegerRanges.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using llvm::APInt;

namespace {

/// A comparison with the counter on its left side, as "left >= right", "left <= right" or
/// "left == right".
struct BoundTest {
  OffsetValue left, right;
  bool isUp;
  bool isNegated;
  bool isEqual = false;

  static std::optional<BoundTest> of(arith::CmpIOp compare, Value counter, bool isUp);
};

} // namespace

/// A strict comparison is one with a bound that is 1 further.
std::optional<BoundTest> BoundTest::of(arith::CmpIOp compare, Value counter, bool isUp) {
  using arith::CmpIPredicate;
  if (!compare.getLhs().getType().isInteger())
    return std::nullopt;
  BoundTest test{OffsetValue::of(compare.getLhs()), OffsetValue::of(compare.getRhs()), isUp,
                 /*isNegated=*/false};
  CmpIPredicate predicate = compare.getPredicate();
  if (test.left.base != counter) {
    std::swap(test.left, test.right);
    if (test.left.base != counter)
      return std::nullopt;
    predicate = exchangeSides(predicate);
  }
  switch (predicate) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    test.isEqual = true;
    test.isNegated = predicate == CmpIPredicate::ne;
    return test;
  case CmpIPredicate::sge:
    test.isNegated = !isUp;
    test.right.offset -= isUp ? 0 : 1;
    return test;
  case CmpIPredicate::sle:
    test.isNegated = isUp;
    test.right.offset += isUp ? 1 : 0;
    return test;
  case CmpIPredicate::sgt:
    test.isNegated = !isUp;
    test.right.offset += isUp ? 1 : 0;
    return test;
  case CmpIPredicate::slt:
    test.isNegated = isUp;
    test.right.offset -= isUp ? 0 : 1;
    return test;
  default:
    return std::nullopt;
  }
}

/// True for a constant beside which no sum of this type wraps that a loop could count to.
static bool isSmall(const APInt &value) { return value.abs().ult(1U << 16); }

/// Finds the bound in the comparison of the select, and what is carried at first.
bool StridedCounter::findBound(scf::ForOp loop, bool startsIfTrue) {
  BlockArgument argument = loop.getRegionIterArg(number);
  OffsetValue yielded = OffsetValue::of(loop.getYieldedValues()[number]),
              next = OffsetValue::of(startsIfTrue ? select.getFalseValue() : select.getTrueValue());
  start = startsIfTrue ? select.getTrueValue() : select.getFalseValue();
  if (next.base != argument || !loop.isDefinedOutsideOfLoop(start))
    return false;
  bool wrapsBeforeStep = !yielded.offset.isZero();
  if (wrapsBeforeStep && !next.offset.isZero())
    return false;
  step = wrapsBeforeStep ? yielded.offset : next.offset;
  OffsetValue first = OffsetValue::of(start);
  if (step.isZero() || !isSmall(step) || !isSmall(first.offset))
    return false;

  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  bool isUp = step.isStrictlyPositive();
  std::optional<BoundTest> test = BoundTest::of(compare, argument, isUp);
  // Larger steps may pass a bound without being equal to it.
  if (!test || test->isNegated == startsIfTrue || (test->isEqual && !step.abs().isOne()) ||
      !isSmall(test->left.offset) || !isSmall(test->right.offset) ||
      (test->right.base && first.base) ||
      (test->right.base && !loop.isDefinedOutsideOfLoop(test->right.base)))
    return false;
  wrapsByEqual = test->isEqual;
  carriedBound = bound = {test->right.base, test->right.offset - test->left.offset};
  if (wrapsBeforeStep)
    bound.offset -= step;

  OffsetValue initial = OffsetValue::of(loop.getInitArgs()[number]);
  if (!wrapsBeforeStep && initial == first)
    return true;
  isSelected = true;
  wrapsFirst =
      initial.base == carriedBound.base && (wrapsByEqual ? initial.offset == carriedBound.offset
                                            : isUp       ? initial.offset.sge(carriedBound.offset)
                                                         : initial.offset.sle(carriedBound.offset));
  if (!wrapsBeforeStep)
    initial.offset += step;
  return (wrapsFirst || initial == first) && isOnlyCounted(loop);
}

/// True if a conditional yields to a result that nothing uses.
static bool isUnused(OpOperand &use) {
  auto branch = isa<scf::YieldOp>(use.getOwner())
                    ? dyn_cast<scf::IfOp>(use.getOwner()->getParentOp())
                    : scf::IfOp();
  return branch && branch->getResult(use.getOperandNumber()).use_empty();
}

/// True if what is carried decides about nothing but the next value, or where tiles begin.
bool StridedCounter::isOnlyCounted(scf::ForOp loop) const {
  constexpr unsigned kMaxUses = 16;
  SmallVector<Value> values = {loop.getRegionIterArg(number)};
  for (unsigned next = 0; next < values.size(); ++next)
    for (OpOperand &use : values[next].getUses()) {
      Operation *user = use.getOwner();
      if (user == select || isUnused(use))
        continue;
      if (auto compare = dyn_cast<arith::CmpIOp>(user)) {
        bool isOfSelect =
            compare.getResult() == arith::SelectOp(select).getCondition() && compare->hasOneUse();
        if (!isOfSelect && classify(compare, values.front()).moment == Moment::Unknown)
          return false;
      } else if (isa<arith::AddIOp, arith::SubIOp>(user) && values.size() < kMaxUses &&
                 OffsetValue::of(user->getResult(0)).base == values.front()) {
        values.push_back(user->getResult(0));
      } else {
        return false;
      }
    }
  return true;
}

/// A carried value `c` whose next value is `select(wraps, start, c + step)`, or
/// `select(wraps, start, c) + step`.
std::optional<StridedCounter> StridedCounter::find(scf::ForOp loop, unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  // As elsewhere, counters of 32 bits and more are taken not to wrap.
  if (!argument.getType().isInteger(32) && !argument.getType().isInteger(64))
    return std::nullopt;
  OffsetValue yielded = OffsetValue::of(loop.getYieldedValues()[number]);
  auto select = yielded.base ? yielded.base.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || select->getBlock() != loop.getBody() || compare->getBlock() != loop.getBody() ||
      !loop.getResult(number).use_empty())
    return std::nullopt;
  for (bool startsIfTrue : {true, false}) {
    StridedCounter counter;
    counter.number = number;
    counter.select = select;
    if (counter.findBound(loop, startsIfTrue) && (counter.isSelected || select->hasOneUse()))
      return counter;
  }
  return std::nullopt;
}

std::optional<StridedCounter> StridedCounter::find(scf::ForOp loop) {
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
    if (std::optional<StridedCounter> counter = find(loop, number))
      return counter;
  return std::nullopt;
}

/// `argument` is what is carried. A comparison with the first value asks for the first iteration.
StridedCounter::Test StridedCounter::classify(arith::CmpIOp compare, Value argument) const {
  Test unknown{Moment::Unknown, false};
  Value value = isSelected ? Value(arith::SelectOp(select)) : argument;
  bool isUp = step.isStrictlyPositive();
  auto reaches = [&](Value of, const OffsetValue &place) -> std::optional<BoundTest> {
    std::optional<BoundTest> test = BoundTest::of(compare, of, isUp);
    bool isThis = test && test->right.base == place.base &&
                  test->right.offset - test->left.offset == place.offset &&
                  (!test->isEqual || step.abs().isOne());
    return isThis ? test : std::nullopt;
  };
  if (std::optional<BoundTest> test = reaches(value, bound))
    return {test->isNegated ? Moment::NotLast : Moment::Last, test->isEqual};
  // Where a tile has one iteration, what is carried may reach a bound that is not where it wraps.
  if (isSelected && wrapsFirst)
    if (std::optional<BoundTest> test = reaches(argument, carriedBound);
        test && test->isEqual == wrapsByEqual)
      return {test->isNegated ? Moment::NotFirst : Moment::First, test->isEqual};
  std::optional<BoundTest> test = BoundTest::of(compare, value, isUp);
  OffsetValue first = OffsetValue::of(start);
  if (test && test->isEqual && test->right.base == first.base &&
      test->right.offset - test->left.offset == first.offset)
    return {test->isNegated ? Moment::NotFirst : Moment::First, true};
  return unknown;
}

/// In steps of 1, the distance, whatever its sign. Else at least 1, as a tile has an iteration in
/// any case.
Value StridedCounter::emitPeriod(OpBuilder &builder, Location loc) const {
  Type type = start.getType();
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  APInt one(step.getBitWidth(), 1);
  OffsetValue first = OffsetValue::of(start), end = {bound.base, bound.offset + step};
  const bool isUp = step.isStrictlyPositive();
  const OffsetValue &from = isUp ? first : end, &to = isUp ? end : first;
  OffsetValue last = {to.base,
                      to.offset - (from.base ? APInt::getZero(step.getBitWidth()) : from.offset)};
  Value distance = last.emit(builder, loc, type);
  if (from.base)
    distance = builder.createOrFold<arith::SubIOp>(loc, distance, from.emit(builder, loc, type));
  APInt size = step.abs();
  if (size.isOne())
    return distance;
  distance = builder.createOrFold<arith::MaxSIOp>(loc, distance, constant(one));
  // A sum of two positive numbers does not wrap as an unsigned one.
  Value sum = arith::AddIOp::create(builder, loc, distance, constant(size - 1));
  return DivIntOp::create(builder, loc, Signedness::Unsigned, sum, constant(size));
}

scf::ForOp StridedCounter::rewrite(scf::ForOp loop) const {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  Type type = start.getType();
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(type, value));
  };
  Value zero = constant(APInt::getZero(step.getBitWidth())),
        one = constant(APInt(step.getBitWidth(), 1)), size = constant(step),
        period = emitPeriod(rewriter, loc);
  Value next;
  auto compareNext = [&](OpBuilder &builder, bool isEqual, bool isNegated) -> Value {
    using arith::CmpIPredicate;
    CmpIPredicate predicate = isEqual ? isNegated ? CmpIPredicate::ne : CmpIPredicate::eq
                                      : (isNegated ? CmpIPredicate::slt : CmpIPredicate::sge);
    return arith::CmpIOp::create(builder, loc, predicate, next, period);
  };
  auto yieldNext = [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> added) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    next = arith::AddIOp::create(builder, loc, added.front(), one);
    Value last = compareNext(builder, wrapsByEqual, /*isNegated=*/false);
    return SmallVector<Value>{arith::SelectOp::create(builder, loc, last, zero, next)};
  };
  auto counting = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext));
  BlockArgument argument = counting.getRegionIterArg(number);
  Value count = counting.getRegionIterArgs().back();
  counting.getBody()->getTerminator()->setOperand(number, argument);

  SmallVector<std::pair<arith::CmpIOp, Test>> tests;
  counting.getBody()->walk([&](arith::CmpIOp compare) {
    if (Test test = classify(compare, argument); test.moment != Moment::Unknown)
      tests.push_back({compare, test});
  });
  for (auto [compare, test] : tests) {
    rewriter.setInsertionPoint(compare);
    bool isNegated = test.moment == Moment::NotFirst || test.moment == Moment::NotLast;
    Value replacement;
    if (test.moment == Moment::Last || test.moment == Moment::NotLast)
      replacement = compareNext(rewriter, test.isEqual, isNegated);
    else
      replacement = arith::CmpIOp::create(
          rewriter, loc, isNegated ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq, count,
          zero);
    compare.getResult().replaceAllUsesWith(replacement);
  }
  Value used = isSelected ? Value(arith::SelectOp(select)) : Value(argument);
  // The distance from the first value.
  for (Operation *user : llvm::make_early_inc_range(used.getUsers()))
    if (auto difference = dyn_cast<arith::SubIOp>(user);
        difference && difference.getLhs() == start && difference.getRhs() == used) {
      rewriter.setInsertionPoint(difference);
      Value back = constant(-step);
      difference.replaceAllUsesWith(rewriter.createOrFold<arith::MulIOp>(loc, count, back));
    }
  rewriter.setInsertionPointToStart(counting.getBody());
  Value moved = rewriter.createOrFold<arith::MulIOp>(loc, count, size);
  Value value = rewriter.createOrFold<arith::AddIOp>(loc, start, moved);
  used.replaceUsesWithIf(
      value, [&](OpOperand &use) { return use.getOwner() != counting.getBody()->getTerminator(); });
  return counting;
}
