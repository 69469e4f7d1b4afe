// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LaunchProof.h"

#include "tessera/Analysis/Access/ProgramBounds.h"

#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::box;
using namespace tessera::tile;

bool box::isArgument(const ScalarFactor &factor) {
  auto argument = dyn_cast<BlockArgument>(factor.value);
  auto func = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp()) : FuncOp();
  // The extents of the grid that a persistent kernel gets are none of the launch's expressions.
  return func && !func.getArgAttr(argument.getArgNumber(), kGridExtentAttr);
}

bool box::isKnownAtLaunch(const ScalarPolynomial &polynomial) {
  return polynomial.partition(isArgument).second.isZero();
}

LaunchExpr box::toLaunchExpr(const ScalarPolynomial &polynomial, MLIRContext *context) {
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (const ScalarTerm &term : polynomial.getTerms()) {
    AffineExpr product = getAffineConstantExpr(term.scale, context);
    for (const ScalarFactor &factor : term.factors)
      product =
          getAffineSymbolExpr(cast<BlockArgument>(factor.value).getArgNumber(), context) * product;
    sum = sum + product;
  }
  return sum;
}

bool box::isMove(Operation *op) {
  return movesOneTile(op) || isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp>(op);
}

bool box::isSumOrProduct(Operation *op) {
  return isMove(op) || isa<AddPtrOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(op);
}

//===----------------------------------------------------------------------===//
// Signs
//===----------------------------------------------------------------------===//

bool LaunchProof::require(const ScalarPolynomial &condition) {
  if (std::optional<int64_t> constant = condition.getConstant())
    return *constant >= 0;
  if (!isKnownAtLaunch(condition))
    return false;
  LaunchExpr expr = toLaunchExpr(condition, kernel.getContext());
  if (!llvm::is_contained(needs.conditions, expr))
    needs.conditions.push_back(expr);
  return true;
}

void LaunchProof::relyOn(const LaunchLimits &limits) {
  SmallVector<unsigned> numbers(llvm::make_first_range(limits.ofArgument));
  llvm::sort(numbers);
  for (unsigned number : numbers) {
    LaunchLimits::Interval interval = limits.ofArgument.lookup(number);
    auto argument = ScalarPolynomial::ofFactor(kernel.getArgument(number));
    require(*argument.minus(interval.least));
    require(*ScalarPolynomial(interval.most).minus(argument));
  }
  if (limits.mostPrograms)
    needs.mostPrograms = needs.mostPrograms ? std::min(needs.mostPrograms, limits.mostPrograms)
                                            : limits.mostPrograms;
}

void LaunchProof::requirePrograms(const std::string &bound) {
  if (!llvm::is_contained(needs.programBounds, bound))
    needs.programBounds.push_back(bound);
}

/// True if ranges show something of what `value` is computed from, by limits of the launch if
/// not without, which are then relied on.
bool LaunchProof::proves(Value value, llvm::function_ref<bool(IntegerRanges &)> holds) {
  if (holds(analysis.getRanges()))
    return true;
  for (LaunchLimits::Level level : LaunchLimits::kLevels) {
    LaunchLimits limits = findLimits(value, level);
    IntegerRanges ranges(limits);
    if (!holds(ranges))
      continue;
    relyOn(limits);
    return true;
  }
  return false;
}

bool LaunchProof::isAtLeast(Value value, int64_t least) {
  return proves(value, [&](IntegerRanges &ranges) {
    APInt smallest = ranges.get(value).smin();
    return smallest.sge(APInt(smallest.getBitWidth(), least, /*isSigned=*/true));
  });
}

/// True if a factor of a coordinate is not negative. Kernels that visit tiles in groups divide by
/// the height of a group: the number of rows of tiles minus those before the group. It is not
/// negative if a launch has no more programs than tiles, so launches check that. (By 0 no index is
/// divided.)
bool LaunchProof::isIndex(Value factor) {
  if (isAtLeast(factor, 0))
    return true;
  Operation *op = factor.getDefiningOp();
  if (op && isMove(op) && !isa<arith::ExtUIOp>(op))
    return isIndex(op->getOperand(0));
  auto quotient = factor.getDefiningOp<DivIntOp>();
  APInt constant;
  if (!quotient || matchPattern(quotient.getRhs(), m_ConstantInt(&constant)) ||
      !isAtLeast(quotient.getLhs(), 0))
    return false;
  std::optional<std::string> divisor = writeProgramBound(quotient.getRhs());
  if (divisor)
    requirePrograms(*divisor);
  return divisor.has_value();
}

//===----------------------------------------------------------------------===//
// Wrapping
//===----------------------------------------------------------------------===//

void LaunchProof::setAddress(Value pointers) {
  addressParts.insert(pointers);
  for (size_t next = 0; next < addressParts.size(); ++next)
    if (Operation *op = addressParts[next].getDefiningOp(); op && isSumOrProduct(op))
      addressParts.insert(op->operand_begin(), op->operand_end());
}

/// True if a sum, difference or product is in its type.
bool LaunchProof::fits(Operation *op) {
  return proves(op->getResult(0), [&](IntegerRanges &ranges) {
    ConstantIntRanges lhs = ranges.get(op->getOperand(0)), rhs = ranges.get(op->getOperand(1));
    unsigned width = lhs.smin().getBitWidth(), wide = 2 * width + 1;
    APInt l[] = {lhs.smin().sext(wide), lhs.smax().sext(wide)};
    APInt r[] = {rhs.smin().sext(wide), rhs.smax().sext(wide)};
    auto isIn = [&](const APInt &number) { return number.isSignedIntN(width); };
    if (isa<arith::AddIOp>(op))
      return isIn(l[0] + r[0]) && isIn(l[1] + r[1]);
    if (isa<arith::SubIOp>(op))
      return isIn(l[0] - r[1]) && isIn(l[1] - r[0]);
    return isIn(l[0] * r[0]) && isIn(l[0] * r[1]) && isIn(l[1] * r[0]) && isIn(l[1] * r[1]);
  });
}

/// True if a launch can check that a sum, difference or product of its arguments fits its type. An
/// example is the number of rows of an array of several dimensions, from which a kernel makes a
/// descriptor. That this holds for what it is computed from has to be asked, too.
bool LaunchProof::fitsAtLaunch(Operation *op) {
  Type type = op->getResult(0).getType();
  if (!type.isInteger(32))
    return false;
  std::optional<LinearForm> form = analysis.getLinearForm(op->getResult(0));
  if (!form || !isKnownAtLaunch(form->uniform))
    return false;
  std::optional<ScalarPolynomial> above = form->uniform.minus(std::numeric_limits<int32_t>::min());
  std::optional<ScalarPolynomial> below =
      ScalarPolynomial(std::numeric_limits<int32_t>::max()).minus(form->uniform);
  return above && below && require(*above) && require(*below);
}

bool LaunchProof::isAsComputed(Value index, unsigned depth) {
  constexpr unsigned kMaxDepth = 64;
  if (depth == kMaxDepth)
    return false;
  if (addressParts.contains(index))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return true;
    if (argument == loop.getInductionVar())
      return isAsComputed(loop.getLowerBound(), depth + 1) &&
             isAsComputed(loop.getStep(), depth + 1);
    // A name of its own, or a sum over iterations.
    return argument.getType().isIntOrIndex() && !analysis.getForm(index).definition;
  }
  Operation *op = index.getDefiningOp();
  if (isMove(op))
    return isAsComputed(op->getOperand(0), depth + 1);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return (fits(op) || fitsAtLaunch(op)) && isAsComputed(op->getOperand(0), depth + 1) &&
           isAsComputed(op->getOperand(1), depth + 1);
  if (auto shift = dyn_cast<ShiftOp>(op); shift && shift.getKind() == ShiftKind::Left) {
    APInt amount;
    // Not of a GPU: a power of two of a signed number of 32 bits.
    return matchPattern(shift.getRhs(), m_ConstantInt(&amount)) && amount.ult(31) &&
           proves(index,
                  [&](IntegerRanges &ranges) {
                    ConstantIntRanges shifted = ranges.get(shift.getLhs());
                    unsigned width = shifted.smin().getBitWidth(),
                             left = width - amount.getZExtValue();
                    return shifted.smin().isSignedIntN(left) && shifted.smax().isSignedIntN(left);
                  }) &&
           isAsComputed(shift.getLhs(), depth + 1);
  }
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return index.getType().isIntOrIndex() || (isAsComputed(choice.getTrueValue(), depth + 1) &&
                                              isAsComputed(choice.getFalseValue(), depth + 1));
  // A name of its own is what the program computes, and so is what has no operands.
  return index.getType().isIntOrIndex() || isa<arith::ConstantOp, RangeOp>(op);
}

/// The number of programs along an axis, if a coordinate depends on it.
static Value findProgramCount(const ScalarPolynomial &coordinate, unsigned axis) {
  for (const ScalarTerm &term : coordinate.getTerms())
    for (const ScalarFactor &factor : term.factors)
      if (auto count = factor.value.getDefiningOp<NumProgramsOp>();
          count && count.getAxis() == axis)
        return count;
  return Value();
}

/// With a step s, the last iteration is at most (upper - lower - 1) / s behind the first one. The
/// last program is one less than their number.
ScalarPolynomial LaunchProof::getLeast(const ScalarPolynomial &coordinate) {
  ScalarPolynomial least = coordinate;
  for (const ScalarTerm &term : coordinate.getTerms()) {
    if (term.scale >= 0 || term.factors.size() != 1)
      continue;
    ScalarPolynomial ofTerm =
        *ScalarPolynomial(term.scale).times(ScalarPolynomial::ofFactor(term.factors.front()));
    if (auto program = term.factors.front().value.getDefiningOp<ProgramIdOp>()) {
      Value count = findProgramCount(coordinate, program.getAxis());
      std::optional<ScalarPolynomial> moved =
          count ? ScalarPolynomial::ofFactor(count).minus(1) : std::nullopt;
      moved = moved ? moved->times(term.scale) : std::nullopt;
      moved = moved ? moved->minus(ofTerm) : std::nullopt;
      if (std::optional<ScalarPolynomial> next = moved ? least.plus(*moved) : std::nullopt)
        least = *next;
      continue;
    }
    if (!term.factors.front().isIteration)
      continue;
    auto variable = cast<BlockArgument>(term.factors.front().value);
    auto loop = dyn_cast<scf::ForOp>(variable.getOwner()->getParentOp());
    std::optional<int64_t> step = loop ? getConstantIntValue(loop.getStep()) : std::nullopt;
    if (!step || *step <= 0 || term.scale % *step != 0 || loop.getUnsignedCmp() ||
        !isAsComputed(loop.getLowerBound()) || !isAsComputed(loop.getUpperBound()))
      continue;
    std::optional<LinearForm> lower = analysis.getLinearForm(loop.getLowerBound()),
                              upper = analysis.getLinearForm(loop.getUpperBound());
    std::optional<ScalarPolynomial> distance =
        lower && upper ? upper->uniform.minus(lower->uniform) : std::nullopt;
    distance = distance ? distance->minus(1) : std::nullopt;
    std::optional<ScalarPolynomial> moved =
        distance ? distance->times(term.scale / *step) : std::nullopt;
    moved = moved ? moved->minus(ofTerm) : std::nullopt;
    if (std::optional<ScalarPolynomial> next = moved ? least.plus(*moved) : std::nullopt)
      least = *next;
  }
  return least;
}
