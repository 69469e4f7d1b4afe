// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of constants, and of what moves, repeats or combines elements.

#include "AccessTransfer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

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
