// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of the strips ops.

#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::strips;

LogicalResult GroupOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError("does not end in a strips.yield (G1)");
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("yields other types than its results' (G1)");
  // Not an index map: the rule names ops whose results may be scalars.
  for (Value operand : yield.getOperands())
    if (!isa<RankedTensorType>(operand.getType()) &&
        !isa_and_nonnull<tile::ReduceOp, tile::SplitOp>(operand.getDefiningOp()))
      return emitOpError("yields a scalar that is not a result of a reduction or a split (G3)");
  for (Operation &op : getBody().front()) {
    if (!isa<tile::ReduceOp, tile::StoreOp>(op))
      continue;
    ArrayRef<int64_t> shape = tile::getShape(op.getOperand(0).getType());
    if (shape != getShape())
      return op.emitOpError("of a tile of shape [")
             << shape << "] stands in a group of shape [" << getShape() << "] (G2)";
  }
  return success();
}

/// Rules R1 and R2 of reads and writes.
static LogicalResult verifyBuffer(Operation *op, RankedTensorType tile, MemRefType buffer) {
  if (buffer.getShape() != tile.getShape())
    return op->emitOpError("has a buffer ")
           << buffer << " of another shape than " << tile << " (R1)";
  if (buffer.getElementType() != getStoredType(tile.getElementType()))
    return op->emitOpError("keeps ")
           << tile << " in a buffer of " << buffer.getElementType() << ", not of "
           << getStoredType(tile.getElementType()) << " (R2)";
  return success();
}

LogicalResult ReadOp::verify() {
  return verifyBuffer(*this, getResult().getType(), cast<MemRefType>(getSource().getType()));
}

LogicalResult WriteOp::verify() {
  return verifyBuffer(*this, getValue().getType(), cast<MemRefType>(getTarget().getType()));
}

LogicalResult DotOp::verify() {
  auto a = cast<MemRefType>(getA().getType()), b = cast<MemRefType>(getB().getType()),
       acc = cast<MemRefType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2)
    return emitOpError("has operands of ranks other than 2 (D1)");
  for (MemRefType type : {a, b, acc})
    if (llvm::is_contained(type.getShape(), 0))
      return emitOpError("has an operand ") << type << ", with an extent of 0 (D3)";
  if (a.getDimSize(0) != acc.getDimSize(0) || b.getDimSize(1) != acc.getDimSize(1) ||
      a.getDimSize(1) != b.getDimSize(0))
    return emitOpError("has extents that do not agree: ")
           << a << ", " << b << ", " << acc << " (D2)";
  return success();
}
