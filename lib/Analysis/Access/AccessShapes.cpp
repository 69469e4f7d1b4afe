// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of constants, and of what moves, repeats or combines elements.

#include "AccessTransfer.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

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

/// The rule of an op that only its source maps choose.
AccessForm Transfer::followMaps(OpResult value) {
  Operation *op = value.getOwner();
  if (keepsElements(op))
    return form(op->getOperand(0));
  AffineMap map = getSourceMap(op->getOpOperand(0), value.getResultNumber());
  bool movesDims = llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
  if (op->getNumOperands() == 1 && movesDims)
    return moveDims(value);
  if (onlyReshapes(op))
    return reshape(value);
  auto move = dyn_cast<MoveOpInterface>(op);
  if (move && getOperandChoice(move) && map.getNumResults() == map.getNumDims())
    return concatenate(value);
  return combine(value);
}

/// An op that moves whole dimensions: what is known along each of them stays. A new one has
/// extent 1, or repeats an element.
AccessForm Transfer::moveDims(OpResult value) {
  Operation *op = value.getOwner();
  Type type = value.getType();
  AffineMap map = getSourceMap(op->getOpOperand(0), value.getResultNumber());
  const AccessForm &source = form(op->getOperand(0));
  int64_t ofElements = elementDivisibility(source, unitOf(type));
  AccessForm result = makeUniform(type);
  result.divisibility = source.divisibility;
  result.base = source.base;
  result.uniform = source.uniform;
  llvm::SmallBitVector used(map.getNumResults());
  for (auto [dim, extent] : llvm::enumerate(getShape(op->getOperand(0).getType())))
    if (extent == 1)
      used.set(dim);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    std::optional<unsigned> from = getSourceDim(map, dim);
    result.constancy[dim] = from ? source.constancy[*from] : 1;
    result.runDivisibility[dim] = from ? source.runDivisibility[*from] : ofElements;
    if (!from)
      continue;
    used.set(*from);
    result.strides[dim] = source.strides[*from];
    result.contiguity[dim] = source.contiguity[*from];
    if (source.opaque.test(*from))
      result.opaque.set(dim);
  }
  // A part of the operand begins at another element than the operand.
  if (!used.all()) {
    result.base = {};
    result.uniform.reset();
    result.divisibility = ofElements;
  }
  return result;
}

/// Dimensions that a reshape takes apart keep their strides, and so do those it puts
/// together where they lie in memory one after another.
AccessForm Transfer::reshape(OpResult value) {
  Value operand = value.getOwner()->getOperand(0);
  const AccessForm &source = form(operand);
  ArrayRef<int64_t> from = getShape(operand.getType()), to = getShape(value.getType());
  int64_t unit = unitOf(value.getType());
  int64_t ofElements = elementDivisibility(source, unit);
  AccessForm result = makeOpaque(value.getType());
  result.base = source.base;
  result.uniform = source.uniform;
  llvm::fill(result.runDivisibility, ofElements);
  for (ReshapeGroup group : getReshapeGroups(from, to)) {
    SmallVector<unsigned> fromDims, toDims;
    for (unsigned dim = group.fromBegin; dim < group.fromEnd; ++dim)
      if (from[dim] != 1)
        fromDims.push_back(dim);
    for (unsigned dim = group.toBegin; dim < group.toEnd; ++dim)
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

/// Two tiles, one after the other along a dimension: runs within both of them stay.
AccessForm Transfer::concatenate(OpResult value) {
  auto move = cast<MoveOpInterface>(value.getOwner());
  OperandChoice choice = *getOperandChoice(move);
  AccessForm result =
      merge(value.getType(), llvm::to_vector_of<Value>(move->getOperands()), /*keepRuns=*/true);
  result.opaque.set(choice.dim);
  result.uniform.reset();
  result.constancy[choice.dim] = commonRun(result.constancy[choice.dim], choice.border);
  return result;
}

/// An op that combines elements, or chooses among them: the result varies along the dimensions of
/// its operands that vary, and along those that say which elements are taken.
AccessForm Transfer::combine(OpResult value) {
  AccessForm result = makeOpaque(value.getType());
  llvm::SmallBitVector varies(result.strides.size()), known(result.strides.size());
  for (OpOperand &operand : value.getOwner()->getOpOperands()) {
    AffineMap map = getSourceMap(operand, value.getResultNumber());
    llvm::SmallBitVector dims = access::variesOn(exactForm(operand.get()));
    for (unsigned dim = 0; dim < varies.size(); ++dim)
      if (std::optional<unsigned> from = getSourceDim(map, dim)) {
        known.set(dim);
        if (dims.test(*from))
          varies.set(dim);
      }
  }
  result.opaque = varies | known.flip();
  return result;
}
