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

/// True if one instruction does an atomic on each of several neighbours. Accesses that other
/// devices observe are done element by element: the behaviour of vectors on a bus is unspecified.
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
  // A copy may move only the first elements of a vector. An atomic moves all, and a volatile access
  // runs once per element. Other accesses that are partly masked, which are few, move element by
  // element.
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
