// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// (A1), (A3): the tile fits the buffer, and threads look at the memory of their own block.
static LogicalResult verifyAccess(Operation *op, Type value, MemDescType buffer) {
  auto tensor = cast<RankedTensorType>(value);
  if (tensor.getShape() != buffer.getShape() || tensor.getElementType() != buffer.getElementType())
    return op->emitOpError("moves a ") << tensor << " to or from a buffer of " << buffer;
  ArrayRef<uint64_t> blocks = buffer.getLayout().getLayout().columns(HwDim::Block);
  if (LayoutAttr layout = getLayoutAttr(tensor);
      !blocks.empty() && (!layout || layout.getLayout().columns(HwDim::Block) != blocks))
    return op->emitOpError("moves elements to or from the memory of another block");
  return success();
}

LogicalResult LocalAllocOp::verify() {
  if (!getSource())
    return success();
  if (getType().isRing())
    return emitOpError("fills a whole ring; tilegpu.memdesc_index selects one slot");
  return verifyAccess(*this, getSource().getType(), getType());
}

void LocalAllocOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(), getOperation()->getOpResult(0),
                       SharedMemory::get());
  if (getSource())
    effects.emplace_back(MemoryEffects::Write::get(), getOperation()->getOpResult(0),
                         SharedMemory::get());
}

LogicalResult LocalLoadOp::verify() {
  MemDescType buffer = getBuffer().getType();
  auto tile = cast<RankedTensorType>(getType());
  if (!getFirst())
    return verifyAccess(*this, tile, buffer);
  // (A2): part of it.
  int32_t axis = getAxis().value_or(-1);
  if (axis < 0 || axis >= tile.getRank())
    return emitOpError("has no dimension ") << axis;
  SmallVector<int64_t> whole(tile.getShape());
  if (tile.getRank() == int64_t(buffer.getShape().size()))
    whole[axis] = buffer.getShape()[axis];
  int64_t extent = tile.getShape()[axis];
  if (!llvm::isPowerOf2_64(extent) || !llvm::isPowerOf2_64(whole[axis]) || extent > whole[axis])
    return emitOpError("reads ") << extent << " of " << whole[axis] << " along dimension " << axis
                                 << "; wanted are powers of two";
  return verifyAccess(*this, RankedTensorType::get(whole, tile.getElementType()), buffer);
}

LogicalResult LocalStoreOp::verify() {
  return verifyAccess(*this, getValue().getType(), getBuffer().getType());
}

/// (L1), (L2).
static LogicalResult verifyScalar(Operation *op, Type scalar, MemDescType buffer, uint32_t index) {
  if (buffer.getShape().size() != 1 || !buffer.getElementType().isInteger(64))
    return op->emitOpError("needs a buffer of one dimension of i64, not ") << buffer;
  if (index >= buffer.getShape().front())
    return op->emitOpError("names element ") << index << " of " << buffer.getShape().front();
  if (auto integer = dyn_cast<IntegerType>(scalar); integer && integer.getWidth() > 64)
    return op->emitOpError("moves an integer of ") << integer.getWidth() << " bits by one of 64";
  return success();
}

LogicalResult LocalStoreScalarOp::verify() {
  if (isInPartition(*this))
    return emitOpError("is in code that one thread runs");
  return verifyScalar(*this, getValue().getType(), getBuffer().getType(), getIndex());
}

LogicalResult LocalLoadScalarOp::verify() {
  if (getMap().has_value() != isa<TensorMapType>(getType()))
    return emitOpError("has `map` for another type than a tensor map, or a tensor map without it");
  return verifyScalar(*this, getType(), getBuffer().getType(), getIndex());
}

LogicalResult BarrierOp::verify() { return getOfGroup() ? verifyWarpgroups(*this) : success(); }

LogicalResult MemDescIndexOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &results) {
  auto ring = dyn_cast<MemDescType>(adaptor.getRing().getType());
  if (!ring)
    return emitOptionalError(loc, "'tilegpu.memdesc_index' op needs a ring of buffers, not ",
                             adaptor.getRing().getType());
  results.push_back(ring.getSlot());
  return success();
}
