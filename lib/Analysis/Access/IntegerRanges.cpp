// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Access/IntegerRanges.h"

#include "AccessRules.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Deeper than expressions of indices are; below it a call might not fit the stack.
static constexpr unsigned kMaxDepth = 100;

static bool canLimit(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && (integer.getWidth() == 32 || integer.getWidth() == 64);
}

static unsigned widthOf(Value value) {
  return ConstantIntRanges::getStorageBitwidth(value.getType());
}

static ConstantIntRanges anything(Value value) {
  return ConstantIntRanges::maxRange(widthOf(value));
}

static bool contains(const ConstantIntRanges &outer, const ConstantIntRanges &inner) {
  return outer.rangeUnion(inner) == outer;
}

static ConstantIntRanges rangeOf(unsigned width, int64_t least, int64_t most) {
  return ConstantIntRanges::fromSigned(APInt(width, least, /*isSigned=*/true),
                                       APInt(width, most, /*isSigned=*/true));
}

void IntegerRanges::keep(Value value, const ConstantIntRanges &range) {
  auto [entry, isNew] = known.try_emplace(value, range);
  if (isNew)
    order.push_back(value);
  else
    entry->second = range;
}

//===----------------------------------------------------------------------===//
// Promises
//===----------------------------------------------------------------------===//

/// The part of a range that satisfies `value predicate bound`.
static ConstantIntRanges refine(const ConstantIntRanges &range, arith::CmpIPredicate predicate,
                                const APInt &bound) {
  using arith::CmpIPredicate;
  unsigned width = bound.getBitWidth();
  APInt smin = APInt::getSignedMinValue(width), smax = APInt::getSignedMaxValue(width);
  APInt umin = APInt::getMinValue(width), umax = APInt::getMaxValue(width);
  auto within = [&](const ConstantIntRanges &promised) {
    ConstantIntRanges both = range.intersection(promised);
    // A promise that cannot be kept says nothing.
    bool isEmpty = both.smin().sgt(both.smax()) || both.umin().ugt(both.umax());
    return isEmpty ? range : both;
  };
  switch (predicate) {
  case CmpIPredicate::eq:
    return within(ConstantIntRanges::constant(bound));
  case CmpIPredicate::ne:
    return range;
  case CmpIPredicate::slt:
    return bound == smin ? range : within(ConstantIntRanges::fromSigned(smin, bound - 1));
  case CmpIPredicate::sle:
    return within(ConstantIntRanges::fromSigned(smin, bound));
  case CmpIPredicate::sgt:
    return bound == smax ? range : within(ConstantIntRanges::fromSigned(bound + 1, smax));
  case CmpIPredicate::sge:
    return within(ConstantIntRanges::fromSigned(bound, smax));
  case CmpIPredicate::ult:
    return bound == umin ? range : within(ConstantIntRanges::fromUnsigned(umin, bound - 1));
  case CmpIPredicate::ule:
    return within(ConstantIntRanges::fromUnsigned(umin, bound));
  case CmpIPredicate::ugt:
    return bound == umax ? range : within(ConstantIntRanges::fromUnsigned(bound + 1, umax));
  case CmpIPredicate::uge:
    return within(ConstantIntRanges::fromUnsigned(bound, umax));
  }
  return range;
}

/// True if the user promises a condition at the top level of a function, alone or with others.
static bool isPromised(Value condition, unsigned depth = 0) {
  constexpr unsigned kMaxConjuncts = 16;
  return llvm::any_of(condition.getUsers(), [&](Operation *user) {
    if (auto both = dyn_cast<arith::AndIOp>(user))
      return depth < kMaxConjuncts && isPromised(both.getResult(), depth + 1);
    return isa<AssumeOp>(user) && isa<FuncOp>(user->getParentOp());
  });
}

arith::CmpIPredicate tessera::exchangeSides(arith::CmpIPredicate predicate) {
  using arith::CmpIPredicate;
  switch (predicate) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return predicate;
  case CmpIPredicate::slt:
    return CmpIPredicate::sgt;
  case CmpIPredicate::sle:
    return CmpIPredicate::sge;
  case CmpIPredicate::sgt:
    return CmpIPredicate::slt;
  case CmpIPredicate::sge:
    return CmpIPredicate::sle;
  case CmpIPredicate::ult:
    return CmpIPredicate::ugt;
  case CmpIPredicate::ule:
    return CmpIPredicate::uge;
  case CmpIPredicate::ugt:
    return CmpIPredicate::ult;
  case CmpIPredicate::uge:
    return CmpIPredicate::ule;
  }
  return predicate;
}

static ConstantIntRanges refineByPromises(Value value, ConstantIntRanges range) {
  if (isa<RankedTensorType>(value.getType()))
    return range;
  for (Operation *user : value.getUsers()) {
    auto compare = dyn_cast<arith::CmpIOp>(user);
    APInt bound;
    if (!compare)
      continue;
    bool isLeft = compare.getLhs() == value;
    Value other = isLeft ? compare.getRhs() : compare.getLhs();
    if (!matchPattern(other, m_ConstantInt(&bound)) || !isPromised(compare))
      continue;
    arith::CmpIPredicate predicate = compare.getPredicate();
    range = refine(range, isLeft ? predicate : exchangeSides(predicate), bound);
  }
  return range;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// True if the kernel relies on the condition of a launch that a carried tile number does not wrap
/// (ProgramBounds.h).
static bool isBoundedAtLaunch(BlockArgument argument) {
  auto func = argument.getOwner()->getParentOp()->getParentOfType<FuncOp>();
  auto bounds = func ? func->getAttrOfType<ArrayAttr>(kProgramBoundsAttr) : ArrayAttr();
  if (!bounds)
    return false;
  std::optional<std::string> text = writeCarriedBound(argument);
  return text && llvm::is_contained(bounds, StringAttr::get(argument.getContext(), *text));
}

/// A carried value lies in a range that contains the initial value, and that no iteration leaves.
/// The candidates are the range of the initial value, that after one more iteration, and all
/// numbers that are not negative.
ConstantIntRanges IntegerRanges::computeCarried(BlockArgument argument) {
  auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
  Value next = loop.getYieldedValues()[number];
  ConstantIntRanges all = anything(argument), initial = get(loop.getInitArgs()[number]);
  if (next == argument)
    return initial;
  APInt zero = APInt::getZero(widthOf(argument));
  if (argument.getType().isInteger() && isBoundedAtLaunch(argument)) {
    SmallVector<Value> amounts;
    access::collectAmounts(next, argument, amounts);
    APInt most = APInt::getSignedMaxValue(zero.getBitWidth()) - get(amounts.front()).smax();
    return ConstantIntRanges::fromSigned(llvm::APIntOps::smin(initial.smin(), most), most);
  }
  ConstantIntRanges supposed = initial;
  for (unsigned attempt = 0; attempt < 3; ++attempt) {
    size_t before = order.size();
    keep(argument, supposed);
    ConstantIntRanges after = get(next);
    if (contains(supposed, after))
      return supposed;
    while (order.size() > before)
      known.erase(order.pop_back_val());
    supposed =
        attempt == 0
            ? supposed.rangeUnion(after)
            : ConstantIntRanges::fromSigned(zero, APInt::getSignedMaxValue(zero.getBitWidth()));
    if (!contains(supposed, initial))
      break;
  }
  keep(argument, all);
  return sumOverIterations(loop, initial, next, argument).value_or(all);
}

/// A carried value that advances by equal amounts lies no further from its initial value than all
/// iterations advance it.
std::optional<ConstantIntRanges> IntegerRanges::sumOverIterations(scf::ForOp loop,
                                                                  const ConstantIntRanges &initial,
                                                                  Value next,
                                                                  BlockArgument argument) {
  SmallVector<Value> amounts;
  if (loop.getUnsignedCmp() || !access::collectAmounts(next, argument, amounts))
    return std::nullopt;
  // Not of a GPU: more bits than any of the numbers below needs.
  constexpr unsigned kWide = 256;
  ConstantIntRanges lower = get(loop.getLowerBound()), upper = get(loop.getUpperBound()),
                    step = get(loop.getStep());
  if (!step.smin().isStrictlyPositive())
    return std::nullopt;
  APInt distance = upper.smax().sext(kWide) - lower.smin().sext(kWide);
  APInt zero = APInt::getZero(kWide), least = zero, most = zero;
  APInt iterations = llvm::APIntOps::smax(distance, zero).udiv(step.smin().sext(kWide)) + 1;
  for (Value amount : amounts) {
    ConstantIntRanges range = get(amount);
    least += range.smin().sext(kWide);
    most += range.smax().sext(kWide);
  }
  least = initial.smin().sext(kWide) + llvm::APIntOps::smin(least, zero) * iterations;
  most = initial.smax().sext(kWide) + llvm::APIntOps::smax(most, zero) * iterations;
  unsigned width = widthOf(argument);
  if (!least.isSignedIntN(width) || !most.isSignedIntN(width))
    return std::nullopt;
  return ConstantIntRanges::fromSigned(least.trunc(width), most.trunc(width));
}

/// True if a launch has been asked for a bound (ProgramBounds.h).
static bool isAskedFor(FuncOp func, const std::optional<std::string> &bound) {
  return bound && llvm::is_contained(func->getAttrOfType<ArrayAttr>(kProgramBoundsAttr),
                                     StringAttr::get(func.getContext(), *bound));
}

/// The range of a loop's end, which a launch may have been asked to be early.
static ConstantIntRanges refineEnd(scf::ForOp loop, const ConstantIntRanges &range) {
  auto func = loop->getParentOfType<FuncOp>();
  unsigned width = range.smin().getBitWidth();
  // Not of a GPU: launches ask this of numbers of 32 bits.
  if (!func || !func->hasAttr(kProgramBoundsAttr) || width != 32)
    return range;
  APInt most(width, kMaxLoopEnd);
  if (range.smin().sgt(most) || range.smax().sle(most) || !isAskedFor(func, writeEndBound(loop)))
    return range;
  return ConstantIntRanges::fromSigned(range.smin(), most);
}

ConstantIntRanges IntegerRanges::computeArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto func = dyn_cast<FuncOp>(parent)) {
    auto type = dyn_cast<IntegerType>(argument.getType());
    if (!type || !canLimit(type) || !func.isKernel())
      return anything(argument);
    unsigned number = argument.getArgNumber();
    ConstantIntRanges range = anything(argument);
    if (func.getArgAttr(number, kGridExtentAttr))
      return rangeOf(type.getWidth(), 1, limits.mostPrograms ? limits.mostPrograms : INT32_MAX);
    if (auto limit = func.getArgAttrOfType<DenseI64ArrayAttr>(number, kLimitedArgumentAttr))
      range = range.intersection(rangeOf(type.getWidth(), limit[0], limit[1]));
    if (auto it = limits.ofArgument.find(number); it != limits.ofArgument.end())
      range = range.intersection(rangeOf(type.getWidth(), it->second.least, it->second.most));
    return range;
  }
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (!loop)
    return anything(argument);
  if (argument != loop.getInductionVar())
    return computeCarried(argument);
  // From the lower bound to below the upper one; the step is positive.
  ConstantIntRanges lower = get(loop.getLowerBound()),
                    upper = refineEnd(loop, get(loop.getUpperBound()));
  if (loop.getUnsignedCmp()) {
    if (upper.umax().isZero() || lower.umin().ugt(upper.umax() - 1))
      return anything(argument);
    return ConstantIntRanges::fromUnsigned(lower.umin(), upper.umax() - 1);
  }
  if (upper.smax().isMinSignedValue() || lower.smin().sgt(upper.smax() - 1))
    return anything(argument); // The loop makes no iteration.
  return ConstantIntRanges::fromSigned(lower.smin(), upper.smax() - 1);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The range of what a number is divided by, which a launch may have been asked to be positive
/// (ProgramBounds.h).
static ConstantIntRanges refineDivisor(Value divisor, const ConstantIntRanges &range) {
  auto type = dyn_cast<IntegerType>(divisor.getType());
  auto func = divisor.getParentRegion()->getParentOfType<FuncOp>();
  if (!type || !canLimit(type) || !func || !func->hasAttr(kProgramBoundsAttr) ||
      range.smin().isStrictlyPositive() || !range.smax().isStrictlyPositive() ||
      !isAskedFor(func, writeDivisorBound(divisor)))
    return range;
  unsigned width = type.getWidth();
  return range.intersection(
      ConstantIntRanges::fromSigned(APInt(width, 1), APInt::getSignedMaxValue(width)));
}

/// The range of a value if another one, of which it is a function, has a range.
static ConstantIntRanges getIf(Value value, Value supposed, const ConstantIntRanges &range,
                               IntegerRanges &ranges, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 4;
  if (value == supposed)
    return range;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth || !isa<arith::MulIOp, arith::MaxSIOp, DivIntOp>(op))
    return ranges.get(value);
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getIf(operand, supposed, range, ranges, depth + 1));
  ConstantIntRanges result = anything(value);
  cast<InferIntRangeInterface>(op).inferResultRanges(
      operands, [&](Value, const ConstantIntRanges &inferred) { result = inferred; });
  return result;
}

/// The unsigned minimum of a count of tiles and of iterations by the iterations of a tile, as a
/// split flat loop has it. If the count is negative, there are no iterations, unless their product
/// wraps. So the two signs of the count are looked at apart.
static std::optional<ConstantIntRanges> getLeastOfCounts(arith::MinUIOp least,
                                                         IntegerRanges &ranges) {
  auto quotient = least.getLhs().getDefiningOp<DivIntOp>();
  ConstantIntRanges count = ranges.get(least.getRhs());
  APInt zero = APInt::getZero(count.smin().getBitWidth());
  if (!quotient || !count.smin().isNegative() || count.smax().isNegative())
    return std::nullopt;
  ConstantIntRanges iterations = getIf(
      quotient, least.getRhs(), ConstantIntRanges::fromSigned(count.smin(), zero - 1), ranges);
  if (iterations.smin().isNegative())
    return std::nullopt;
  return ConstantIntRanges::fromSigned(zero, llvm::APIntOps::smax(count.smax(), iterations.smax()));
}

/// A number that a value is less than, if the value is not negative. The value is the variable of a
/// loop with that end, or a remainder of that positive divisor. A loop that may have no iteration
/// by a choice of its begin as its end has the other end, where it has any.
static Value findEnd(Value value, IntegerRanges &ranges) {
  if (auto remainder = value.getDefiningOp<RemIntOp>()) {
    Value divisor = remainder.getRhs();
    bool isPositive = refineDivisor(divisor, ranges.get(divisor)).smin().isStrictlyPositive();
    return isPositive ? divisor : Value();
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || argument != loop.getInductionVar() || loop.getUnsignedCmp())
    return Value();
  return access::getEndInIteration(loop);
}

/// The factors of a product that are not products themselves, and the product of its constants;
/// nothing if one of these is not positive.
static std::optional<APInt> collectFactors(Value product, SmallVectorImpl<Value> &factors) {
  constexpr unsigned kMaxFactors = 6;
  APInt all(widthOf(product), 1), constant;
  SmallVector<Value> work = {product};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    bool overflows = false;
    if (matchPattern(value, m_ConstantInt(&constant))) {
      all = all.smul_ov(constant, overflows);
      if (overflows || !constant.isStrictlyPositive())
        return std::nullopt;
    } else if (auto mul = value.getDefiningOp<arith::MulIOp>()) {
      work.append({mul.getLhs(), mul.getRhs()});
    } else {
      factors.push_back(value);
    }
    if (factors.size() > kMaxFactors)
      return std::nullopt;
  }
  return all;
}

/// The most that a quotient of two numbers can be, neither of which is negative. An example is a
/// tile's number by the columns of tiles, which is less than the rows of tiles. The end of all
/// tiles is a product of both. Without limits of sizes it may wrap, and is less then.
static std::optional<APInt> getMostQuotient(DivIntOp quotient, IntegerRanges &ranges) {
  Value end = findEnd(quotient.getLhs(), ranges);
  if (!end || !end.getType().isInteger())
    return std::nullopt;
  SmallVector<Value> factors, divisors;
  std::optional<APInt> most = collectFactors(end, factors),
                       divisor = collectFactors(quotient.getRhs(), divisors);
  if (!most || !divisor || divisors.empty())
    return std::nullopt;
  bool wraps = false;
  auto multiply = [&](APInt &product, Value factor) {
    bool overflows = false;
    product = product.smul_ov(ranges.get(factor).smax(), overflows);
    wraps |= overflows || !ranges.isNonNegative(factor);
  };
  for (Value factor : divisors) {
    auto *place = llvm::find(factors, factor);
    if (place == factors.end() || !ranges.isNonNegative(factor))
      return std::nullopt;
    factors.erase(place);
    multiply(*divisor, factor);
  }
  // A product that wraps would be a divisor less than its factors.
  if (wraps && quotient.getRhs() != divisors.front())
    return std::nullopt;
  wraps = false;
  for (Value factor : factors)
    multiply(*most, factor);
  return wraps || !most->isStrictlyPositive() ? std::nullopt : std::optional(*most - 1);
}

ConstantIntRanges IntegerRanges::computeResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return get(loop.getRegionIterArg(number)).rangeUnion(get(loop.getInitArgs()[number]));
  if (auto ifOp = dyn_cast<scf::IfOp>(op))
    return get(ifOp.thenYield().getOperand(number))
        .rangeUnion(get(ifOp.elseYield().getOperand(number)));
  if (keepsElements(op))
    return get(op->getOperand(0));
  if (limits.mostPrograms && isa<ProgramIdOp>(op))
    return rangeOf(widthOf(result), 0, limits.mostPrograms - 1);
  if (limits.mostPrograms && isa<NumProgramsOp>(op))
    return rangeOf(widthOf(result), 1, limits.mostPrograms);
  if (auto least = dyn_cast<arith::MinUIOp>(op))
    if (std::optional<ConstantIntRanges> range = getLeastOfCounts(least, *this))
      return *range;
  ConstantIntRanges range = anything(result);
  auto inferable = dyn_cast<InferIntRangeInterface>(op);
  if (!inferable)
    return range;
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  if (auto quotient = dyn_cast<DivIntOp>(op);
      quotient && quotient.getSignedness() == Signedness::Signed)
    operands[1] = refineDivisor(quotient.getRhs(), operands[1]);
  inferable.inferResultRanges(operands, [&](Value value, const ConstantIntRanges &inferred) {
    if (value == result && inferred.umin().getBitWidth() == widthOf(result))
      range = inferred;
  });
  if (auto quotient = dyn_cast<DivIntOp>(op); quotient && result.getType().isInteger() &&
                                              operands[0].smin().isNonNegative() &&
                                              operands[1].smin().isStrictlyPositive())
    if (std::optional<APInt> most = getMostQuotient(quotient, *this))
      range =
          ConstantIntRanges::fromSigned(range.smin(), llvm::APIntOps::smin(range.smax(), *most));
  return range;
}

ConstantIntRanges IntegerRanges::compute(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return computeArgument(argument);
  return computeResult(cast<OpResult>(value));
}

ConstantIntRanges IntegerRanges::get(Value value) {
  if (widthOf(value) == 0)
    return anything(value);
  if (auto it = known.find(value); it != known.end())
    return it->second;
  if (depth >= kMaxDepth)
    return anything(value);
  ++depth;
  ConstantIntRanges range = refineByPromises(value, compute(value));
  --depth;
  keep(value, range);
  return range;
}

bool IntegerRanges::isExact(Value tile, int64_t stride, bool isSigned) {
  unsigned width = widthOf(tile);
  ConstantIntRanges range = get(tile);
  // Not of a GPU: bits of the stride, of its sign, and of a sum.
  unsigned wide = std::max(width, 64u) + 2;
  APInt spread = isSigned ? range.smax().sext(wide) - range.smin().sext(wide)
                          : range.umax().zext(wide) - range.umin().zext(wide);
  APInt step = APInt(wide, stride, /*isSigned=*/true).abs();
  return (spread + step).ult(APInt::getOneBitSet(wide, width));
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

/// The values that an integer is computed from, with itself.
static llvm::SetVector<Value> findSources(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t next = 0; next < values.size(); ++next) {
    Value from = values[next];
    if (!getElementTypeOrSelf(from.getType()).isIntOrIndex())
      continue;
    auto insert = [&](ValueRange others) { values.insert(others.begin(), others.end()); };
    if (auto argument = dyn_cast<BlockArgument>(from)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        continue;
      if (argument == loop.getInductionVar()) {
        insert({loop.getLowerBound(), loop.getUpperBound()});
      } else {
        unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
        insert({loop.getInitArgs()[number], loop.getYieldedValues()[number], loop.getLowerBound(),
                loop.getUpperBound(), loop.getStep()});
      }
      continue;
    }
    Operation *op = from.getDefiningOp();
    unsigned number = cast<OpResult>(from).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      insert({loop.getInitArgs()[number], loop.getRegionIterArg(number)});
    else if (auto ifOp = dyn_cast<scf::IfOp>(op))
      insert({ifOp.thenYield().getOperand(number), ifOp.elseYield().getOperand(number)});
    else if (isa<InferIntRangeInterface>(op) || keepsElements(op))
      insert(op->getOperands());
  }
  return values;
}

/// True if a value is an extent of the grid that the launcher passes.
static bool isGridExtent(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp()) : FuncOp();
  return func && func.getArgAttr(argument.getArgNumber(), kGridExtentAttr);
}

/// The number of an argument of a kernel that may be limited.
static std::optional<unsigned> getLimitedArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp()) : FuncOp();
  if (!func || !func.isKernel() || !canLimit(argument.getType()) || isGridExtent(argument))
    return std::nullopt;
  return argument.getArgNumber();
}

LaunchLimits tessera::findLimits(Value value, LaunchLimits::Level level) {
  // Loose: below the end of 32 bits by as much as is added to sizes, and grids of which each
  // program has a long tile. Tight: the product of two numbers of tiles has 32 bits, too.
  constexpr int64_t kMaxArgumentValues[] = {int64_t(1) << 30, int64_t(1) << 20};
  constexpr int64_t kMaxPrograms[] = {int64_t(1) << 20, int64_t(1) << 16};
  LaunchLimits limits;
  for (Value from : findSources(value)) {
    if (std::optional<unsigned> number = getLimitedArgument(from))
      limits.ofArgument.try_emplace(*number, LaunchLimits::Interval{0, kMaxArgumentValues[level]});
    if (isGridExtent(from))
      limits.mostPrograms = kMaxPrograms[level];
    Operation *op = from.getDefiningOp();
    if (!op)
      continue;
    if (isa<ProgramIdOp, NumProgramsOp>(op))
      limits.mostPrograms = kMaxPrograms[level];
    // No quotient by 0 is the index of anything.
    if (isa<DivIntOp, RemIntOp>(op))
      for (Value divisor : findSources(op->getOperand(1)))
        if (std::optional<unsigned> number = getLimitedArgument(divisor))
          limits.ofArgument[*number] = {1, kMaxArgumentValues[level]};
  }
  return limits;
}
