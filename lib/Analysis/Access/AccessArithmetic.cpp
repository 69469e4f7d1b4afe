// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of sums, products, quotients, shifts, casts and comparisons.

#include "AccessTransfer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

AccessForm Transfer::add(Type type, Value lhs, Value rhs, bool subtract) {
  const AccessForm &l = form(lhs);
  AccessForm r = form(rhs);
  // An offset is extended to the bits of an address.
  bool isAddress = isa<PointerType>(getElementTypeOrSelf(type));
  if (isAddress && kind.isExact && ConstantIntRanges::getStorageBitwidth(rhs.getType()) < 64) {
    r = extension(rhs, rhs.getType(), /*isSigned=*/true);
    normalize(r, rhs.getType());
  }
  int64_t unit = unitOf(type), unitPower = powerOfTwoDivisor(unit);
  // An offset counts elements of the pointee, a divisibility of pointers bytes.
  int64_t scale = isAddress ? unitPower : 1;
  AccessForm result = makeUniform(type);
  result.opaque = l.opaque;
  result.opaque |= r.opaque;
  auto combine = [&](const ScalarPolynomial &a, const ScalarPolynomial &b) {
    return subtract ? a.minus(b) : a.plus(b);
  };
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    if (std::optional<ScalarPolynomial> sum = combine(l.strides[dim], r.strides[dim]))
      result.strides[dim] = std::move(*sum);
    else
      result.opaque.set(dim);
    int64_t run = commonRun(l.contiguity[dim], r.constancy[dim]);
    if (!subtract)
      run = std::max(run, commonRun(l.constancy[dim], r.contiguity[dim]));
    result.contiguity[dim] = run;
    result.constancy[dim] = commonRun(l.constancy[dim], r.constancy[dim]);
    result.runDivisibility[dim] = std::min(divisibilityAt(l, dim, run, unit),
                                           multiplyPowers(divisibilityAt(r, dim, run, 1), scale));
  }
  result.divisibility = std::min(l.divisibility, multiplyPowers(r.divisibility, scale));
  result.base = l.base;
  if (l.uniform && r.uniform)
    result.uniform = combine(*l.uniform, *r.uniform);
  return result;
}

AccessForm Transfer::multiply(Type type, const AccessForm &l, const AccessForm &r) {
  AccessForm result = makeUniform(type);
  result.opaque = l.opaque;
  result.opaque |= r.opaque;
  auto isKnown = [](const AccessForm &form) { return form.uniform && form.isUniform(); };
  const AccessForm &scaled = isKnown(r) ? l : r;
  const ScalarPolynomial *factor = isKnown(r) ? &*r.uniform : isKnown(l) ? &*l.uniform : nullptr;
  int64_t divisibility = multiplyPowers(elementDivisibility(l), elementDivisibility(r));
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    std::optional<ScalarPolynomial> stride;
    if (factor)
      stride = scaled.strides[dim].times(*factor);
    else if (l.isUniformAlong(dim) && r.isUniformAlong(dim))
      stride = ScalarPolynomial();
    if (stride)
      result.strides[dim] = std::move(*stride);
    else
      result.opaque.set(dim);
    result.constancy[dim] = commonRun(l.constancy[dim], r.constancy[dim]);
    result.runDivisibility[dim] = divisibility;
  }
  result.divisibility = divisibility;
  if (factor && scaled.uniform)
    result.uniform = scaled.uniform->times(*factor);
  return result;
}

/// The remainder by a divisor that is a multiple of `divisor` and constant over runs of
/// `constancy`. A run that starts at a multiple of its own length, and is no longer than that, does
/// not wrap.
AccessForm Transfer::remainder(Value lhs, int64_t divisor, ArrayRef<int64_t> constancy, Type type) {
  const AccessForm &l = exactForm(lhs);
  AccessForm result = makeUniform(type);
  result.opaque = variesOn(l);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t common = powerOfTwoDivisor(commonRun(l.contiguity[dim], constancy[dim]));
    int64_t run = carryFreeRun(l, dim, std::min(common, divisor));
    result.contiguity[dim] = run;
    result.constancy[dim] = commonRun(l.constancy[dim], constancy[dim]);
    result.runDivisibility[dim] = std::min(divisibilityAt(l, dim, run, 1), divisor);
    if (constancy[dim] != getShape(type)[dim])
      result.opaque.set(dim);
  }
  result.divisibility = std::min(l.divisibility, divisor);
  return result;
}

/// As above, for the quotient: runs that do not cross a multiple of the divisor are equal.
AccessForm Transfer::quotient(Value lhs, int64_t divisor, ArrayRef<int64_t> constancy, Type type) {
  const AccessForm &l = exactForm(lhs);
  AccessForm result = makeUniform(type);
  result.opaque = variesOn(l);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t common = powerOfTwoDivisor(commonRun(l.contiguity[dim], constancy[dim]));
    int64_t run = carryFreeRun(l, dim, std::min(common, divisor));
    result.constancy[dim] = std::max(run, commonRun(l.constancy[dim], constancy[dim]));
    if (constancy[dim] != getShape(type)[dim])
      result.opaque.set(dim);
  }
  return result;
}

AccessForm Transfer::multiplyByConstant(Value lhs, int64_t constant) {
  AccessForm factor = makeUniform(lhs.getType());
  factor.uniform = constant;
  normalize(factor, lhs.getType());
  return multiply(lhs.getType(), form(lhs), factor);
}

AccessForm Transfer::shift(ShiftOp op) {
  std::optional<int64_t> amount = form(op.getRhs()).getConstant();
  unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
  if (!amount || *amount < 0 || *amount >= static_cast<int64_t>(width) - 1 || !isWide(op.getType()))
    return elementwise(op, op.getType());
  int64_t power = int64_t(1) << *amount;
  if (op.getKind() == ShiftKind::Left)
    return multiplyByConstant(op.getLhs(), power);
  const AccessForm &l = exactForm(op.getLhs());
  AccessForm result = quotient(op.getLhs(), power, getShape(op.getType()), op.getType());
  // Exact where every element is a multiple; strides are not divided, for a wrap below
  // the shift would show above it.
  int64_t divisibility = std::max<int64_t>(1, elementDivisibility(l) / power);
  result.divisibility = divisibility;
  llvm::fill(result.runDivisibility, divisibility);
  return result;
}

AccessForm Transfer::bitAnd(arith::AndIOp op) {
  std::optional<int64_t> mask = form(op.getRhs()).getConstant();
  if (!mask || !isWide(op.getType()))
    return elementwise(op, op.getType());
  ArrayRef<int64_t> shape = getShape(op.getType());
  // x & (2^k - 1) is the unsigned remainder by 2^k.
  if (llvm::isMask_64(*mask))
    return remainder(op.getLhs(), powerOfTwoDivisor(*mask + uint64_t(1)), shape, op.getType());
  // x & -2^k rounds down to a multiple of 2^k.
  if (llvm::isMask_64(~*mask)) {
    int64_t power = powerOfTwoDivisor(*mask);
    AccessForm result = quotient(op.getLhs(), power, shape, op.getType());
    int64_t divisibility = std::max(power, elementDivisibility(exactForm(op.getLhs())));
    result.divisibility = divisibility;
    llvm::fill(result.runDivisibility, divisibility);
    return result;
  }
  AccessForm result = elementwise(op, op.getType());
  int64_t divisibility =
      std::max(elementDivisibility(exactForm(op.getLhs())), powerOfTwoDivisor(*mask));
  result.divisibility = divisibility;
  llvm::fill(result.runDivisibility, divisibility);
  return result;
}

/// The operand of an exact extension to more bits. Aligned runs stay runs, for they do not cross
/// the end of the narrower type: they are those of a remainder by what it holds. More stays where
/// ranges say that nothing crosses it.
AccessForm Transfer::extension(Value source, Type type, bool isSigned) {
  unsigned width = ConstantIntRanges::getStorageBitwidth(source.getType());
  ArrayRef<int64_t> shape = getShape(type);
  const AccessForm &s = exactForm(source);
  // Not of a GPU: the largest power of two that is no sign of 64 bits.
  AccessForm result = remainder(source, int64_t(1) << std::min(width, 62u), shape, type);
  IntegerRanges &ranges = analysis.getRanges();
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    std::optional<int64_t> stride = s.strides[dim].getConstant();
    if (s.isAffineAlong(dim) && stride && ranges.isExact(source, *stride, isSigned)) {
      result.strides[dim] = s.strides[dim];
      result.opaque.reset(dim);
    }
    if (s.contiguity[dim] > result.contiguity[dim] && ranges.isExact(source, 1, isSigned)) {
      result.contiguity[dim] = s.contiguity[dim];
      result.runDivisibility[dim] = s.runDivisibility[dim];
    }
  }
  auto isName = [&](const ScalarPolynomial &uniform) {
    std::optional<ScalarMultiple> multiple = uniform.getMultiple();
    return multiple && multiple->symbol && multiple->scale == 1 &&
           multiple->symbol.getType() == getElementTypeOrSelf(source.getType());
  };
  if (std::optional<APInt> constant = ranges.get(source).getConstantValue())
    result.uniform =
        isSigned ? constant->getSExtValue() : static_cast<int64_t>(constant->getZExtValue());
  else if (isSigned && s.isUniform() && s.uniform && isName(*s.uniform))
    result.uniform = s.uniform;
  return result;
}

AccessForm Transfer::integerCast(Operation *op) {
  Value source = op->getOperand(0);
  Type type = op->getResult(0).getType();
  if (!isWide(source.getType()) || !isWide(type))
    return elementwise(op, type);
  unsigned from = ConstantIntRanges::getStorageBitwidth(source.getType()),
           to = ConstantIntRanges::getStorageBitwidth(type);
  if (from == to)
    return form(source);
  if (from < to) {
    // (The symbol of a coefficient is extended with its sign.)
    bool isSigned = !isa<arith::ExtUIOp>(op) || analysis.getRanges().isNonNegative(source);
    return isSigned && !kind.isExact ? form(source) : extension(source, type, isSigned);
  }
  // The low bits of a symbol are no symbol.
  AccessForm result = form(source);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim)
    if (!result.strides[dim].isConstant()) {
      result.strides[dim] = {};
      result.opaque.set(dim);
    }
  if (!result.getConstant())
    result.uniform.reset();
  return result;
}

/// Casts between pointers and integers scale strides by the size of the pointee.
AccessForm Transfer::pointerCast(Operation *op) {
  Value source = op->getOperand(0);
  Type type = op->getResult(0).getType();
  const AccessForm &s = form(source);
  bool isPointer = isa<PointerType>(getElementTypeOrSelf(source.getType())) ||
                   isa<PointerType>(getElementTypeOrSelf(type));
  if (!isPointer)
    return elementwise(op, type);
  int64_t from = unitOf(source.getType()), to = unitOf(type);
  AccessForm result = s;
  if (!s.base || !isa<PointerType>(getElementTypeOrSelf(type)) || from != to)
    result.uniform.reset();
  if (from == to)
    return result;
  int64_t divisibility = elementDivisibility(s, from);
  for (unsigned dim = 0; dim < s.strides.size(); ++dim) {
    std::optional<ScalarPolynomial> stride = s.strides[dim].times(from);
    if (stride)
      stride = stride->dividedBy(to);
    if (stride)
      result.strides[dim] = std::move(*stride);
    else
      result.opaque.set(dim);
    result.contiguity[dim] = 1;
    result.runDivisibility[dim] = divisibility;
  }
  result.divisibility = divisibility;
  return result;
}

AccessForm Transfer::compare(arith::CmpIOp op) {
  AccessForm result = elementwise(op, op.getType());
  if (!isWide(op.getLhs().getType()))
    return result;
  using arith::CmpIPredicate;
  CmpIPredicate predicate = op.getPredicate();
  // If a run's start and the bound are multiples of the run's length, `run < bound` is constant
  // over the run. The same holds for the negation, and with the sides exchanged.
  auto isOne = [&](ArrayRef<CmpIPredicate> list) { return llvm::is_contained(list, predicate); };
  Value run, bound;
  if (isOne({CmpIPredicate::slt, CmpIPredicate::ult, CmpIPredicate::sge, CmpIPredicate::uge}))
    run = op.getLhs(), bound = op.getRhs();
  else if (isOne({CmpIPredicate::sgt, CmpIPredicate::ugt, CmpIPredicate::sle, CmpIPredicate::ule}))
    run = op.getRhs(), bound = op.getLhs();
  else
    return result;
  const AccessForm &r = exactForm(run), &b = exactForm(bound);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t length = carryFreeRun(r, dim, commonRun(r.contiguity[dim], b.constancy[dim]));
    length = std::min(length, elementDivisibility(b));
    result.constancy[dim] = std::max(result.constancy[dim], length);
  }
  return result;
}
