// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DotOperands.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;

namespace tessera {

strips::WriteOp findWriteOfB(strips::DotOp dot) {
  if (!dot.getB().getDefiningOp<strips::ScratchOp>())
    return {};
  DenseMap<Operation *, strips::WriteOp> writers;
  unsigned dots = 0;
  for (OpOperand &use : dot.getB().getUses()) {
    if (auto write = dyn_cast<strips::WriteOp>(use.getOwner()))
      writers[write->getParentOp()] = write;
    else if (auto other = dyn_cast<strips::DotOp>(use.getOwner());
             other && other.getA() != dot.getB() && other.getAcc() != dot.getB())
      ++dots;
    else
      return {};
  }
  if (dots != writers.size())
    return {};
  for (Operation *op = dot->getPrevNode(); op; op = op->getPrevNode()) {
    if (strips::WriteOp write = writers.lookup(op))
      return write;
    bool reads =
        op->walk([&](strips::DotOp other) {
            return other.getB() == dot.getB() ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted();
    if (reads)
      return {};
  }
  return {};
}

bool isUnwrittenBetween(Operation *first, Operation *last, bool readsBuffer) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode()) {
    WalkResult result = op->walk([&](Operation *inner) {
      // Buffers are not the user's memory.
      bool isHarmless = isa<strips::ReadOp, tile::LoadOp>(inner) ||
                        (!readsBuffer && isa<strips::WriteOp, strips::DotOp>(inner)) ||
                        inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                        isMemoryEffectFree(inner);
      return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

bool writesOnlyFor(strips::GroupOp group, size_t dots) {
  size_t writes = 0;
  bool onlyWrites = group->getNumResults() == 0;
  for (Operation &op : group.getBody().front().without_terminator()) {
    writes += isa<strips::WriteOp>(op);
    onlyWrites &= isa<strips::WriteOp, strips::ReadOp, tile::LoadOp>(op) ||
                  (isPure(&op) && isa<RankedTensorType>(op.getResult(0).getType()));
  }
  return onlyWrites && writes == dots;
}

} // namespace tessera
