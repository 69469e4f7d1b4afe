// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A `while` loop that counts is a `for` loop in another spelling:
//
//     while i < n: ...; i += 128        for i in range(i, n, 128)
//     while left > 0: ...; left -= 128  for j in range(0, left, 128), with left - j
//
// Analyses of accesses know what the variable of a `for` is a multiple of, and planners of
// schedules know how often it runs. They know neither of a `while`.

#include "PassedValues.h"
#include "tessera/Analysis/Access/IntegerRanges.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "tile-count-while-loops"

namespace tessera::tile {
#define GEN_PASS_DEF_TILECOUNTWHILELOOPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

std::optional<SmallVector<unsigned>> tessera::tile::findPassedValues(scf::WhileOp loop) {
  SmallVector<unsigned> passed;
  for (Value value : loop.getConditionOp().getArgs()) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != loop.getBeforeBody())
      return std::nullopt;
    passed.push_back(argument.getArgNumber());
  }
  return passed;
}

namespace {

/// How a `while` counts.
struct Count {
  /// The number of the counter among what the loop carries.
  unsigned number;
  arith::CmpIPredicate predicate;
  Value bound;
  /// The amount that an iteration adds, or takes away if the loop counts down. It is above 0.
  Value step;

  bool isDown() const {
    return predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge;
  }
};

/// The step of a counter that is moved from `counter` to `next`; null if it moves in another way.
Value findStep(Value counter, Value next, bool isDown, scf::WhileOp loop, OpBuilder &builder) {
  IntegerRanges ranges;
  auto isAboveZero = [&](Value step) { return ranges.get(step).smin().isStrictlyPositive(); };
  if (auto sub = next.getDefiningOp<arith::SubIOp>(); sub && isDown && sub.getLhs() == counter)
    return loop.isDefinedOutsideOfLoop(sub.getRhs()) && isAboveZero(sub.getRhs()) ? sub.getRhs()
                                                                                  : Value();
  auto add = next.getDefiningOp<arith::AddIOp>();
  if (!add || (add.getLhs() != counter && add.getRhs() != counter))
    return Value();
  Value step = add.getLhs() == counter ? add.getRhs() : add.getLhs();
  if (!loop.isDefinedOutsideOfLoop(step))
    return Value();
  if (!isDown)
    return isAboveZero(step) ? step : Value();
  // The canonical form of a difference is a sum.
  APInt amount;
  if (!matchPattern(step, m_ConstantInt(&amount)) || !amount.isNegative() ||
      amount.isMinSignedValue())
    return Value();
  builder.setInsertionPoint(loop);
  return arith::ConstantOp::create(builder, loop.getLoc(),
                                   builder.getIntegerAttr(step.getType(), -amount));
}

/// True if a narrow counter may wrap beyond its bound: the `while` goes on then, and a `for` would
/// end. Counters of 32 bits and more are taken not to.
bool mayWrap(const Count &count, const ConstantIntRanges &bounds) {
  if (bounds.smax().getBitWidth() >= 32)
    return false;
  APInt step = IntegerRanges().get(count.step).smax();
  bool wraps = false;
  if (count.isDown())
    (void)bounds.smin().ssub_ov(step, wraps);
  else
    (void)bounds.smax().sadd_ov(step, wraps);
  return wraps;
}

std::optional<Count> findCount(scf::WhileOp loop, ArrayRef<unsigned> passed) {
  Block *before = loop.getBeforeBody();
  auto compare = loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare->getBlock() != before || before->getOperations().size() != 2)
    return std::nullopt;
  Value counter = compare.getLhs(), bound = compare.getRhs();
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (loop.isDefinedOutsideOfLoop(counter)) {
    std::swap(counter, bound);
    predicate = exchangeSides(predicate);
  }
  auto argument = dyn_cast<BlockArgument>(counter);
  if (!argument || argument.getOwner() != before || !argument.getType().isInteger() ||
      !loop.isDefinedOutsideOfLoop(bound))
    return std::nullopt;
  // An inclusive bound is moved by one, which must not wrap.
  ConstantIntRanges bounds = IntegerRanges().get(bound);
  switch (predicate) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::sgt:
    break;
  case arith::CmpIPredicate::sle:
    if (bounds.smax().isMaxSignedValue())
      return std::nullopt;
    break;
  case arith::CmpIPredicate::sge:
    if (bounds.smin().isMinSignedValue())
      return std::nullopt;
    break;
  default:
    return std::nullopt;
  }
  unsigned number = argument.getArgNumber();
  const auto *place = llvm::find(passed, number);
  if (place == passed.end())
    return std::nullopt;
  Count count{number, predicate, bound, Value()};
  OpBuilder builder(loop);
  count.step = findStep(loop.getAfterBody()->getArgument(place - passed.begin()),
                        loop.getYieldedValues()[number], count.isDown(), loop, builder);
  return count.step && !mayWrap(count, bounds) ? std::optional(count) : std::nullopt;
}

void rewrite(scf::WhileOp loop, const Count &count, ArrayRef<unsigned> passed) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value first = loop.getInits()[count.number];
  Type type = first.getType();
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, number));
  };
  auto subtract = [&](Value a, Value b) -> Value {
    return builder.createOrFold<arith::SubIOp>(loc, a, b);
  };
  Value lower = first, upper = count.bound, mirror;
  switch (count.predicate) {
  case arith::CmpIPredicate::sle:
    upper = builder.createOrFold<arith::AddIOp>(loc, upper, constant(1));
    break;
  case arith::CmpIPredicate::sgt:
    // From `first` down to above 0: the distance from `first` ascends from 0 to below `first`.
    if (matchPattern(upper, m_Zero())) {
      mirror = first;
      lower = constant(0);
      upper = first;
      break;
    }
    // -1 - i, which wraps for no i, ascends.
    mirror = constant(-1);
    lower = subtract(mirror, first);
    upper = subtract(mirror, upper);
    break;
  case arith::CmpIPredicate::sge:
    mirror = constant(-1);
    lower = subtract(mirror, first);
    upper = subtract(constant(0), upper);
    break;
  default:
    break;
  }
  auto counting = scf::ForOp::create(builder, loc, lower, upper, count.step, loop.getInits());
  counting->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  builder.setInsertionPointToStart(counting.getBody());
  Value counter = counting.getInductionVar();
  if (mirror)
    counter = subtract(mirror, counter);
  Block *after = loop.getAfterBody();
  for (auto [place, from] : llvm::enumerate(passed)) {
    after->getArgument(place).replaceAllUsesWith(
        from == count.number ? counter : Value(counting.getRegionIterArg(from)));
    loop.getResult(place).replaceAllUsesWith(counting.getResult(from));
  }
  Block *body = counting.getBody();
  if (body->mightHaveTerminator())
    body->getTerminator()->erase();
  body->getOperations().splice(body->end(), after->getOperations());
  loop.erase();
}

struct CountWhileLoopsPass
    : public tessera::tile::impl::TileCountWhileLoopsPassBase<CountWhileLoopsPass> {
  void runOnOperation() final {
    SmallVector<scf::WhileOp> loops;
    getOperation()->walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    for (scf::WhileOp loop : loops) {
      // The bound and the step stand before the loop then, and the test alone in its first region.
      moveLoopInvariantCode(loop);
      std::optional<SmallVector<unsigned>> passed = findPassedValues(loop);
      if (!passed)
        continue;
      if (std::optional<Count> count = findCount(loop, *passed)) {
        LDBG() << "while becomes for: " << loop.getLoc();
        rewrite(loop, *count, *passed);
      }
    }
  }
};

} // namespace

#undef DEBUG_TYPE
