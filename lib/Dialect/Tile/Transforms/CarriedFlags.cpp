// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CarriedFlags.h"
#include "tessera/Analysis/Access/IntegerRanges.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using llvm::APInt;

//===----------------------------------------------------------------------===//
// Comparisons that are the same
//===----------------------------------------------------------------------===//

namespace {

/// "larger + distance >= smaller" in integers that do not wrap. Sides without a base are 0.
struct Order {
  Value larger, smaller;
  APInt distance;

  static std::optional<Order> of(arith::CmpIPredicate predicate, const OffsetValue &left,
                                 const OffsetValue &right);
  bool operator==(const Order &other) const {
    return larger == other.larger && smaller == other.smaller && distance == other.distance;
  }
};

} // namespace

/// True if no value of the base makes the sum wrap.
static bool isExact(const OffsetValue &sum) {
  if (!sum.base || sum.offset.isZero())
    return true;
  IntegerRanges ranges;
  ConstantIntRanges range = ranges.get(sum.base);
  bool wraps;
  (void)(sum.offset.isNegative() ? range.smin() : range.smax()).sadd_ov(sum.offset, wraps);
  return !wraps;
}

std::optional<Order> Order::of(arith::CmpIPredicate predicate, const OffsetValue &left,
                               const OffsetValue &right) {
  using arith::CmpIPredicate;
  if (!isExact(left) || !isExact(right))
    return std::nullopt;
  // Two bits more hold all differences.
  unsigned width = left.offset.getBitWidth() + 2;
  APInt distance = left.offset.sext(width) - right.offset.sext(width);
  switch (predicate) {
  case CmpIPredicate::sge:
    return Order{left.base, right.base, distance};
  case CmpIPredicate::sgt:
    return Order{left.base, right.base, distance - 1};
  case CmpIPredicate::sle:
    return Order{right.base, left.base, -distance};
  case CmpIPredicate::slt:
    return Order{right.base, left.base, -distance - 1};
  default:
    return std::nullopt;
  }
}

static bool isUnsigned(arith::CmpIPredicate predicate) {
  using arith::CmpIPredicate;
  return llvm::is_contained(
      {CmpIPredicate::ult, CmpIPredicate::ule, CmpIPredicate::ugt, CmpIPredicate::uge}, predicate);
}

/// Equality is exact whatever wraps. Orders are compared if nothing does.
static bool areSame(arith::CmpIPredicate predicate, const OffsetValue &left,
                    const OffsetValue &right, arith::CmpIOp other) {
  using arith::CmpIPredicate;
  if (other.getLhs().getType() != other.getRhs().getType() ||
      !other.getLhs().getType().isInteger(left.offset.getBitWidth()))
    return false;
  OffsetValue otherLeft = OffsetValue::of(other.getLhs()),
              otherRight = OffsetValue::of(other.getRhs());
  if ((other.getPredicate() == predicate && left == otherLeft && right == otherRight) ||
      (exchangeSides(other.getPredicate()) == predicate && left == otherRight &&
       right == otherLeft))
    return true;
  if (predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne) {
    APInt distance = left.offset - right.offset,
          otherDistance = otherLeft.offset - otherRight.offset;
    return other.getPredicate() == predicate &&
           ((left.base == otherLeft.base && right.base == otherRight.base &&
             distance == otherDistance) ||
            (left.base == otherRight.base && right.base == otherLeft.base &&
             distance == -otherDistance));
  }
  std::optional<Order> order = Order::of(predicate, left, right),
                       otherOrder = Order::of(other.getPredicate(), otherLeft, otherRight);
  return order && otherOrder && *order == *otherOrder;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

/// True if the comparison of a number gives the flag.
bool CarriedFlag::holdsFor(const OffsetValue &of, Value is) const {
  OffsetValue left = {of.base, of.offset + offset}, right = OffsetValue::of(bound);
  APInt constant;
  if (matchPattern(is, m_ConstantInt(&constant))) {
    // Sums that do not wrap as signed integers may do so as unsigned ones.
    bool areExact = !left.base || (!isUnsigned(predicate) && isExact(left) && isExact(right));
    return left.base == right.base && areExact &&
           arith::applyCmpPredicate(predicate, left.offset, right.offset) == constant.isOne();
  }
  auto compare = is.getDefiningOp<arith::CmpIOp>();
  return compare && areSame(predicate, left, right, compare);
}

/// The same for numbers and flags that one condition chooses.
bool CarriedFlag::holds(Value of, Value is) const {
  OffsetValue sum = OffsetValue::of(of);
  auto chosen = is.getDefiningOp<arith::SelectOp>();
  auto numbers = sum.base ? sum.base.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!chosen || !numbers)
    return holdsFor(sum, is);
  auto isSide = [&](Value side, Value flagOfSide) {
    OffsetValue of = OffsetValue::of(side);
    return holdsFor({of.base, of.offset + sum.offset}, flagOfSide);
  };
  return chosen.getCondition() == numbers.getCondition() &&
         isSide(numbers.getTrueValue(), chosen.getTrueValue()) &&
         isSide(numbers.getFalseValue(), chosen.getFalseValue());
}

/// Finds the comparison in that of the next iteration's number.
bool CarriedFlag::deriveFrom(scf::ForOp loop, Value next, Value is) {
  OffsetValue sum = OffsetValue::of(next);
  if (auto chosen = is.getDefiningOp<arith::SelectOp>()) {
    auto numbers = sum.base ? sum.base.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
    // The next number may have a constant added to what was chosen.
    return numbers && sum.offset.isZero() && numbers.getCondition() == chosen.getCondition() &&
           (deriveFrom(loop, numbers.getTrueValue(), chosen.getTrueValue()) ||
            deriveFrom(loop, numbers.getFalseValue(), chosen.getFalseValue()));
  }
  auto compare = is.getDefiningOp<arith::CmpIOp>();
  if (!compare || !sum.base || loop.isDefinedOutsideOfLoop(sum.base) ||
      compare.getLhs().getType() != next.getType())
    return false;
  for (bool isLeft : {true, false}) {
    OffsetValue side = OffsetValue::of(isLeft ? compare.getLhs() : compare.getRhs());
    bound = isLeft ? compare.getRhs() : compare.getLhs();
    if (side.base != sum.base || !loop.isDefinedOutsideOfLoop(bound))
      continue;
    offset = side.offset - sum.offset;
    predicate = isLeft ? compare.getPredicate() : exchangeSides(compare.getPredicate());
    return true;
  }
  return false;
}

std::optional<CarriedFlag> CarriedFlag::find(scf::ForOp loop) {
  for (auto [flag, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value next = loop.getYieldedValues()[flag];
    if (!argument.getType().isInteger(1) || argument.use_empty() ||
        !loop.getResult(flag).use_empty() || loop.isDefinedOutsideOfLoop(next))
      continue;
    for (auto [number, of] : llvm::enumerate(loop.getRegionIterArgs())) {
      CarriedFlag found;
      found.flag = flag;
      found.number = number;
      if (number != flag && of.getType().isInteger() &&
          found.deriveFrom(loop, loop.getYieldedValues()[number], next) &&
          found.holds(loop.getYieldedValues()[number], next) &&
          found.holds(loop.getInitArgs()[number], loop.getInitArgs()[flag]))
        return found;
    }
  }
  return std::nullopt;
}

void CarriedFlag::rewrite(scf::ForOp loop) const {
  OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
  Location loc = loop.getLoc();
  BlockArgument of = loop.getRegionIterArg(number), argument = loop.getRegionIterArg(flag);
  Value left = OffsetValue{of, offset}.emit(builder, loc, of.getType());
  Value is = arith::CmpIOp::create(builder, loc, predicate, left, bound);
  argument.replaceAllUsesWith(is);
  Operation *yield = loop.getBody()->getTerminator();
  Operation *next = yield->getOperand(flag).getDefiningOp();
  yield->setOperand(flag, argument);
  // Uses of the number that decide about nothing would hide that it is only counted.
  llvm::SmallVector<Operation *> unused = {next};
  while (!unused.empty()) {
    Operation *op = unused.pop_back_val();
    if (!op || !loop->isProperAncestor(op) || !isOpTriviallyDead(op))
      continue;
    unused.append(llvm::map_to_vector(op->getOperands(),
                                      [](Value operand) { return operand.getDefiningOp(); }));
    op->erase();
  }
}
