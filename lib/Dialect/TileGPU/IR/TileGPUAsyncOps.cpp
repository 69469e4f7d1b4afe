// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

LogicalResult AsyncCopyOp::verify() {
  auto pointers = cast<RankedTensorType>(getPtr().getType());
  auto pointer = dyn_cast<tile::PointerType>(pointers.getElementType());
  if (!pointer)
    return emitOpError("copies from a ") << pointers << ", which is not a tile of pointers";
  MemDescType buffer = getBuffer().getType();
  if (pointers.getShape() != buffer.getShape() || pointer.getPointee() != buffer.getElementType())
    return emitOpError("copies the elements that ")
           << pointers << " points to into a buffer of " << buffer;
  if (getMask() && tile::getShape(getMask().getType()) != pointers.getShape())
    return emitOpError("has a mask of ") << getMask().getType() << " for pointers of " << pointers;
  return success();
}
