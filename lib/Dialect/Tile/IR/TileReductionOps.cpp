// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

static LogicalResult verifyAxis(Operation *op, TypeRange operands, int32_t axis) {
  if (operands.empty())
    return op->emitOpError("has no operands");
  int64_t rank = getShape(operands.front()).size();
  if (axis < 0 || axis >= rank)
    return op->emitOpError("has axis ") << axis << " for tiles of rank " << rank;
  return success();
}

/// (R3): two scalars an operand in, one out.
static LogicalResult verifyCombine(Operation *op, Region &region, TypeRange operands) {
  SmallVector<Type> elements = llvm::to_vector(
      llvm::map_range(operands, [](Type type) { return getElementTypeOrSelf(type); }));
  SmallVector<Type> wanted(elements);
  wanted.append(elements);
  Block &block = region.front();
  if (SmallVector<Type>(block.getArgumentTypes()) != wanted)
    return op->emitOpError("region takes ") << block.getArgumentTypes() << ", wanted is " << wanted;
  if (block.empty() || SmallVector<Type>(block.back().getOperandTypes()) != elements)
    return op->emitOpError("region does not return ") << elements;
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceOp, ScanOp
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                         ValueRange operands, DictionaryAttr attributes,
                                         OpaqueProperties properties, RegionRange regions,
                                         SmallVectorImpl<Type> &results) {
  Adaptor adaptor(operands, attributes, properties, regions);
  int32_t axis = adaptor.getAxis();
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (axis < 0 || axis >= type.getRank())
      return emitOptionalError(loc, "'tile.reduce' op has axis ", axis, " for tiles of rank ",
                               type.getRank());
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + axis);
    if (shape.empty()) {
      results.push_back(type.getElementType());
      continue;
    }
    Attribute encoding = type.getEncoding();
    if (encoding) {
      auto interface = dyn_cast<TileEncodingInterface>(encoding);
      FailureOr<Attribute> inferred =
          interface ? interface.inferReduce(axis) : FailureOr<Attribute>(failure());
      if (failed(inferred))
        return emitOptionalError(loc, "'tile.reduce' op has no result for tiles of ", type);
      encoding = *inferred;
    }
    results.push_back(RankedTensorType::get(shape, type.getElementType(), encoding));
  }
  return success();
}

LogicalResult ReduceOp::verify() { return verifyAxis(*this, getOperandTypes(), getAxis()); }
LogicalResult ReduceOp::verifyRegions() {
  return verifyCombine(*this, getCombine(), getOperandTypes());
}

LogicalResult ScanOp::verify() {
  if (failed(verifyAxis(*this, getOperandTypes(), getAxis())))
    return failure();
  if (getOperandTypes() != getResultTypes())
    return emitOpError("takes ") << getOperandTypes() << " but gives " << getResultTypes();
  return success();
}
LogicalResult ScanOp::verifyRegions() {
  return verifyCombine(*this, getCombine(), getOperandTypes());
}

//===----------------------------------------------------------------------===//
// HistogramOp, GatherOp, SortOp
//===----------------------------------------------------------------------===//

LogicalResult HistogramOp::verify() {
  if (getMask() && getShape(getMask().getType()) != getShape(getSource().getType()))
    return emitOpError("has a mask of type ")
           << getMask().getType() << " for elements of type " << getSource().getType();
  return success();
}

LogicalResult GatherOp::verify() {
  if (failed(verifyAxis(*this, getSource().getType(), getAxis())))
    return failure();
  ArrayRef<int64_t> source = getShape(getSource().getType());
  ArrayRef<int64_t> index = getShape(getIndex().getType());
  if (source.size() != index.size())
    return emitOpError("has an index of rank ")
           << index.size() << " for a source of rank " << source.size();
  for (size_t dim = 0; dim < source.size(); ++dim)
    if (dim != getAxis() && source[dim] != index[dim])
      return emitOpError("has extents ")
             << source[dim] << " and " << index[dim] << " in dimension " << dim;
  if (getShape(getType()) != index ||
      getElementTypeOrSelf(getType()) != getElementTypeOrSelf(getSource().getType()))
    return emitOpError("gives ") << getType() << " from a source of type " << getSource().getType()
                                 << " and an index of type " << getIndex().getType();
  return success();
}

LogicalResult SortOp::verify() {
  if (failed(verifyAxis(*this, getOperandTypes(), getAxis())))
    return failure();
  if (getOperandTypes() != getResultTypes())
    return emitOpError("takes ") << getOperandTypes() << " but gives " << getResultTypes();
  return success();
}

LogicalResult SortOp::verifyRegions() {
  Type key = getElementTypeOrSelf(getOperandTypes().front());
  if (SmallVector<Type>(getCompare().front().getArgumentTypes()) != SmallVector<Type>{key, key})
    return emitOpError("region takes ")
           << getCompare().front().getArgumentTypes() << ", wanted are two keys of " << key;
  return success();
}

//===----------------------------------------------------------------------===//
// Building reductions
//===----------------------------------------------------------------------===//

Value tessera::tile::buildReduction(OpBuilder &builder, Location loc, Value tile, unsigned axis,
                                    BuildCombination combine) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = type.getElementType();
  SmallVector<int64_t> left(type.getShape());
  left.erase(left.begin() + axis);
  Type result = left.empty() ? element : Type(RankedTensorType::get(left, element));
  auto reduce = ReduceOp::create(builder, loc, TypeRange(result), ValueRange(tile), axis);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&reduce.getCombine(), {}, TypeRange{element, element},
                                    SmallVector<Location>{loc, loc});
  Value both = combine(builder, loc, body->getArgument(0), body->getArgument(1));
  ReduceReturnOp::create(builder, loc, both);
  return reduce.getResult(0);
}

Value tessera::tile::buildReductionToScalar(OpBuilder &builder, Location loc, Value tile,
                                            BuildCombination combine) {
  while (auto type = dyn_cast<RankedTensorType>(tile.getType()))
    tile = buildReduction(builder, loc, tile, type.getRank() - 1, combine);
  return tile;
}
