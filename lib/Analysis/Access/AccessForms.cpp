// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms: their contents, and how their parts are made consistent.

#include "AccessTransfer.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

int64_t access::powerOfTwoDivisor(int64_t value) {
  unsigned zeros = llvm::countr_zero(static_cast<uint64_t>(value));
  // Not of a GPU: kAnyPower is 2^62.
  return zeros >= 62 ? kAnyPower : int64_t(1) << zeros;
}

int64_t access::multiplyPowers(int64_t a, int64_t b) {
  unsigned log = llvm::Log2_64(a) + llvm::Log2_64(b);
  // Not of a GPU: kAnyPower is 2^62.
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

AccessForm access::makeUniform(Type type) {
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

int64_t access::carryFreeRun(const AccessForm &form, unsigned dim, int64_t run) {
  run = powerOfTwoDivisor(run);
  return std::min(run, divisibilityAt(form, dim, run, 1));
}

int64_t access::elementDivisibility(const AccessForm &form, int64_t unit) {
  if (form.strides.empty())
    return form.divisibility;
  int64_t divisibility = 1;
  for (unsigned dim = 0; dim < form.strides.size(); ++dim)
    divisibility = std::max(divisibility, divisibilityAt(form, dim, 1, unit));
  return divisibility;
}

/// The value of a constant in a type, to which numbers of 64 bits wrap as its own do.
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

int64_t access::commonRun(int64_t a, int64_t b) { return std::gcd(a, b); }
