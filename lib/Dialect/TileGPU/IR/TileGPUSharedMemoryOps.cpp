// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// (A1): the tile fits the buffer.
static LogicalResult verifyAccess(Operation *op, Type value, MemDescType buffer) {
  auto tensor = cast<RankedTensorType>(value);
  if (tensor.getShape() != buffer.getShape() || tensor.getElementType() != buffer.getElementType())
    return op->emitOpError("moves a ") << tensor << " to or from a buffer of " << buffer;
  return success();
}

LogicalResult LocalAllocOp::verify() {
  if (!getSource())
    return success();
  if (getType().isRing())
    return emitOpError("fills a ring, of which tilegpu.memdesc_index names one slot");
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
  return verifyAccess(*this, getType(), getBuffer().getType());
}

LogicalResult LocalStoreOp::verify() {
  return verifyAccess(*this, getValue().getType(), getBuffer().getType());
}

LogicalResult MemDescIndexOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                               Adaptor adaptor, SmallVectorImpl<Type> &results) {
  results.push_back(cast<MemDescType>(adaptor.getRing().getType()).getSlot());
  return success();
}
