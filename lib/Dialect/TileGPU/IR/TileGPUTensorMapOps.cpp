// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps and the copies that use them: their rules.

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// TensorMapAttr
//===----------------------------------------------------------------------===//

/// (D2): sums of products of symbols and constants.
static bool isPolynomial(AffineExpr expr) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
  case AffineExprKind::SymbolId:
    return true;
  case AffineExprKind::Add:
  case AffineExprKind::Mul: {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    return isPolynomial(binary.getLHS()) && isPolynomial(binary.getRHS());
  }
  default:
    return false;
  }
}

LogicalResult TensorMapAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned,
                                    Type element, AffineMap extents, AffineMap strides,
                                    ArrayRef<int64_t> box, unsigned swizzle) {
  constexpr size_t kMostDims = 5;
  size_t rank = box.size();
  if (rank < 1 || rank > kMostDims || extents.getNumResults() != rank ||
      strides.getNumResults() != rank)
    return emitError() << "there are " << extents.getNumResults() << " extents, "
                       << strides.getNumResults() << " strides and a box of rank " << rank
                       << "; wanted are as many of each, 1 to 5";
  for (AffineMap map : {extents, strides})
    if (map.getNumDims() || !llvm::all_of(map.getResults(), isPolynomial))
      return emitError() << "extents and strides are sums of products of symbols and constants";
  if (strides.getResults().back() != getAffineConstantExpr(1, strides.getContext()))
    return emitError() << "the last stride is not 1: " << AffineMapAttr::get(strides);
  for (int64_t extent : box)
    if (extent < 1 || extent > kMostBoxElements)
      return emitError() << "a box of " << extent << " elements along a dimension; wanted are 1 to "
                         << kMostBoxElements;
  if (!element.isIntOrFloat())
    return emitError() << "the elements are " << element << ", which no copy engine knows";
  int64_t rowBytes = box.back() * getElementBytes(element);
  if (rowBytes % kBoxRowAlignment != 0)
    return emitError() << "rows of a box have " << rowBytes << " bytes, which is no multiple of "
                       << kBoxRowAlignment;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "there is no swizzle over " << swizzle << " bytes";
  if (swizzle && rowBytes > swizzle)
    return emitError() << "rows of a box have " << rowBytes << " bytes, more than the " << swizzle
                       << " of the swizzle";
  return success();
}

//===----------------------------------------------------------------------===//
// The rules that loads and stores share
//===----------------------------------------------------------------------===//

TensorMapAttr tessera::tilegpu::getTensorMap(Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  auto function =
      argument ? dyn_cast<tile::FuncOp>(argument.getOwner()->getParentOp()) : tile::FuncOp();
  if (!function || !function.isKernel())
    return {};
  return function.getArgAttrOfType<TensorMapAttr>(argument.getArgNumber(), kTensorMapAttr);
}

/// (T2), (T3).
static LogicalResult verifyCopy(Operation *op, Value map, size_t coordinates, MemDescType buffer) {
  TensorMapAttr attr = getTensorMap(map);
  if (!attr)
    return op->emitOpError("has a map that is no argument of the kernel with the attribute ")
           << kTensorMapAttr;
  if (coordinates != attr.getRank())
    return op->emitOpError("has ")
           << coordinates << " coordinates for a map of rank " << attr.getRank();
  if (buffer.getElementType() != attr.getElement())
    return op->emitOpError("copies elements of ")
           << attr.getElement() << " to or from a buffer of " << buffer;
  std::optional<TensorMapBox> box = TensorMapBox::match(
      buffer.getLayout().getLayout(), 8 * getElementBytes(buffer.getElementType()));
  // Outer dimensions of the map may be none of the tile's.
  if (!box || box->extents.size() > attr.getRank())
    return op->emitOpError("cannot copy in boxes to or from ") << buffer;
  SmallVector<int64_t> extents(attr.getRank() - box->extents.size(), 1);
  llvm::append_range(extents, box->extents);
  if (ArrayRef(extents) != attr.getBox() || box->swizzleBytes != attr.getSwizzle()) {
    InFlightDiagnostic error = op->emitOpError("has a buffer in boxes of ");
    llvm::interleave(extents, error, "x");
    error << ", swizzled over " << box->swizzleBytes << " bytes, but a map of boxes of ";
    llvm::interleave(attr.getBox(), error, "x");
    return error << ", swizzled over " << attr.getSwizzle();
  }
  return success();
}

LogicalResult TMALoadOp::verify() {
  if (!isInPartition(*this))
    return emitOpError("is not in the partition of a tilegpu.warp_specialize");
  return verifyCopy(*this, getMap(), getCoordinates().size(), getBuffer().getType());
}

LogicalResult TMAStoreOp::verify() {
  if (isInPartition(*this))
    return emitOpError("is in the partition of a tilegpu.warp_specialize");
  return verifyCopy(*this, getMap(), getCoordinates().size(), getBuffer().getType());
}
