// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/ThreadAccess.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// The mask of an access, if it has one.
static Value getAccessMask(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<tile::LoadOp, tile::StoreOp, tile::AtomicLoadOp, tile::AtomicStoreOp, tile::AtomicRMWOp,
            AsyncCopyOp>([](auto access) { return access.getMask(); })
      .Default(Value());
}

Value tessera::tilegpu::getAccessedPointers(Operation *op) {
  Value pointers = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case<tile::LoadOp, tile::StoreOp, tile::AtomicLoadOp, tile::AtomicStoreOp,
                             tile::AtomicRMWOp, tile::AtomicCASOp, AsyncCopyOp>(
                           [](auto access) { return access.getPtr(); })
                       .Default(Value());
  return pointers && isa<RankedTensorType>(pointers.getType()) ? pointers : Value();
}

int64_t tessera::tilegpu::getAccessWidth(Operation *op, unsigned dim, AccessAnalysis &analysis) {
  // A copy moves some first elements of a vector, and a volatile access is done once an element; of
  // others the few that are masked in part are moved element by element.
  auto load = dyn_cast<tile::LoadOp>(op);
  MaskWithin within = MaskWithin::Whole;
  if (isa<AsyncCopyOp>(op))
    within = MaskWithin::Prefix;
  else if (isa<tile::StoreOp>(op) || (load && !load.getIsVolatile()))
    within = MaskWithin::Any;
  return analysis.getVectorWidth(getAccessedPointers(op), getAccessMask(op), dim, kMaxAccessBytes,
                                 within);
}
