// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of values, computed from the forms of their operands. Two descriptions go
// side by side and each repairs the other: strides (exact along a dimension, or
// nothing) and runs (contiguity, constancy and divisibility of aligned runs, which
// survive `% M` and `/ M`). The scale of every rule is a power of two, so that a
// divisibility stays true when an integer wraps.

#include "AccessRules.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

int64_t access::powerOfTwoDivisor(int64_t value) {
  unsigned zeros = llvm::countr_zero(static_cast<uint64_t>(value));
  return zeros >= 62 ? kAnyPower : int64_t(1) << zeros;
}

int64_t access::multiplyPowers(int64_t a, int64_t b) {
  unsigned log = llvm::Log2_64(a) + llvm::Log2_64(b);
  return log >= 62 ? kAnyPower : int64_t(1) << log;
}

static bool isIntegerLike(Type type) { return getElementTypeOrSelf(type).isIntOrIndex(); }

bool access::isWide(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<PointerType, IndexType>(element))
    return true;
  auto integer = dyn_cast<IntegerType>(element);
  return integer && integer.getWidth() >= 32;
}

int64_t access::unitOf(Type type) {
  if (auto pointer = dyn_cast<PointerType>(getElementTypeOrSelf(type)))
    return pointer.getPointeeBytes();
  return 1;
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

/// A form with every stride 0 and nothing known beyond that.
static AccessForm makeUniform(Type type) {
  ArrayRef<int64_t> shape = getShape(type);
  AccessForm form;
  form.strides.resize(shape.size());
  form.opaque.resize(shape.size());
  form.contiguity.assign(shape.size(), 1);
  form.constancy.assign(shape.begin(), shape.end());
  form.runDivisibility.assign(shape.size(), 1);
  return form;
}

AccessForm access::makeOpaque(Type type) {
  AccessForm form = makeUniform(type);
  form.opaque.set();
  form.constancy.assign(form.strides.size(), 1);
  return form;
}

bool AccessForm::isUniform() const {
  return opaque.none() &&
         llvm::all_of(strides, [](const ScalarPolynomial &stride) { return stride.isZero(); });
}

std::optional<int64_t> AccessForm::getConstant() const {
  return uniform && !base && isUniform() ? uniform->getConstant() : std::nullopt;
}

llvm::SmallBitVector access::variesOn(const AccessForm &form) {
  llvm::SmallBitVector dims(form.strides.size());
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (!form.isUniformAlong(dim))
      dims.set(dim);
  return dims;
}

int64_t access::divisibilityAt(const AccessForm &form, unsigned dim, int64_t run, int64_t unit) {
  int64_t contiguity = form.contiguity[dim], divisibility = form.runDivisibility[dim];
  if (run % contiguity == 0)
    return divisibility;
  int64_t step = powerOfTwoDivisor(std::gcd(run, contiguity));
  return std::min(divisibility, multiplyPowers(step, powerOfTwoDivisor(unit)));
}

int64_t access::elementDivisibility(const AccessForm &form, int64_t unit) {
  if (form.strides.empty())
    return form.divisibility;
  int64_t divisibility = 1;
  for (unsigned dim = 0; dim < form.strides.size(); ++dim)
    divisibility = std::max(divisibility, divisibilityAt(form, dim, 1, unit));
  return divisibility;
}

/// What a constant is in a type, to which numbers of 64 bits wrap as its own do.
static int64_t wrapTo(Type type, int64_t constant) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!integer || integer.getWidth() >= 64)
    return constant;
  if (integer.getWidth() == 1)
    return constant & 1;
  return llvm::SignExtend64(static_cast<uint64_t>(constant), integer.getWidth());
}

void access::normalize(AccessForm &form, Type type) {
  ArrayRef<int64_t> shape = getShape(type);
  for (ScalarPolynomial &stride : form.strides)
    if (std::optional<int64_t> constant = stride.getConstant())
      stride = wrapTo(type, *constant);
  bool isNumber = isIntegerLike(type) || isa<PointerType>(getElementTypeOrSelf(type));
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    if (extent == 1) {
      form.opaque.reset(dim);
      form.strides[dim] = {};
      form.contiguity[dim] = form.constancy[dim] = 1;
      continue;
    }
    if (form.constancy[dim] >= extent) {
      form.opaque.reset(dim);
      form.strides[dim] = {};
    } else if (form.contiguity[dim] >= extent && isNumber) {
      form.opaque.reset(dim);
      form.strides[dim] = 1;
    }
    if (form.isUniformAlong(dim)) {
      form.constancy[dim] = extent;
      form.contiguity[dim] = 1;
    } else if (form.isAffineAlong(dim) && form.strides[dim].isOne()) {
      form.contiguity[dim] = extent;
      form.constancy[dim] = 1;
    }
  }
  if (form.opaque.any())
    form.uniform.reset();
  if (!form.uniform)
    form.base = {};
  if (form.uniform)
    if (std::optional<int64_t> constant = form.uniform->getConstant())
      form.uniform = wrapTo(type, *constant);
  if (std::optional<int64_t> constant = form.getConstant()) {
    int64_t divisibility = powerOfTwoDivisor(*constant);
    form.divisibility = std::max(form.divisibility, divisibility);
    for (int64_t &ofRuns : form.runDivisibility)
      ofRuns = std::max(ofRuns, divisibility);
  }
  if (shape.empty())
    return;
  int64_t ofElements = elementDivisibility(form, unitOf(type));
  int64_t ofRuns = kAnyPower;
  bool countsUp = false;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    if (form.contiguity[dim] == 1) {
      form.runDivisibility[dim] = ofElements;
      continue;
    }
    countsUp = true;
    form.runDivisibility[dim] = std::max(form.runDivisibility[dim], ofElements);
    ofRuns = std::min(ofRuns, form.runDivisibility[dim]);
  }
  form.divisibility = countsUp ? ofRuns : ofElements;
}

/// The greatest number of which both are multiples, for extents of runs.
static int64_t commonRun(int64_t a, int64_t b) { return std::gcd(a, b); }

//===----------------------------------------------------------------------===//
// Rules, one for each kind of op
//===----------------------------------------------------------------------===//

namespace {

/// The form of an op's result from the forms of its operands, before normalising.
struct Transfer {
  AccessAnalysis &analysis;
  bool isExact;

  const AccessForm &form(Value value) { return analysis.getForm(value, isExact); }
  const AccessForm &exactForm(Value value) { return analysis.getExactForm(value); }

  AccessForm visit(OpResult value);

private:
  AccessForm add(Type type, Value lhs, Value rhs, bool subtract);
  AccessForm multiply(Type type, const AccessForm &lhs, const AccessForm &rhs);
  AccessForm multiplyByConstant(Value lhs, int64_t constant);
  AccessForm remainder(Value lhs, int64_t divisor, ArrayRef<int64_t> constancy, Type type);
  AccessForm quotient(Value lhs, int64_t divisor, ArrayRef<int64_t> constancy, Type type);
  AccessForm shift(ShiftOp op);
  AccessForm bitAnd(arith::AndIOp op);
  AccessForm extension(Value source, Type type, bool isSigned);
  AccessForm integerCast(Operation *op);
  AccessForm pointerCast(Operation *op);
  AccessForm merge(Type type, ArrayRef<Value> values, bool keepRuns);
  AccessForm select(arith::SelectOp op);
  AccessForm compare(arith::CmpIOp op);
  AccessForm load(LoadOp op);
  AccessForm hint(HintOp op);
  AccessForm constant(arith::ConstantOp op);
  AccessForm splat(SplatOp op);
  AccessForm expandDims(ExpandDimsOp op);
  AccessForm trans(TransOp op);
  AccessForm reshape(ReshapeOp op);
  AccessForm dropDim(Type type, Value source, unsigned dim);
  AccessForm alongAxis(Value result, unsigned axis);
  AccessForm gather(GatherOp op);
  AccessForm elementwise(Operation *op, Type type);
};

AccessForm Transfer::add(Type type, Value lhs, Value rhs, bool subtract) {
  const AccessForm &l = form(lhs);
  AccessForm r = form(rhs);
  // An offset is extended to the bits of an address.
  bool isAddress = isa<PointerType>(getElementTypeOrSelf(type));
  if (isAddress && isExact && ConstantIntRanges::getStorageBitwidth(rhs.getType()) < 64) {
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
/// `constancy`: a run that starts at a multiple of its own length, itself no longer than
/// that, does not wrap.
AccessForm Transfer::remainder(Value lhs, int64_t divisor, ArrayRef<int64_t> constancy, Type type) {
  const AccessForm &l = exactForm(lhs);
  AccessForm result = makeUniform(type);
  result.opaque = variesOn(l);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t run = powerOfTwoDivisor(commonRun(l.contiguity[dim], constancy[dim]));
    run = std::min(run, divisor);
    run = std::min(run, divisibilityAt(l, dim, run, 1));
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
    int64_t run = powerOfTwoDivisor(commonRun(l.contiguity[dim], constancy[dim]));
    run = std::min(run, divisor);
    run = std::min(run, divisibilityAt(l, dim, run, 1));
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

/// What is extended to more bits, exactly. Aligned runs stay runs, for they do not cross the
/// end of the narrower type: they are those of a remainder by what it holds. More stays where
/// ranges say that nothing crosses it.
AccessForm Transfer::extension(Value source, Type type, bool isSigned) {
  unsigned width = ConstantIntRanges::getStorageBitwidth(source.getType());
  ArrayRef<int64_t> shape = getShape(type);
  const AccessForm &s = exactForm(source);
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
    return isSigned && !isExact ? form(source) : extension(source, type, isSigned);
  }
  // The low bits of a symbol are no symbol.
  AccessForm result = form(source);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim)
    if (!result.strides[dim].isConstant()) {
      result.strides[dim] = {};
      result.opaque.set(dim);
    }
  if (result.uniform && !result.uniform->isConstant())
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

/// One of several values, the same one for the whole tile.
AccessForm Transfer::merge(Type type, ArrayRef<Value> values, bool keepRuns) {
  AccessForm result = form(values.front());
  for (Value value : values.drop_front()) {
    const AccessForm &other = form(value);
    result.opaque |= other.opaque;
    for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
      if (!(result.strides[dim] == other.strides[dim]))
        result.opaque.set(dim);
      int64_t run = commonRun(result.contiguity[dim], other.contiguity[dim]);
      int64_t unit = unitOf(type);
      int64_t divisibility =
          std::min(divisibilityAt(result, dim, run, unit), divisibilityAt(other, dim, run, unit));
      result.contiguity[dim] = run;
      result.constancy[dim] = commonRun(result.constancy[dim], other.constancy[dim]);
      result.runDivisibility[dim] = divisibility;
    }
    result.divisibility = std::min(result.divisibility, other.divisibility);
    if (!(result.uniform == other.uniform) || result.base != other.base)
      result.uniform.reset();
  }
  if (!keepRuns) {
    int64_t divisibility = elementDivisibility(result, unitOf(type));
    result.contiguity.assign(result.strides.size(), 1);
    result.runDivisibility.assign(result.strides.size(), divisibility);
  }
  return result;
}

AccessForm Transfer::select(arith::SelectOp op) {
  AccessForm result = merge(op.getType(), {op.getTrueValue(), op.getFalseValue()},
                            /*keepRuns=*/true);
  if (!isa<RankedTensorType>(op.getCondition().getType()))
    return result;
  const AccessForm &condition = exactForm(op.getCondition());
  result.opaque |= variesOn(condition);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t run = commonRun(result.contiguity[dim], condition.constancy[dim]);
    result.runDivisibility[dim] = divisibilityAt(result, dim, run, unitOf(op.getType()));
    result.contiguity[dim] = run;
    result.constancy[dim] = commonRun(result.constancy[dim], condition.constancy[dim]);
  }
  return result;
}

AccessForm Transfer::compare(arith::CmpIOp op) {
  AccessForm result = elementwise(op, op.getType());
  if (!isWide(op.getLhs().getType()))
    return result;
  using arith::CmpIPredicate;
  CmpIPredicate predicate = op.getPredicate();
  // `run < bound` is the same for a whole run whose start, like the bound, is a multiple
  // of its length; so is its negation, and both with the sides exchanged.
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
    int64_t length = powerOfTwoDivisor(commonRun(r.contiguity[dim], b.constancy[dim]));
    length = std::min(length, divisibilityAt(r, dim, length, 1));
    length = std::min(length, elementDivisibility(b));
    result.constancy[dim] = std::max(result.constancy[dim], length);
  }
  return result;
}

AccessForm Transfer::load(LoadOp op) {
  AccessForm result = elementwise(op, op.getType());
  // Two reads of one address may differ where each lane reads on its own.
  return op.getIsVolatile() ? makeOpaque(op.getType()) : result;
}

AccessForm Transfer::hint(HintOp op) {
  AccessForm result = form(op.getSource());
  if (result.strides.empty()) {
    if (op.getDivisibility())
      result.divisibility =
          std::max(result.divisibility, powerOfTwoDivisor(op.getDivisibility()->front()));
    return result;
  }
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t promised = op.getDivisibility() ? powerOfTwoDivisor((*op.getDivisibility())[dim]) : 1;
    int64_t run = op.getContiguity() ? (*op.getContiguity())[dim] : 1;
    // Two descriptions of runs of different lengths: the longer runs are kept, with
    // what is known of their starts.
    if (run > result.contiguity[dim]) {
      promised = std::max(promised, divisibilityAt(result, dim, run, unitOf(op.getType())));
      result.contiguity[dim] = run;
      result.runDivisibility[dim] = promised;
    } else if (result.contiguity[dim] % run == 0) {
      result.runDivisibility[dim] = std::max(result.runDivisibility[dim], promised);
    }
    if (op.getConstancy())
      result.constancy[dim] = std::max(result.constancy[dim], (*op.getConstancy())[dim]);
  }
  return result;
}

AccessForm Transfer::constant(arith::ConstantOp op) {
  Type type = op.getType();
  auto read = [](const APInt &value) {
    return value.getBitWidth() == 1 ? static_cast<int64_t>(value.getZExtValue())
                                    : value.getSExtValue();
  };
  if (auto scalar = dyn_cast<IntegerAttr>(op.getValue())) {
    AccessForm result = makeUniform(type);
    result.uniform = read(scalar.getValue());
    return result;
  }
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return makeUniform(type);
  if (elements.isSplat()) {
    AccessForm result = makeUniform(type);
    if (isa<IntegerType>(elements.getElementType()))
      result.uniform = read(elements.getSplatValue<APInt>());
    return result;
  }
  AccessForm result = makeOpaque(type);
  if (!isWide(type))
    return result;
  // Affine, if every element is where the first ones along each dimension say.
  ArrayRef<int64_t> shape = getShape(type);
  SmallVector<int64_t> values;
  for (const APInt &element : elements.getValues<APInt>())
    values.push_back(element.getSExtValue());
  SmallVector<int64_t> strides(shape.size(), 0);
  int64_t step = 1;
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    if (shape[dim] > 1)
      strides[dim] = values[step] - values[0];
    step *= shape[dim];
  }
  for (auto [linear, value] : llvm::enumerate(values)) {
    int64_t expected = values[0], rest = linear;
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
      expected += strides[dim] * (rest % shape[dim]);
      rest /= shape[dim];
    }
    if (expected != value)
      return result;
  }
  result.opaque.reset();
  int64_t divisibility = powerOfTwoDivisor(values[0]);
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    result.strides[dim] = strides[dim];
  result.uniform = values[0];
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    int64_t ofRuns = divisibility;
    for (unsigned other = 0; other < shape.size(); ++other)
      if (other != dim || strides[dim] != 1)
        ofRuns = std::min(ofRuns, powerOfTwoDivisor(strides[other]));
    if (strides[dim] == 1)
      result.contiguity[dim] = shape[dim];
    result.runDivisibility[dim] = ofRuns;
  }
  return result;
}

AccessForm Transfer::splat(SplatOp op) {
  const AccessForm &s = form(op.getSource());
  AccessForm result = makeUniform(op.getType());
  llvm::fill(result.runDivisibility, s.divisibility);
  result.base = s.base;
  result.uniform = s.uniform;
  return result;
}

AccessForm Transfer::expandDims(ExpandDimsOp op) {
  AccessForm source = form(op.getSource());
  unsigned axis = op.getAxis();
  AccessForm result = source;
  result.strides.insert(result.strides.begin() + axis, ScalarPolynomial());
  result.contiguity.insert(result.contiguity.begin() + axis, 1);
  result.constancy.insert(result.constancy.begin() + axis, 1);
  result.runDivisibility.insert(result.runDivisibility.begin() + axis,
                                elementDivisibility(source, unitOf(op.getType())));
  result.opaque = llvm::SmallBitVector(result.strides.size());
  for (unsigned dim = 0; dim < result.strides.size(); ++dim)
    if (dim != axis && source.opaque.test(dim < axis ? dim : dim - 1))
      result.opaque.set(dim);
  return result;
}

AccessForm Transfer::trans(TransOp op) {
  const AccessForm &source = form(op.getSource());
  AccessForm result = source;
  result.opaque.reset();
  for (auto [dim, from] : llvm::enumerate(op.getOrder())) {
    result.strides[dim] = source.strides[from];
    result.contiguity[dim] = source.contiguity[from];
    result.constancy[dim] = source.constancy[from];
    result.runDivisibility[dim] = source.runDivisibility[from];
    if (source.opaque.test(from))
      result.opaque.set(dim);
  }
  return result;
}

/// Dimensions that a reshape takes apart keep their strides, and so do those it puts
/// together where they lie in memory one after another.
AccessForm Transfer::reshape(ReshapeOp op) {
  const AccessForm &source = form(op.getSource());
  ArrayRef<int64_t> from = getShape(op.getSource().getType()), to = getShape(op.getType());
  int64_t unit = unitOf(op.getType());
  int64_t ofElements = elementDivisibility(source, unit);
  AccessForm result = makeOpaque(op.getType());
  result.base = source.base;
  result.uniform = source.uniform;
  llvm::fill(result.runDivisibility, ofElements);
  unsigned f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    // The least groups of dimensions that hold as many elements, less extents of 1.
    unsigned firstFrom = f, firstTo = t;
    int64_t fromCount = f < from.size() ? from[f++] : 1, toCount = t < to.size() ? to[t++] : 1;
    while (fromCount != toCount) {
      if (fromCount < toCount)
        fromCount *= from[f++];
      else
        toCount *= to[t++];
    }
    SmallVector<unsigned> fromDims, toDims;
    for (unsigned dim = firstFrom; dim < f; ++dim)
      if (from[dim] != 1)
        fromDims.push_back(dim);
    for (unsigned dim = firstTo; dim < t; ++dim)
      if (to[dim] != 1)
        toDims.push_back(dim);
    if (fromDims.empty())
      continue;
    // The stride from one element of the group to the next, if there is one.
    unsigned last = fromDims.back();
    std::optional<ScalarPolynomial> step = source.strides[last], expected = step;
    for (unsigned dim : llvm::reverse(fromDims)) {
      if (!expected || source.opaque.test(dim) || !(source.strides[dim] == *expected)) {
        step.reset();
        break;
      }
      expected = expected->times(from[dim]);
    }
    int64_t size = 1;
    for (unsigned dim : llvm::reverse(toDims)) {
      std::optional<ScalarPolynomial> stride;
      if (step)
        stride = step->times(size);
      if (stride) {
        result.strides[dim] = std::move(*stride);
        result.opaque.reset(dim);
      }
      size *= to[dim];
    }
    // Runs of the innermost dimension stay runs.
    unsigned inner = toDims.back();
    int64_t run = commonRun(source.contiguity[last], to[inner]);
    result.contiguity[inner] = run;
    result.runDivisibility[inner] = std::max(ofElements, divisibilityAt(source, last, run, unit));
    result.constancy[inner] = commonRun(source.constancy[last], to[inner]);
  }
  return result;
}

/// The source without one of its dimensions.
AccessForm Transfer::dropDim(Type type, Value source, unsigned dim) {
  const AccessForm &s = form(source);
  AccessForm result = makeOpaque(type);
  int64_t divisibility = elementDivisibility(s, unitOf(type));
  for (unsigned d = 0; d < result.strides.size(); ++d) {
    unsigned from = d < dim ? d : d + 1;
    result.strides[d] = s.strides[from];
    result.contiguity[d] = s.contiguity[from];
    result.constancy[d] = s.constancy[from];
    result.runDivisibility[d] = s.runDivisibility[from];
    if (!s.opaque.test(from))
      result.opaque.reset(d);
  }
  result.divisibility = divisibility;
  return result;
}

/// An op in which the elements along one axis meet: what varies elsewhere is unchanged.
AccessForm Transfer::alongAxis(Value value, unsigned axis) {
  Operation *op = value.getDefiningOp();
  AccessForm result = makeOpaque(value.getType());
  llvm::SmallBitVector varies(result.strides.size());
  bool drops = isa<ReduceOp>(op);
  for (Value operand : op->getOperands()) {
    llvm::SmallBitVector dims = access::variesOn(exactForm(operand));
    for (unsigned dim : dims.set_bits()) {
      if (!drops)
        varies.set(dim);
      else if (dim != axis)
        varies.set(dim < axis ? dim : dim - 1);
    }
  }
  if (!drops)
    varies.set(axis);
  result.opaque = varies;
  return result;
}

AccessForm Transfer::gather(GatherOp op) {
  AccessForm result = makeOpaque(op.getType());
  llvm::SmallBitVector varies = access::variesOn(exactForm(op.getIndex()));
  llvm::SmallBitVector dims = access::variesOn(exactForm(op.getSource()));
  for (unsigned dim : dims.set_bits())
    if (dim != op.getAxis())
      varies.set(dim);
  result.opaque = varies;
  return result;
}

/// Nothing is known but that equal operands give equal results.
AccessForm Transfer::elementwise(Operation *op, Type type) {
  AccessForm result = makeUniform(type);
  for (Value operand : op->getOperands()) {
    if (getShape(operand.getType()).size() != result.strides.size())
      continue; // a scalar operand of select
    // What a load reads at equal addresses is equal.
    bool isAddress = isa<PointerType>(getElementTypeOrSelf(operand.getType()));
    const AccessForm &o = isAddress ? analysis.getForm(operand) : exactForm(operand);
    result.opaque |= access::variesOn(o);
    for (unsigned dim = 0; dim < result.strides.size(); ++dim)
      result.constancy[dim] = commonRun(result.constancy[dim], o.constancy[dim]);
  }
  return result;
}

AccessForm Transfer::visit(OpResult value) {
  Operation *op = value.getOwner();
  Type type = value.getType();
  auto binary = [&](auto rule) { return isWide(type) ? rule() : elementwise(op, type); };
  auto signOk = [&](Signedness signedness, Value lhs) {
    return signedness == Signedness::Unsigned || analysis.getRanges().isNonNegative(lhs);
  };
  return TypeSwitch<Operation *, AccessForm>(op)
      .Case<arith::ConstantOp>([&](auto constantOp) { return constant(constantOp); })
      .Case<RangeOp>([&](RangeOp range) {
        AccessForm result = makeOpaque(type);
        result.opaque.reset();
        result.strides[0] = 1;
        result.uniform = static_cast<int32_t>(range.getStart());
        result.contiguity[0] = getShape(type)[0];
        result.runDivisibility[0] = powerOfTwoDivisor(static_cast<int32_t>(range.getStart()));
        return result;
      })
      .Case<SplatOp>([&](SplatOp splatOp) { return splat(splatOp); })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) { return form(broadcast.getSource()); })
      .Case<ExpandDimsOp>([&](ExpandDimsOp expand) { return expandDims(expand); })
      .Case<TransOp>([&](TransOp transOp) { return trans(transOp); })
      .Case<ReshapeOp>([&](ReshapeOp reshapeOp) { return reshape(reshapeOp); })
      .Case<SplitOp>([&](SplitOp split) {
        return dropDim(type, split.getSource(), getShape(split.getSource().getType()).size() - 1);
      })
      .Case<arith::AddIOp, arith::SubIOp>([&](Operation *sum) {
        return binary([&] {
          return add(type, sum->getOperand(0), sum->getOperand(1), isa<arith::SubIOp>(sum));
        });
      })
      .Case<AddPtrOp>([&](AddPtrOp sum) {
        return add(type, sum.getPtr(), sum.getOffset(), /*subtract=*/false);
      })
      .Case<arith::MulIOp>([&](arith::MulIOp product) {
        return binary(
            [&] { return multiply(type, form(product.getLhs()), form(product.getRhs())); });
      })
      .Case<ShiftOp>([&](ShiftOp shiftOp) { return shift(shiftOp); })
      .Case<RemIntOp>([&](RemIntOp rem) {
        if (!isWide(type) || !signOk(rem.getSignedness(), rem.getLhs()))
          return elementwise(op, type);
        const AccessForm &r = exactForm(rem.getRhs());
        return remainder(rem.getLhs(), elementDivisibility(r), r.constancy, type);
      })
      .Case<DivIntOp>([&](DivIntOp div) {
        const AccessForm &r = exactForm(div.getRhs());
        AccessForm result = isWide(type) && signOk(div.getSignedness(), div.getLhs())
                                ? quotient(div.getLhs(), elementDivisibility(r), r.constancy, type)
                                : elementwise(op, type);
        // Exact where every element is a multiple.
        std::optional<int64_t> divisor = r.getConstant();
        if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor)) {
          int64_t divisibility =
              std::max<int64_t>(1, elementDivisibility(exactForm(div.getLhs())) / *divisor);
          result.divisibility = divisibility;
          llvm::fill(result.runDivisibility, divisibility);
        }
        return result;
      })
      .Case<arith::AndIOp>([&](arith::AndIOp andOp) { return bitAnd(andOp); })
      .Case<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>([&](Operation *minmax) {
        AccessForm result = elementwise(minmax, type);
        int64_t divisibility = std::min(elementDivisibility(exactForm(minmax->getOperand(0))),
                                        elementDivisibility(exactForm(minmax->getOperand(1))));
        result.divisibility = divisibility;
        llvm::fill(result.runDivisibility, divisibility);
        return result;
      })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](Operation *cast) { return integerCast(cast); })
      .Case<BitcastOp, PtrToIntOp, IntToPtrOp>([&](Operation *cast) { return pointerCast(cast); })
      .Case<arith::SelectOp>([&](arith::SelectOp selectOp) { return select(selectOp); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp cmp) { return compare(cmp); })
      .Case<LoadOp>([&](LoadOp loadOp) { return load(loadOp); })
      .Case<HintOp>([&](HintOp hintOp) { return hint(hintOp); })
      .Case<ReduceOp>([&](ReduceOp reduce) { return alongAxis(value, reduce.getAxis()); })
      .Case<ScanOp>([&](ScanOp scan) { return alongAxis(value, scan.getAxis()); })
      .Case<SortOp>([&](SortOp sort) { return alongAxis(value, sort.getAxis()); })
      .Case<GatherOp>([&](GatherOp gatherOp) { return gather(gatherOp); })
      .Case<JoinOp>([&](JoinOp join) {
        AccessForm result = makeOpaque(type);
        llvm::SmallBitVector varies = access::variesOn(exactForm(join.getLhs()));
        varies |= access::variesOn(exactForm(join.getRhs()));
        varies.resize(result.strides.size(), true);
        result.opaque = varies;
        return result;
      })
      .Case<CatOp>([&](CatOp cat) {
        AccessForm result = merge(type, {cat.getLhs(), cat.getRhs()}, /*keepRuns=*/true);
        unsigned axis = cat.getAxis();
        int64_t half = getShape(cat.getLhs().getType())[axis];
        result.opaque.set(axis);
        result.uniform.reset();
        result.constancy[axis] = commonRun(result.constancy[axis], half);
        return result;
      })
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        // A carried value that an iteration changes by uniform amounts looks alike after any
        // number of iterations, none included; only where it begins is another matter.
        AccessForm result = form(loop.getRegionIterArg(value.getResultNumber()));
        if (result.uniform && !isInvariant(*result.uniform, loop))
          result.uniform.reset();
        return result;
      })
      .Case<scf::IfOp>([&](scf::IfOp ifOp) {
        unsigned number = value.getResultNumber();
        return merge(type,
                     {ifOp.thenYield().getOperand(number), ifOp.elseYield().getOperand(number)},
                     /*keepRuns=*/true);
      })
      .Case<ub::PoisonOp>([&](auto) { return makeUniform(type); })
      .Case<ExternElementwiseOp>([&](ExternElementwiseOp foreign) {
        return foreign.getPure() ? elementwise(op, type) : makeOpaque(type);
      })
      .Case<InlineAsmOp>([&](InlineAsmOp foreign) {
        return foreign.getPure() && foreign.getPacked() == 1 ? elementwise(op, type)
                                                             : makeOpaque(type);
      })
      .Case<MapElementwiseOp>([&](MapElementwiseOp map) {
        return isPure(map) ? elementwise(op, type) : makeOpaque(type);
      })
      .Default([&](Operation *other) {
        if (other->hasTrait<SameElements>())
          return form(other->getOperand(0));
        return other->hasTrait<OpTrait::Elementwise>() && isPure(other) ? elementwise(other, type)
                                                                        : makeOpaque(type);
      });
}

} // namespace

AccessForm access::applyRule(AccessAnalysis &analysis, OpResult value, bool isExact) {
  return Transfer{analysis, isExact}.visit(value);
}
