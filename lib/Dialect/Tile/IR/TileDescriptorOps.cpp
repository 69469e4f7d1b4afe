// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera::tile;

static LogicalResult verifyBase(Operation *op, PointerType base, RankedTensorType block) {
  if (base.getPointee() != block.getElementType())
    return op->emitOpError("has a base of type ") << base << " for a block of " << block;
  return success();
}

static LogicalResult verifyCount(Operation *op, StringRef what, size_t count,
                                 RankedTensorType block) {
  if (static_cast<int64_t>(count) != block.getRank())
    return op->emitOpError("has ")
           << count << " " << what << " for a block of rank " << block.getRank();
  return success();
}

static LogicalResult verifyPadding(Operation *op, Padding padding, RankedTensorType block) {
  if (padding == Padding::NaN && !isa<FloatType>(block.getElementType()))
    return op->emitOpError("pads with NaN, but elements are ") << block.getElementType();
  return success();
}

static LogicalResult verifyBoundaryCheck(Operation *op, ArrayRef<int32_t> dims,
                                         RankedTensorType block) {
  llvm::SmallBitVector seen(block.getRank());
  for (int32_t dim : dims) {
    if (dim < 0 || dim >= block.getRank())
      return op->emitOpError("checks the boundary of dimension ")
             << dim << " of a block of rank " << block.getRank();
    if (seen.test(dim))
      return op->emitOpError("checks the boundary of dimension ") << dim << " twice";
    seen.set(dim);
  }
  return success();
}

/// The value is the block, or the block without leading dimensions of extent 1.
static LogicalResult verifyBlockValue(Operation *op, Type value, RankedTensorType block) {
  ArrayRef<int64_t> shape = block.getShape(), given = getShape(value);
  while (shape.size() > given.size() && shape.front() == 1)
    shape = shape.drop_front();
  if (shape != given || getElementTypeOrSelf(value) != block.getElementType())
    return op->emitOpError("moves a ") << value << " through a block of " << block;
  return success();
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

LogicalResult MakeBlockPtrOp::verify() {
  RankedTensorType block = getType().getBlockType();
  if (failed(verifyCount(*this, "extents", getShape().size(), block)) ||
      failed(verifyCount(*this, "strides", getStrides().size(), block)) ||
      failed(verifyCount(*this, "offsets", getOffsets().size(), block)) ||
      failed(verifyCount(*this, "entries in order", getOrder().size(), block)))
    return failure();
  llvm::SmallBitVector seen(block.getRank());
  for (int32_t dim : getOrder())
    if (dim >= 0 && dim < block.getRank())
      seen.set(dim);
  if (!seen.all())
    return emitOpError("order is no permutation of the ") << block.getRank() << " dimensions";
  return verifyBase(*this, getBase().getType(), block);
}

LogicalResult AdvanceOp::verify() {
  return verifyCount(*this, "offsets", getOffsets().size(), getType().getBlockType());
}

LogicalResult BlockLoadOp::verify() {
  RankedTensorType block = getSource().getType().getBlockType();
  if (getType() != block)
    return emitOpError("gives ") << getType() << " from blocks of " << block;
  if (failed(verifyBoundaryCheck(*this, getBoundaryCheck(), block)))
    return failure();
  return verifyPadding(*this, getPadding(), block);
}

LogicalResult BlockStoreOp::verify() {
  RankedTensorType block = getTarget().getType().getBlockType();
  if (getValue().getType() != block)
    return emitOpError("writes ") << getValue().getType() << " to blocks of " << block;
  return verifyBoundaryCheck(*this, getBoundaryCheck(), block);
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

LogicalResult MakeDescriptorOp::verify() {
  RankedTensorType block = getType().getBlockType();
  if (failed(verifyCount(*this, "extents", getShape().size(), block)) ||
      failed(verifyCount(*this, "strides", getStrides().size(), block)) ||
      failed(verifyBase(*this, getBase().getType(), block)))
    return failure();
  return verifyPadding(*this, getPadding(), block);
}

/// (E1)
static LogicalResult verifyDim(Operation *op, int32_t dim, RankedTensorType block) {
  if (dim < 0 || dim >= block.getRank())
    return op->emitOpError("reads dimension ")
           << dim << " of a descriptor of rank " << block.getRank();
  return success();
}

LogicalResult DescriptorExtentOp::verify() {
  return verifyDim(*this, static_cast<int32_t>(getDim()), getSource().getType().getBlockType());
}

OpFoldResult DescriptorExtentOp::fold(FoldAdaptor) {
  auto made = getSource().getDefiningOp<MakeDescriptorOp>();
  return made ? made.getShape()[getDim()] : OpFoldResult();
}

LogicalResult DescriptorStrideOp::verify() {
  return verifyDim(*this, static_cast<int32_t>(getDim()), getSource().getType().getBlockType());
}

OpFoldResult DescriptorStrideOp::fold(FoldAdaptor) {
  auto made = getSource().getDefiningOp<MakeDescriptorOp>();
  return made ? made.getStrides()[getDim()] : OpFoldResult();
}

LogicalResult DescriptorLoadOp::verify() {
  RankedTensorType block = getSource().getType().getBlockType();
  if (failed(verifyCount(*this, "coordinates", getOffsets().size(), block)))
    return failure();
  return verifyBlockValue(*this, getType(), block);
}

LogicalResult DescriptorStoreOp::verify() {
  RankedTensorType block = getTarget().getType().getBlockType();
  if (failed(verifyCount(*this, "coordinates", getOffsets().size(), block)))
    return failure();
  return verifyBlockValue(*this, getValue().getType(), block);
}

/// (G1) and (G2): rows of a block of one row.
static LogicalResult verifyRows(Operation *op, Type rows, Type value, RankedTensorType block) {
  if (block.getRank() != 2 || block.getDimSize(0) != 1)
    return op->emitOpError("needs a block of rank 2 with one row, has ") << block;
  ArrayRef<int64_t> indices = getShape(rows), given = getShape(value);
  if (indices.size() != 1 || given.size() != 2 || given[0] != indices[0] ||
      given[1] != block.getDimSize(1) || getElementTypeOrSelf(value) != block.getElementType())
    return op->emitOpError("moves a ")
           << value << " with rows " << rows << " through blocks of " << block;
  return success();
}

LogicalResult DescriptorGatherOp::verify() {
  return verifyRows(*this, getRows().getType(), getType(), getSource().getType().getBlockType());
}

LogicalResult DescriptorScatterOp::verify() {
  return verifyRows(*this, getRows().getType(), getValue().getType(),
                    getTarget().getType().getBlockType());
}

LogicalResult DescriptorReduceOp::verify() {
  RankedTensorType block = getTarget().getType().getBlockType();
  if (failed(verifyCount(*this, "coordinates", getOffsets().size(), block)) ||
      failed(verifyBlockValue(*this, getValue().getType(), block)))
    return failure();
  AtomicKind kind = getKind();
  bool wantsFloat =
      kind == AtomicKind::FAdd || kind == AtomicKind::FMax || kind == AtomicKind::FMin;
  if (isa<FloatType>(block.getElementType()) != wantsFloat || kind == AtomicKind::Exchange)
    return emitOpError() << stringifyAtomicKind(kind) << " does not take "
                         << block.getElementType();
  return success();
}
