// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StridedCounter.h"
#include "tessera/Analysis/Access/IntegerRanges.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using llvm::APInt;

namespace {

/// A comparison with the counter on its left side, as "left >= right" or "left <= right".
struct BoundTest {
  OffsetValue left, right;
  bool isUp;
  bool isNegated;

  static std::optional<BoundTest> of(arith::CmpIOp compare, Value counter, bool isUp);
};

} // namespace

/// A strict comparison is one with a bound that is 1 further.
std::optional<BoundTest> BoundTest::of(arith::CmpIOp compare, Value counter, bool isUp) {
  using arith::CmpIPredicate;
  if (!compare.getLhs().getType().isInteger())
    return std::nullopt;
  BoundTest test{OffsetValue::of(compare.getLhs()), OffsetValue::of(compare.getRhs()), isUp, false};
  CmpIPredicate predicate = compare.getPredicate();
  if (test.left.base != counter) {
    std::swap(test.left, test.right);
    if (test.left.base != counter)
      return std::nullopt;
    predicate = exchangeSides(predicate);
  }
  switch (predicate) {
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

/// A carried value `c` whose next value is `select(wraps, start, c + step)`.
std::optional<StridedCounter> StridedCounter::find(scf::ForOp loop, unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  // As elsewhere, counters of 32 bits and more are taken not to wrap.
  if (!argument.getType().isInteger(32) && !argument.getType().isInteger(64))
    return std::nullopt;
  auto select = loop.getYieldedValues()[number].getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || !select->hasOneUse() || select->getBlock() != loop.getBody() ||
      compare->getBlock() != loop.getBody() || !loop.getResult(number).use_empty())
    return std::nullopt;
  StridedCounter counter;
  counter.number = number;
  counter.start = loop.getInitArgs()[number];
  OffsetValue start = OffsetValue::of(counter.start);
  for (bool startsIfTrue : {true, false}) {
    OffsetValue reset =
        OffsetValue::of(startsIfTrue ? select.getTrueValue() : select.getFalseValue());
    OffsetValue next =
        OffsetValue::of(startsIfTrue ? select.getFalseValue() : select.getTrueValue());
    if (!(reset == start) || next.base != argument || next.offset.isZero() ||
        !isSmall(next.offset) || !isSmall(start.offset))
      continue;
    bool isUp = next.offset.isStrictlyPositive();
    std::optional<BoundTest> test = BoundTest::of(compare, argument, isUp);
    if (!test || test->isNegated == startsIfTrue || !isSmall(test->left.offset) ||
        !isSmall(test->right.offset) || (test->right.base && start.base) ||
        (test->right.base && !loop.isDefinedOutsideOfLoop(test->right.base)))
      continue;
    counter.step = next.offset;
    // The iteration with number n is the last one if start + n * step reaches the bound.
    counter.bound = {test->right.base, test->right.offset - test->left.offset};
    OffsetValue end = {counter.bound.base, counter.bound.offset + next.offset};
    counter.from = isUp ? start : end;
    counter.to = isUp ? end : start;
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

/// The distance is at least 1, as a tile has an iteration in any case.
Value StridedCounter::emitPeriod(OpBuilder &builder, Location loc) const {
  Type type = start.getType();
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  APInt one(step.getBitWidth(), 1);
  OffsetValue end = {to.base,
                     to.offset - (from.base ? APInt::getZero(step.getBitWidth()) : from.offset)};
  Value distance = end.emit(builder, loc, type);
  if (from.base)
    distance = builder.createOrFold<arith::SubIOp>(loc, distance, from.emit(builder, loc, type));
  distance = builder.createOrFold<arith::MaxSIOp>(loc, distance, constant(one));
  // A sum of two positive numbers does not wrap as an unsigned one.
  APInt size = step.abs();
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
  Value last, notLast;
  auto yieldNext = [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> added) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value next = arith::AddIOp::create(builder, loc, added.front(), one);
    last = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, next, period);
    notLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, next, period);
    return SmallVector<Value>{arith::SelectOp::create(builder, loc, last, zero, next)};
  };
  auto counting = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext));
  BlockArgument argument = counting.getRegionIterArg(number);
  Value count = counting.getRegionIterArgs().back();
  counting.getBody()->getTerminator()->setOperand(number, argument);

  bool isUp = step.isStrictlyPositive();
  OffsetValue first = OffsetValue::of(start);
  counting.getBody()->walk([&](arith::CmpIOp compare) {
    if (std::optional<BoundTest> test = BoundTest::of(compare, argument, isUp);
        test && test->right.base == bound.base &&
        test->right.offset - test->left.offset == bound.offset)
      compare.getResult().replaceAllUsesWith(test->isNegated ? notLast : last);
    // Comparisons with the first value ask for the first iteration.
    if (compare.getPredicate() != arith::CmpIPredicate::eq &&
        compare.getPredicate() != arith::CmpIPredicate::ne)
      return;
    for (unsigned side : {0, 1})
      if (compare->getOperand(side) == argument &&
          OffsetValue::of(compare->getOperand(1 - side)) == first) {
        compare->setOperand(side, count);
        compare->setOperand(1 - side, zero);
      }
  });
  rewriter.setInsertionPointToStart(counting.getBody());
  Value moved = arith::MulIOp::create(rewriter, loc, count, size);
  Value value = rewriter.createOrFold<arith::AddIOp>(loc, start, moved);
  argument.replaceUsesWithIf(
      value, [&](OpOperand &use) { return use.getOwner() != counting.getBody()->getTerminator(); });
  return counting;
}
