// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera::tile;

LogicalResult RangeOp::verify() {
  int64_t start = static_cast<int32_t>(getStart()), end = static_cast<int32_t>(getEnd());
  if (end <= start)
    return emitOpError("ends at ") << end << ", which is not above its start " << start;
  int64_t length = getShape(getType())[0];
  if (end - start != length)
    return emitOpError("has ") << end - start << " integers for a result of " << length;
  return success();
}

OpFoldResult RangeOp::fold(FoldAdaptor) {
  if (getShape(getType())[0] != 1)
    return {};
  return DenseElementsAttr::get(cast<ShapedType>(getType()), APInt(32, getStart()));
}

LogicalResult SplatOp::verify() {
  if (getElementTypeOrSelf(getType()) != getSource().getType())
    return emitOpError("makes elements of ")
           << getElementTypeOrSelf(getType()) << " from a " << getSource().getType();
  return success();
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (!adaptor.getSource() || !isa<IntegerAttr, FloatAttr>(adaptor.getSource()))
    return {};
  return DenseElementsAttr::get(cast<ShapedType>(getType()), adaptor.getSource());
}
