// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A flat persistent loop goes over all K tiles of all tiles of a program, and opens and closes
// tiles by conditionals on a counter (FlatCounter.h). Planners of GPU schedules cannot prefetch in
// a loop that stores, and dots cannot stay in flight across a conditional. As two loops, the kernel
// is a persistent matmul like others.
//
// Three steps, each of which preserves the order of effects:
//
//     split     for t in range(T):              for tile in range(T / k_tiles):
//                   body(ki)                        for ki in range(k_tiles):
//                                                       body(ki)
//     hoist     if ki == 0: x = f()             x = f(), before the inner loop
//               else: x = g(x)                  the inner loop carries g(x)
//     sink      if ki == k_tiles - 1: store     the store, behind the inner loop
//
// T need not be a multiple of k_tiles. The iterations that remain never close a tile. They are
// dead, since only the closing conditionals write to memory and nothing behind the loop uses its
// results. The same holds if k_tiles is not positive, unless the counter's tests say otherwise
// (PeriodTest).
//
// A `while` over tiles is a flat loop as well, if only the closing conditional goes on to the next
// tile. Its outer loop counts tiles as the `while` does, and each of them is done to its end:
//
//     while tile < tiles:                       for tile in range(tile, tiles, programs):
//         body(ki)                                  for ki in range(k_tiles):
//         if ki == k_tiles - 1: store                   body(ki)
//         tile = where(ki == k_tiles - 1,           store
//                      tile + programs, tile)

#include "CarriedFlags.h"
#include "FlatCounter.h"
#include "PassedValues.h"
#include "StridedCounter.h"
#include "tessera/Analysis/Access/IntegerRanges.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Support/EmitRemark.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILESPLITFLATLOOPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// A conditional, or a select, on the first or last iteration of a tile.
struct MomentBranch {
  Operation *op;
  Value condition;
  bool isNegated; ///< the `else` side is that of the moment

  scf::IfOp getIf() const { return dyn_cast<scf::IfOp>(op); }
  Block *getBlock(bool ofMoment) const {
    scf::IfOp branch = getIf();
    return !branch ? nullptr : ofMoment != isNegated ? branch.thenBlock() : branch.elseBlock();
  }
  Value getValue(unsigned number, bool ofMoment) const {
    if (Block *block = getBlock(ofMoment))
      return block->getTerminator()->getOperand(number);
    return op->getOperand(ofMoment != isNegated ? 1 : 2);
  }
  /// The values of the loop's body that a side uses.
  SetVector<Value> getCaptured(bool ofMoment) const;
};

/// The iterations of a tile, and whether tiles are closed at all; null if they are.
struct Period {
  Value iterations, isCounted;
};

/// The bounds of a loop over tiles.
struct TileRange {
  Value first, bound, step;
  /// The number of the carried value that is the tile; none if the loop counts from 0.
  std::optional<unsigned> carried = std::nullopt;
};

class FlatLoop {
public:
  /// `range` is that of a `while`, whose body `loop` has. Its own bounds mean nothing then.
  FlatLoop(scf::ForOp loop, FlatCounter counter, std::optional<TileRange> range)
      : loop(loop), counter(std::move(counter)), range(range) {}

  /// Finds the conditionals. If the loop cannot be split, returns the reason.
  std::optional<StringRef> plan();
  /// True if a conditional on the last iteration writes to memory.
  bool closesTiles() const { return writesAtEnd; }
  void split();

private:
  std::optional<StringRef> checkFirst(const MomentBranch &branch);
  std::optional<StringRef> checkLast(const MomentBranch &branch);
  std::optional<StringRef> checkRange();
  std::optional<StringRef> planCounts();
  Period emitPeriod(OpBuilder &builder);
  TileRange emitRange(OpBuilder &builder, const Period &period);
  void hoist(const MomentBranch &branch);
  void yieldOther(const MomentBranch &branch);
  void sink(const MomentBranch &branch);
  void carryForSinking(const SetVector<Value> &values);
  Value emitBehind(Value value, IRMapping &mapping, OpBuilder &builder);

  scf::ForOp loop; ///< the inner one, after the split
  FlatCounter counter;
  std::optional<TileRange> range;
  SmallVector<MomentBranch> firsts, lasts;
  SmallVector<PeriodTest> tests;
  /// Where the results of selects in `lasts` go behind the loop.
  llvm::DenseMap<Operation *, SmallVector<OpOperand *, 1>> usesOfSelects;
  bool writesAtEnd = false;
  bool isPeriodPositive = false;
};

struct SplitFlatLoopsPass
    : public tessera::tile::impl::TileSplitFlatLoopsPassBase<SplitFlatLoopsPass> {
  void runOnOperation() final;
  bool split(scf::ForOp loop);
  bool split(scf::WhileOp loop);
};

//===----------------------------------------------------------------------===//
// Properties of ops and values
//===----------------------------------------------------------------------===//

SetVector<Value> MomentBranch::getCaptured(bool ofMoment) const {
  SetVector<Value> values;
  if (Block *block = getBlock(ofMoment))
    getUsedValuesDefinedAbove(*block->getParent(), values);
  else if (!getIf())
    values.insert(op->getOperand(ofMoment != isNegated ? 1 : 2));
  return values;
}

/// True if an op and all within it at most read memory.
bool readsAtMost(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op); load && load.getIsVolatile())
    return false;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  return effects && llvm::all_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
           return isa<MemoryEffects::Read>(effect.getEffect());
         });
}

/// True if `value` is computed by pure ops of the loop's body alone, or outside of it. Results of
/// `known` count as such.
bool isPureInLoop(Value value, scf::ForOp loop, ArrayRef<MomentBranch> known, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 64;
  Operation *op = value.getDefiningOp();
  if (!op || loop.isDefinedOutsideOfLoop(value) ||
      llvm::any_of(known, [&](const MomentBranch &branch) { return branch.op == op; }))
    return true;
  if (depth == kMaxDepth || !isPure(op))
    return false;
  SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  return llvm::all_of(operands,
                      [&](Value operand) { return isPureInLoop(operand, loop, known, depth + 1); });
}

/// The value in an iteration of which `mapping` has the loop's arguments. Clones pure ops.
Value cloneValue(Value value, scf::ForOp loop, IRMapping &mapping, OpBuilder &builder) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || loop.isDefinedOutsideOfLoop(value))
    return value;
  SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  for (Value operand : operands)
    mapping.map(operand, cloneValue(operand, loop, mapping, builder));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// A zero of a type that has one.
Value createZero(OpBuilder &builder, Location loc, Type type) {
  TypedAttr zero = builder.getZeroAttr(type);
  return zero ? arith::ConstantOp::create(builder, loc, zero) : Value();
}

bool hasZero(Type type) { return getElementTypeOrSelf(type).isIntOrIndexOrFloat(); }

/// True if an op is cheap enough to be computed again behind the loop: no dot or reduction.
bool isCheap(Operation *op) {
  return isPure(op) && op->getNumRegions() == 0 &&
         (op->hasTrait<OpTrait::Elementwise>() || getMotion(op) || op->getNumOperands() == 0 ||
          llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>));
}

} // namespace

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

std::optional<StringRef> FlatLoop::plan() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isIf = isa<scf::IfOp>(op);
    if (!isIf && !isa<arith::SelectOp>(op))
      continue;
    Value condition = op.getOperand(0);
    // The recurrence itself goes away.
    if (!condition.getType().isInteger(1) || counter.getRecurrence() == &op)
      continue;
    PeriodTest test = PeriodTest::Equal;
    Moment moment = counter.classify(condition, test);
    MomentBranch branch{&op, condition, moment == Moment::NotFirst || moment == Moment::NotLast};
    if (moment == Moment::First || moment == Moment::NotFirst) {
      if (std::optional<StringRef> why = checkFirst(branch)) {
        if (isIf)
          return why;
        continue;
      }
      firsts.push_back(branch);
    } else if (moment == Moment::Last || moment == Moment::NotLast) {
      lasts.push_back(branch);
      tests.push_back(test);
      writesAtEnd |= isIf && mayWriteMemory(&op);
    }
  }
  if (!writesAtEnd)
    return StringRef("no conditional on its last iteration of a tile writes to memory");
  if (!counter.getPeriod().base && counter.getPeriod().offset.sle(1))
    return StringRef("a tile has one iteration");
  for (OpResult result : loop.getResults())
    if (!result.use_empty())
      return StringRef("values that it carries are used behind it");

  // A select that is used in the loop may stay there.
  for (auto *it = lasts.begin(); it != lasts.end();) {
    std::optional<StringRef> why = checkLast(*it);
    if (why && it->getIf())
      return why;
    if (why) {
      tests.erase(tests.begin() + (it - lasts.begin()));
      it = lasts.erase(it);
    } else {
      ++it;
    }
  }
  Operation *firstClosing = lasts.front().op;
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto isThis = [&](const MomentBranch &branch) { return branch.op == &op; };
    if (llvm::any_of(lasts, isThis))
      continue;
    bool isBehind = firstClosing->isBeforeInBlock(&op);
    if (!readsAtMost(&op))
      return StringRef("it writes to memory in other iterations than the last one of a tile");
    if (isBehind && !isMemoryEffectFree(&op))
      return StringRef("it reads memory behind the conditional on its last iteration of a tile");
    if (isBehind && llvm::any_of(firsts, isThis))
      return StringRef("it opens a tile behind the conditional that closes one");
  }
  if (std::optional<StringRef> why = checkRange())
    return why;
  return planCounts();
}

/// A `while` has to go on to the next tile where a tile ends, and only there.
std::optional<StringRef> FlatLoop::checkRange() {
  if (!range)
    return std::nullopt;
  OpOperand &next = loop.getBody()->getTerminator()->getOpOperand(*range->carried);
  for (const MomentBranch &branch : lasts) {
    auto result = dyn_cast<OpResult>(next.get());
    if (!result || result.getOwner() != branch.op ||
        branch.getValue(result.getResultNumber(), /*ofMoment=*/false) !=
            loop.getRegionIterArg(*range->carried))
      continue;
    auto sum =
        branch.getValue(result.getResultNumber(), /*ofMoment=*/true).getDefiningOp<arith::AddIOp>();
    Value tile = loop.getRegionIterArg(*range->carried);
    if (sum && ((sum.getLhs() == tile && sum.getRhs() == range->step) ||
                (sum.getRhs() == tile && sum.getLhs() == range->step)))
      return std::nullopt;
  }
  return StringRef("it goes on to the next tile elsewhere than where a tile ends");
}

/// The side of the first iteration is computed before the inner loop, the other one at the end of
/// each iteration for the next one.
std::optional<StringRef> FlatLoop::checkFirst(const MomentBranch &branch) {
  for (Value value : branch.getCaptured(/*ofMoment=*/true))
    if (!isPureInLoop(value, loop, firsts))
      return StringRef("the first iteration of a tile uses what the loop loads before it");
  if (Block *block = branch.getBlock(/*ofMoment=*/false))
    for (Operation &op : block->without_terminator())
      if (!isPure(&op))
        return StringRef("a conditional accesses memory in all iterations but the first of a tile");
  for (unsigned number = 0; number < branch.op->getNumResults(); ++number)
    if (!isPureInLoop(branch.getValue(number, /*ofMoment=*/false), loop, firsts))
      return StringRef("iterations but the first of a tile use what the loop loads");
  return std::nullopt;
}

/// Results of the last iteration are for the next tile alone.
std::optional<StringRef> FlatLoop::checkLast(const MomentBranch &branch) {
  for (Operation *user : branch.op->getUsers()) {
    Operation *inBody = loop.getBody()->findAncestorOpInBlock(*user);
    if (inBody != loop.getBody()->getTerminator() &&
        llvm::none_of(lasts, [&](const MomentBranch &other) { return other.op == inBody; }))
      return StringRef("the loop uses what the last iteration of a tile computes");
  }
  if (Block *block = branch.getBlock(/*ofMoment=*/false))
    for (Operation &op : block->without_terminator())
      if (!isPure(&op))
        return StringRef("a conditional accesses memory in all iterations but the last of a tile");
  SmallVector<Value> values = branch.getCaptured(/*ofMoment=*/true).takeVector();
  SetVector<Value> seen(values.begin(), values.end());
  for (size_t next = 0; next < seen.size(); ++next) {
    Value value = seen[next];
    Operation *op = value.getDefiningOp();
    bool isOpened = llvm::any_of(firsts, [&](const MomentBranch &first) { return first.op == op; });
    if (!op || isOpened || loop.isDefinedOutsideOfLoop(value) || hasZero(value.getType()))
      continue;
    if (!isCheap(op))
      return StringRef("the last iteration of a tile uses pointers that the loop loads");
    seen.insert(op->operand_begin(), op->operand_end());
  }
  return std::nullopt;
}

/// The tests of the counter have to agree about a period that is not positive.
std::optional<StringRef> FlatLoop::planCounts() {
  const OffsetValue &period = counter.getPeriod();
  if (!period.base) {
    isPeriodPositive = true;
  } else if (period.offset.isZero()) {
    IntegerRanges ranges;
    isPeriodPositive = ranges.get(period.base).smin().isStrictlyPositive();
  }
  IntegerRanges ranges;
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
      !ranges.isNonNegative(loop.getLowerBound()))
    return StringRef("its lower bound may be negative, or its step is not constant");
  // If no tile is closed, the other conditions do not matter.
  bool closesNone = true;
  for (auto [branch, test] : llvm::zip_equal(lasts, tests))
    closesNone &= test == PeriodTest::Equal || !mayWriteMemory(branch.op);
  bool isSame = llvm::all_equal(tests) && tests.front() == counter.getWrap();
  if (isPeriodPositive || closesNone || (isSame && period.offset.isZero()))
    return std::nullopt;
  return StringRef("its conditions may differ for a period that is not positive");
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// True if a number is `n / s` rounded up, and a period the same of max(n, 1). Where they differ, n
/// and the number are not positive.
static bool isPeriodBelowOne(Value number, const OffsetValue &period) {
  auto divided = number.getDefiningOp<DivIntOp>();
  auto least =
      period.base && period.offset.isZero() ? period.base.getDefiningOp<DivIntOp>() : DivIntOp();
  APInt size, by;
  if (!divided || !least || !matchPattern(divided.getRhs(), m_ConstantInt(&size)) ||
      !matchPattern(least.getRhs(), m_ConstantInt(&by)) || size != by ||
      divided.getSignedness() != Signedness::Signed)
    return false;
  OffsetValue sum = OffsetValue::of(divided.getLhs()), most = OffsetValue::of(least.getLhs());
  auto max = most.base ? most.base.getDefiningOp<arith::MaxSIOp>() : arith::MaxSIOp();
  return max && matchPattern(max.getRhs(), m_One()) && most.offset == size - 1 &&
         OffsetValue::of(max.getLhs()) == OffsetValue{sum.base, sum.offset - (size - 1)};
}

/// The other factor of a product with the period, or with what is below 1 where the period is 1.
/// Then the product is 0, or the other factor is no less as an unsigned number.
static Value divideProduct(Value product, const OffsetValue &period) {
  auto mul = product.getDefiningOp<arith::MulIOp>();
  auto isPeriod = [&](Value factor) {
    return OffsetValue::of(factor) == period || isPeriodBelowOne(factor, period);
  };
  if (mul && isPeriod(mul.getLhs()))
    return mul.getRhs();
  return mul && isPeriod(mul.getRhs()) ? mul.getLhs() : Value();
}

Period FlatLoop::emitPeriod(OpBuilder &builder) {
  Location loc = loop.getLoc();
  Type type = counter.getPeriod().base ? counter.getPeriod().base.getType()
                                       : loop.getInductionVar().getType();
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  unsigned width = type.getIntOrFloatBitWidth();
  Value zero = constant(APInt::getZero(width)), one = constant(APInt(width, 1));
  Value written = counter.getPeriod().emit(builder, loc, type), period = written;
  if (isPeriodPositive)
    return {period, Value()};
  // If a test for equality does not hold for a period that is not positive, no tile is closed.
  PeriodTest test =
      llvm::is_contained(tests, PeriodTest::Equal) ? PeriodTest::Equal : tests.front();
  Value isCounted;
  if (test == PeriodTest::Equal) {
    isCounted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, period, one);
  } else if (test == PeriodTest::Remainder) {
    Value opposite = arith::SubIOp::create(builder, loc, zero, period);
    period = arith::MaxSIOp::create(builder, loc, period, opposite);
    isCounted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, period, one);
  } else {
    period = arith::MaxSIOp::create(builder, loc, period, one);
    if (test == PeriodTest::AtLeastOf)
      isCounted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, written,
                                        constant(APInt::getSignedMinValue(width)));
  }
  return {period, isCounted};
}

TileRange FlatLoop::emitRange(OpBuilder &builder, const Period &period) {
  Location loc = loop.getLoc();
  if (range) {
    // Without an end to a tile, the `while` has none either.
    if (period.isCounted)
      range->bound =
          arith::SelectOp::create(builder, loc, period.isCounted, range->bound, range->first);
    return *range;
  }
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Type type = upper.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  Value zero = constant(0), one = constant(1);
  bool isSimple = matchPattern(lower, m_Zero()) && matchPattern(step, m_One());

  // The bounds are not negative, so that no difference overflows.
  Value iterations = builder.createOrFold<arith::MaxSIOp>(loc, upper, lower);
  if (!isSimple) {
    Value distance = arith::SubIOp::create(builder, loc, iterations, lower);
    Value last = arith::SubIOp::create(builder, loc, distance, one);
    Value more = DivIntOp::create(builder, loc, Signedness::Signed, last, step);
    Value count = arith::AddIOp::create(builder, loc, more, one);
    Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, distance, zero);
    iterations = arith::SelectOp::create(builder, loc, isAny, count, zero);
  }
  Value tiles = DivIntOp::create(builder, loc, Signedness::Signed, iterations, period.iterations);
  // If the iterations are a product with the period, the quotient is the other factor. It is less
  // if the product wraps, and never more. The minimum shows its range.
  if (Value factor = isSimple ? divideProduct(upper, counter.getPeriod()) : Value())
    tiles = arith::MinUIOp::create(builder, loc, tiles, factor);
  if (period.isCounted)
    tiles = arith::SelectOp::create(builder, loc, period.isCounted, tiles, zero);
  return {zero, tiles, one};
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

/// If no tile has a period that is not positive, quotients by the period are the tile's number.
static void replaceQuotients(Value variable, Value tile, Value period) {
  for (Operation *user : llvm::make_early_inc_range(variable.getUsers()))
    if (auto quotient = dyn_cast<DivIntOp>(user);
        quotient && quotient.getSignedness() == Signedness::Signed &&
        quotient.getLhs() == variable && quotient.getRhs() == period)
      quotient.replaceAllUsesWith(tile);
}

void FlatLoop::split() {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Period period = emitPeriod(builder);
  TileRange tiles = emitRange(builder, period);
  Type type = period.iterations.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  Value zero = constant(0), one = constant(1);
  scf::ForOp flat = loop;
  auto outer =
      scf::ForOp::create(builder, loc, tiles.first, tiles.bound, tiles.step, flat.getInitArgs());
  if (outer.getNumResults() == 0)
    outer.getBody()->getTerminator()->erase();
  builder.setInsertionPointToStart(outer.getBody());
  auto inner =
      scf::ForOp::create(builder, loc, zero, period.iterations, one, outer.getRegionIterArgs());
  if (inner.getNumResults() == 0)
    inner.getBody()->getTerminator()->erase();
  inner->setDiscardableAttrs(flat->getDiscardableAttrDictionary());
  Value number = inner.getInductionVar();
  builder.setInsertionPointToStart(inner.getBody());
  Value variable = flat.getInductionVar();
  if (!variable.use_empty()) {
    if (!counter.getCarried())
      replaceQuotients(variable, outer.getInductionVar(), period.iterations);
    Value first = arith::MulIOp::create(builder, loc, outer.getInductionVar(), period.iterations);
    Value iteration = arith::AddIOp::create(builder, loc, first, number);
    Value distance = arith::MulIOp::create(builder, loc, iteration, flat.getStep());
    variable.replaceAllUsesWith(
        arith::AddIOp::create(builder, loc, flat.getLowerBound(), distance));
  }
  for (auto [old, argument] : llvm::zip_equal(flat.getRegionIterArgs(), inner.getRegionIterArgs()))
    old.replaceAllUsesWith(argument);
  if (tiles.carried) {
    BlockArgument tile = inner.getRegionIterArg(*tiles.carried);
    tile.replaceAllUsesWith(outer.getInductionVar());
  }
  inner.getBody()->getOperations().splice(inner.getBody()->end(), flat.getBody()->getOperations());
  builder.setInsertionPointToEnd(outer.getBody());
  scf::YieldOp::create(builder, loc, inner.getResults());

  // The counter is the variable of the inner loop.
  Value value = counter.getValue();
  Operation *yield = inner.getBody()->getTerminator();
  if (std::optional<unsigned> carried = counter.getCarried()) {
    BlockArgument argument = inner.getRegionIterArg(*carried);
    if (isa<BlockArgument>(value))
      value = argument;
    yield->setOperand(*carried, argument);
  }
  flat.erase();
  loop = inner;
  builder.setInsertionPointToStart(inner.getBody());
  Value count = number;
  if (!counter.getShift().isZero())
    count = OffsetValue{number, -counter.getShift()}.emit(builder, loc, type);
  value.replaceUsesWithIf(count, [&](OpOperand &use) {
    return use.getOwner() != yield && use.getOwner() != count.getDefiningOp();
  });

  // The carried value is constant now, and so is the condition of the wrap. Other ops than
  // conditionals may use it.
  if (Value wraps = counter.getWrapsFirst()) {
    PeriodTest test;
    auto predicate = counter.classify(wraps, test) == Moment::First ? arith::CmpIPredicate::eq
                                                                    : arith::CmpIPredicate::ne;
    wraps.replaceAllUsesWith(arith::CmpIOp::create(builder, loc, predicate, number, zero));
  }

  for (const MomentBranch &branch : firsts)
    hoist(branch);
  for (const MomentBranch &branch : lasts)
    yieldOther(branch);
  for (const MomentBranch &branch : llvm::reverse(lasts))
    sink(branch);
}

/// The results of `branch` are values that the inner loop carries, or has in front of it.
void FlatLoop::hoist(const MomentBranch &branch) {
  OpBuilder builder(loop);
  Location loc = branch.op->getLoc();
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (Value value : branch.getCaptured(/*ofMoment=*/true))
    first.map(value, cloneValue(value, loop, first, builder));
  if (Block *block = branch.getBlock(/*ofMoment=*/true))
    for (Operation &op : block->without_terminator())
      builder.clone(op, first);

  SmallVector<Value> initial, next;
  SmallVector<unsigned> numbers;
  SmallVector<std::optional<unsigned>> replaced; // carried values that may be these
  Operation *yield = loop.getBody()->getTerminator();
  for (OpResult result : branch.op->getResults()) {
    unsigned number = result.getResultNumber();
    if (result.use_empty())
      continue;
    Value opened = first.lookupOrDefault(branch.getValue(number, /*ofMoment=*/true));
    Value other = branch.getValue(number, /*ofMoment=*/false);
    auto argument = dyn_cast<BlockArgument>(other);
    if (argument && argument.getOwner() == loop.getBody() && argument.getArgNumber() > 0 &&
        loop.getTiedLoopYieldedValue(argument)->get() == result) {
      // The same in all iterations of a tile.
      loop.getTiedLoopResult(argument).replaceAllUsesWith(opened);
      result.replaceAllUsesWith(opened);
      continue;
    }
    builder.setInsertionPoint(yield);
    IRMapping later;
    Value one = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(loop.getInductionVar().getType(), 1));
    later.map(loop.getInductionVar(),
              arith::AddIOp::create(builder, loc, loop.getInductionVar(), one));
    later.map(loop.getRegionIterArgs(), yield->getOperands());
    initial.push_back(opened);
    next.push_back(cloneValue(other, loop, later, builder));
    numbers.push_back(number);
    bool isCarried = argument && argument.getOwner() == loop.getBody();
    replaced.push_back(isCarried && argument.getArgNumber() > 0
                           ? std::optional(argument.getArgNumber() - 1)
                           : std::nullopt);
  }
  if (!initial.empty()) {
    IRRewriter rewriter(builder);
    unsigned carried = loop.getNumRegionIterArgs();
    rewriter.setInsertionPoint(loop);
    loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, initial, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return next; }));
    for (auto [index, number] : llvm::enumerate(numbers))
      branch.op->getResult(number).replaceAllUsesWith(loop.getRegionIterArg(carried + index));
    branch.op->erase();
    // The new value is the old one but in the first iteration, and the same behind the loop.
    for (auto [index, old] : llvm::enumerate(replaced)) {
      if (!old || !loop.getRegionIterArg(*old).use_empty())
        continue;
      loop.getResult(*old).replaceAllUsesWith(loop.getResult(carried + index));
      loop.getBody()->getTerminator()->setOperand(*old, loop.getRegionIterArg(*old));
    }
    return;
  }
  branch.op->erase();
}

/// Carries out of the loop, in new places, those values that cannot be computed behind it.
void FlatLoop::carryForSinking(const SetVector<Value> &values) {
  SetVector<Value> seen(values), carried;
  Operation *yield = loop.getBody()->getTerminator();
  for (size_t next = 0; next < seen.size(); ++next) {
    Value value = seen[next];
    Operation *op = value.getDefiningOp();
    if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar() ||
        llvm::is_contained(yield->getOperands(), value))
      continue;
    if (op && isCheap(op))
      seen.insert(op->operand_begin(), op->operand_end());
    else
      carried.insert(value);
  }
  if (carried.empty())
    return;
  IRRewriter rewriter(loop->getContext());
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> initial;
  for (Value value : carried) {
    auto argument = dyn_cast<BlockArgument>(value);
    initial.push_back(argument ? loop.getTiedLoopInit(argument)->get()
                               : createZero(rewriter, loop.getLoc(), value.getType()));
  }
  // Arguments of the loop become those of the new one.
  SmallVector<Value> next(carried.begin(), carried.end());
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, initial, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
        auto body = cast<scf::ForOp>(added.front().getOwner()->getParentOp());
        for (Value &value : next)
          if (auto argument = dyn_cast<BlockArgument>(value))
            value = body.getBody()->getArgument(argument.getArgNumber());
        return next;
      }));
}

/// The value in the last iteration, behind the loop.
Value FlatLoop::emitBehind(Value value, IRMapping &mapping, OpBuilder &builder) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  for (auto [result, yielded] : llvm::zip_equal(loop.getResults(), loop.getYieldedValues()))
    if (yielded == value)
      return result;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, emitBehind(operand, mapping, builder));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// The sum of a tile begins anew by a select, beside the conditional that stores it. With the sum
/// itself among what the loop carries, nothing else has to be carried for the store.
void FlatLoop::yieldOther(const MomentBranch &branch) {
  Operation *yield = loop.getBody()->getTerminator();
  if (branch.getIf() ||
      !llvm::all_of(branch.op->getUsers(), [&](Operation *user) { return user == yield; }))
    return;
  for (OpOperand &operand : yield->getOpOperands()) {
    if (operand.get() != branch.op->getResult(0))
      continue;
    for (OpOperand &use : loop.getResult(operand.getOperandNumber()).getUses())
      usesOfSelects[branch.op].push_back(&use);
    operand.set(branch.getValue(0, /*ofMoment=*/false));
  }
}

/// Moves the side of the last iteration behind the inner loop.
void FlatLoop::sink(const MomentBranch &branch) {
  // The other side is computed in every iteration.
  if (Block *block = branch.getBlock(/*ofMoment=*/false))
    branch.op->getBlock()->getOperations().splice(branch.op->getIterator(), block->getOperations(),
                                                  block->begin(),
                                                  block->getTerminator()->getIterator());
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<std::pair<unsigned, unsigned>> places; // of the loop, and of the branch
  for (OpOperand &operand : yield->getOpOperands())
    if (operand.get().getDefiningOp() == branch.op) {
      unsigned number = cast<OpResult>(operand.get()).getResultNumber();
      places.push_back({operand.getOperandNumber(), number});
      operand.set(branch.getValue(number, /*ofMoment=*/false));
    }
  SetVector<Value> values = branch.getCaptured(/*ofMoment=*/true);
  carryForSinking(values);

  // Uses of the results until here are of what the last iteration gives.
  SmallVector<std::pair<OpOperand *, unsigned>> uses;
  for (OpOperand *use : usesOfSelects.lookup(branch.op))
    uses.push_back({use, 0});
  for (auto [place, number] : places)
    for (OpOperand &use : loop.getResult(place).getUses())
      uses.push_back({&use, number});
  OpBuilder builder(loop->getContext());
  builder.setInsertionPointAfter(loop);
  IRMapping mapping;
  if (!loop.getInductionVar().use_empty()) {
    Value one = arith::ConstantOp::create(
        builder, loop.getLoc(), builder.getIntegerAttr(loop.getInductionVar().getType(), 1));
    mapping.map(loop.getInductionVar(),
                arith::SubIOp::create(builder, loop.getLoc(), loop.getUpperBound(), one));
  }
  for (Value value : branch.getCaptured(/*ofMoment=*/true))
    mapping.map(value, emitBehind(value, mapping, builder));
  if (Block *block = branch.getBlock(/*ofMoment=*/true))
    for (Operation &op : block->without_terminator())
      builder.clone(op, mapping);
  for (auto [use, number] : uses)
    use->set(mapping.lookupOrDefault(branch.getValue(number, /*ofMoment=*/true)));
  // The remaining uses compute values for the next iteration of the tile. The last one has none.
  for (OpResult result : branch.op->getResults())
    result.replaceAllUsesWith(branch.getValue(result.getResultNumber(), /*ofMoment=*/false));
  branch.op->erase();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Splits a loop if it is flat and can be. Else `why` gets the reason if it closes tiles.
static bool trySplit(scf::ForOp loop, std::optional<TileRange> range, std::string &why) {
  std::optional<FlatCounter> counter = FlatCounter::find(loop);
  if (!counter)
    return false;
  FlatLoop flat(loop, *counter, range);
  if (std::optional<StringRef> obstacle = flat.plan()) {
    if (flat.closesTiles())
      why = obstacle->str();
    return false;
  }
  flat.split();
  return true;
}

/// True if a value is a sum of integers, or a comparison of such, from in front of a conditional.
static bool isChosenNumber(Value side, scf::IfOp branch, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 4;
  Operation *op = side.getDefiningOp();
  if (!op || !branch->isProperAncestor(op))
    return true;
  return depth < kMaxDepth && isa<arith::AddIOp, arith::SubIOp, arith::CmpIOp>(op) &&
         llvm::all_of(
             op->getOperands(),
             [&](Value operand) { return isChosenNumber(operand, branch, depth + 1); });
}

/// The conditionals of a loop that choose between such values, which the loop carries, as they are
/// or with a constant added.
static SmallVector<OpResult> findChosenNumbers(scf::ForOp loop) {
  SmallVector<OpResult> numbers;
  for (Value yielded : loop.getYieldedValues()) {
    if (!yielded.getType().isInteger())
      continue;
    Value value = OffsetValue::of(yielded).base;
    auto branch = value ? value.getDefiningOp<scf::IfOp>() : scf::IfOp();
    if (!branch || branch->getBlock() != loop.getBody())
      continue;
    auto result = cast<OpResult>(value);
    if (isChosenNumber(branch.thenYield().getOperand(result.getResultNumber()), branch) &&
        isChosenNumber(branch.elseYield().getOperand(result.getResultNumber()), branch))
      numbers.push_back(result);
  }
  return numbers;
}

static void moveBefore(Value value, scf::IfOp branch) {
  Operation *op = value.getDefiningOp();
  if (!op || !branch->isProperAncestor(op))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand, branch);
  op->moveBefore(branch);
}

/// Counters are found as selects: `if wraps: ki = 0; else: ki += 1`.
static void chooseBySelects(scf::ForOp loop) {
  for (OpResult result : findChosenNumbers(loop)) {
    auto branch = cast<scf::IfOp>(result.getOwner());
    Value sides[] = {branch.thenYield().getOperand(result.getResultNumber()),
                     branch.elseYield().getOperand(result.getResultNumber())};
    for (Value side : sides)
      moveBefore(side, branch);
    OpBuilder builder(branch);
    result.replaceAllUsesWith(
        arith::SelectOp::create(builder, branch.getLoc(), branch.getCondition(), sides[0], sides[1])
            .getResult());
  }
}

/// The count of programs stands in front of a loop, also if a conditional adds it to a tile's
/// number.
static void hoistInvariants(LoopLikeOpInterface loop) {
  SmallVector<NumProgramsOp> counts;
  loop->walk([&](NumProgramsOp count) { counts.push_back(count); });
  for (NumProgramsOp count : counts)
    count->moveBefore(loop);
  moveLoopInvariantCode(loop);
}

/// Splits a copy of `loop`, which stands in its place then.
static bool trySplitCopy(scf::ForOp copy, Operation *loop, std::optional<TileRange> range,
                         std::string &why) {
  if (!FlatCounter::find(copy))
    chooseBySelects(copy);
  hoistInvariants(copy);
  while (std::optional<CarriedFlag> flag = CarriedFlag::find(copy))
    flag->rewrite(copy);
  if (!FlatCounter::find(copy))
    if (std::optional<StridedCounter> strided = StridedCounter::find(copy))
      copy = strided->rewrite(copy);
  bool isSplit = trySplit(copy, range, why);
  if (isSplit)
    loop->erase();
  else
    copy.erase();
  return isSplit;
}

static bool reportSplit(Location loc, bool isSplit, StringRef why) {
  if (isSplit)
    emitRemark(loc, RemarkKind::FlatLoopSplit)
        << "flat loop is split into one over tiles and one over their iterations";
  else if (!why.empty())
    emitRemark(loc, RemarkKind::FlatLoopNotSplit)
        << "flat loop is not split into one over tiles and one over their iterations: "
        << named("reason", why);
  return isSplit;
}

/// True if a conditional in the body of a loop writes to memory, as those that close tiles do.
static bool mayCloseTiles(Operation *loop, Block *body) {
  return !loop->hasAttr(TileDialect::DisableLicmAttrHelper::getNameStr()) &&
         llvm::any_of(body->getOps<scf::IfOp>(),
                      [](scf::IfOp branch) { return mayWriteMemory(branch); });
}

bool SplitFlatLoopsPass::split(scf::ForOp loop) {
  if (loop.getUnsignedCmp() || !mayCloseTiles(loop, loop.getBody()))
    return false;
  hoistInvariants(loop);
  Location loc = loop.getLoc();
  std::string why;
  const bool hasFlags = loop->use_empty() && CarriedFlag::find(loop);
  if (FlatCounter::find(loop)) {
    bool isSplit = trySplit(loop, std::nullopt, why);
    if (isSplit || !hasFlags)
      return reportSplit(loc, isSplit, why);
  }
  if (!loop->use_empty() ||
      !(hasFlags || StridedCounter::find(loop) || !findChosenNumbers(loop).empty()))
    return false;
  OpBuilder builder(loop);
  auto copy = cast<scf::ForOp>(builder.clone(*loop));
  return reportSplit(loc, trySplitCopy(copy, loop, std::nullopt, why), why);
}

/// The tiles that a `while` counts: `while tile < bound`, with `tile` and what goes on to the next
/// one among the values that it carries.
static std::optional<TileRange> findTiles(scf::WhileOp loop, ArrayRef<unsigned> passed) {
  Block *before = loop.getBeforeBody();
  auto compare = loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || before->getOperations().size() != 2)
    return std::nullopt;
  Value tile = compare.getLhs(), bound = compare.getRhs();
  arith::CmpIPredicate wanted = arith::CmpIPredicate::slt;
  if (loop.isDefinedOutsideOfLoop(tile)) {
    std::swap(tile, bound);
    wanted = arith::CmpIPredicate::sgt;
  }
  auto argument = dyn_cast<BlockArgument>(tile);
  // As elsewhere, counters of 32 bits and more are taken not to wrap.
  if (compare.getPredicate() != wanted || !argument || argument.getOwner() != before ||
      !loop.isDefinedOutsideOfLoop(bound) ||
      !(tile.getType().isInteger(32) || tile.getType().isInteger(64)))
    return std::nullopt;
  unsigned number = argument.getArgNumber();
  const auto *place = llvm::find(passed, number);
  if (place == passed.end())
    return std::nullopt;
  // The step is one of the operands that a sum in the loop adds to the tile.
  Value inLoop = loop.getAfterBody()->getArgument(place - passed.begin());
  IntegerRanges ranges;
  for (Operation *user : inLoop.getUsers())
    if (auto sum = dyn_cast<arith::AddIOp>(user)) {
      Value step = sum.getLhs() == inLoop ? sum.getRhs() : sum.getLhs();
      if (loop.isDefinedOutsideOfLoop(step) && ranges.get(step).smin().isStrictlyPositive())
        return TileRange{loop.getInits()[number], bound, step, number};
    }
  return std::nullopt;
}

bool SplitFlatLoopsPass::split(scf::WhileOp loop) {
  if (!loop->use_empty() || !mayCloseTiles(loop, loop.getAfterBody()))
    return false;
  hoistInvariants(loop);
  std::optional<SmallVector<unsigned>> passed = findPassedValues(loop);
  std::optional<TileRange> range = passed ? findTiles(loop, *passed) : std::nullopt;
  if (!range)
    return false;
  // A `for` with its body, of which the bounds do not matter.
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Type type = range->first.getType();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, 0)),
        one = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, 1));
  IRMapping mapping;
  auto copy = scf::ForOp::create(builder, loc, zero, one, one, loop.getInits(),
                                 [&](OpBuilder &inner, Location, Value, ValueRange arguments) {
                                   for (auto [place, number] : llvm::enumerate(*passed))
                                     mapping.map(loop.getAfterBody()->getArgument(place),
                                                 arguments[number]);
                                   for (Operation &op : *loop.getAfterBody())
                                     inner.clone(op, mapping);
                                 });
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  std::string why;
  return reportSplit(loc, trySplitCopy(copy, loop, range, why), why);
}

void SplitFlatLoopsPass::runOnOperation() {
  SmallVector<Operation *> loops;
  getOperation()->walk([&](Operation *op) {
    if (isa<scf::ForOp, scf::WhileOp>(op))
      loops.push_back(op);
  });
  bool isAny = false;
  for (Operation *loop : loops)
    isAny |=
        isa<scf::ForOp>(loop) ? split(cast<scf::ForOp>(loop)) : split(cast<scf::WhileOp>(loop));
  if (!isAny)
    return;
  // Later passes match what the loops carry: not what is now the same in all iterations.
  RewritePatternSet patterns(&getContext());
  for (RegisteredOperationName op : getContext().getRegisteredOperations())
    if (op.getDialectNamespace() == "scf" || op.getDialectNamespace() == "arith")
      op.getCanonicalizationPatterns(patterns, &getContext());
  (void)applyPatternsGreedily(getOperation(), std::move(patterns));
}
