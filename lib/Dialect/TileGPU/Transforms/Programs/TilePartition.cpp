// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TilePartition.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

using PartDims = SmallVector<PartDim, 4>;

/// Ops that are elementwise on their tiles, besides those with the trait.
static bool isElementwise(Operation *op) {
  return isa<tile::LoadOp, tile::StoreOp, tile::MapElementwiseOp>(op);
}

/// True if an op gives a tile of any extent from nothing, or from a scalar.
static bool isSource(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  return isa<tile::RangeOp, tile::SplatOp, ub::PoisonOp>(op);
}

bool TilePartition::canDivide(Value value, unsigned dim) const {
  int64_t extent = tile::getShape(value.getType())[dim];
  return extent % parts == 0 && tile::isLegalExtent(extent / parts);
}

std::optional<PartDims> TilePartition::getOperandParts(Operation *op, PartDim dim) const {
  PartDims operands(op->getNumOperands());
  if (!dim || isSource(op))
    return operands;
  if (isElementwise(op)) {
    for (auto [operand, part] : llvm::zip_equal(op->getOperands(), operands))
      if (isa<RankedTensorType>(operand.getType()))
        part = dim;
    return operands;
  }
  bool isKnown = false;
  for (auto [operand, part] : llvm::zip_equal(op->getOpOperands(), operands)) {
    AffineMap map = tile::getSourceMap(operand);
    if (!map)
      return std::nullopt;
    part = tile::getSourceDim(map, *dim);
    // A part has other indices where the map computes with them.
    if (!part && map.isFunctionOfDim(*dim))
      return std::nullopt;
    isKnown |= part.has_value();
  }
  // Along any other dimension, the op repeats its operand, or its elements meet.
  if (!isKnown && !(tile::movesDimensions(op) && canDivide(op->getResult(0), *dim)))
    return std::nullopt;
  return operands;
}

PartDim TilePartition::getResultPart(OpOperand &operand, unsigned dim, unsigned result) const {
  Operation *op = operand.getOwner();
  if (isElementwise(op))
    return dim;
  AffineMap map = tile::getSourceMap(operand, result);
  return map ? tile::getResultDim(map, dim) : std::nullopt;
}

RankedTensorType TilePartition::getPartType(Type type, unsigned dim) const {
  auto tile = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tile.getShape());
  shape[dim] /= parts;
  return tile.clone(shape);
}

Value TilePartition::makePart(OpResult result, unsigned dim) const {
  RankedTensorType type = getPartType(result.getType(), dim);
  result.setType(type);
  Operation *op = result.getOwner();
  int64_t extent = type.getShape()[dim];
  if (auto range = dyn_cast<tile::RangeOp>(op)) {
    range.setEnd(range.getStart() + extent);
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = cast<SplatElementsAttr>(constant.getValue());
    constant.setValueAttr(cast<TypedAttr>(elements.resizeSplat(type)));
  } else if (auto hint = dyn_cast<tile::HintOp>(op)) {
    // Runs may be shorter now, and begin elsewhere.
    auto holds = [&](std::optional<ArrayRef<int64_t>> runs) {
      return !runs || extent % (*runs)[dim] == 0;
    };
    if (!holds(hint.getContiguity()) || !holds(hint.getConstancy()) ||
        !(hint.getContiguity() || holds(hint.getDivisibility())))
      return hint.getSource();
  }
  return result;
}
