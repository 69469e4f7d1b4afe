// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Access/ThreadAccess.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

Value tessera::tilegpu::getAccessedPointers(Operation *op) {
  auto access = dyn_cast<tile::AccessOpInterface>(op);
  Value pointers = access ? access.getPtr() : Value();
  return pointers && isa<RankedTensorType>(pointers.getType()) ? pointers : Value();
}

/// True if one instruction does an atomic on each of several neighbours. What other devices see is
/// done element by element: nobody says of vectors what a bus makes of them.
static bool isVectorAtomic(tile::AtomicRMWOp op) {
  Type element = getElementTypeOrSelf(op.getType());
  return op.getKind() == tile::AtomicKind::FAdd && getMachine(op).hasVectorAtomics &&
         op.getScope() != tile::MemScope::System &&
         (element.isF32() || element.isF16() || element.isBF16());
}

int64_t tessera::tilegpu::getAccessWidth(Operation *op, unsigned dim, AccessAnalysis &analysis) {
  auto atomic = dyn_cast<tile::AtomicRMWOp>(op);
  if (isa<tile::AtomicCASOp, tile::AtomicLoadOp, tile::AtomicStoreOp>(op) ||
      (atomic && !isVectorAtomic(atomic)))
    return 1;
  // A copy moves some first elements of a vector; an atomic moves all, and a volatile access is
  // done once an element; of others the few that are masked in part are moved element by element.
  auto load = dyn_cast<tile::LoadOp>(op);
  MaskWithin within = MaskWithin::Whole;
  if (isa<AsyncCopyOp>(op))
    within = MaskWithin::Prefix;
  else if (isa<tile::StoreOp>(op) || (load && !load.getIsVolatile()))
    within = MaskWithin::Any;
  return analysis.getVectorWidth(getAccessedPointers(op),
                                 cast<tile::AccessOpInterface>(op).getMask(), dim, kMaxAccessBytes,
                                 within);
}
