// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assignment puts conversions and cheap tiles where their source is, so that all users
// share them. That is early: each holds registers until it is used. Here they go down to
// the first use.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUREORDERINSTRUCTIONSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

static int64_t getRegisters(Type type) {
  LayoutAttr layout = getLayoutAttr(type);
  return layout ? layout.getNumRegisters() *
                      getElementBytes(cast<RankedTensorType>(type).getElementType())
                : 0;
}

/// Whether moving the op down shortens what is held in registers.
static bool sinks(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      op->getNumRegions() != 0 || !isPure(op))
    return false;
  int64_t held = 0;
  for (Type type : op->getOperandTypes())
    held += getRegisters(type);
  return held < getRegisters(op->getResult(0).getType());
}

/// The block in or around which all uses are, without going into a loop.
static Operation *findPlace(Operation *op) {
  Block *block = op->getBlock();
  while (true) {
    Operation *first = nullptr;
    Block *inner = nullptr;
    bool oneBranch = true;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
      Block *branch = nullptr;
      for (Operation *up = user; up != ancestor; up = up->getParentOp())
        branch = up->getBlock();
      if (inner && branch != inner)
        oneBranch = false;
      inner = branch;
      oneBranch = oneBranch && branch && isa<scf::IfOp>(ancestor);
    }
    if (!first || !oneBranch || !inner)
      return first;
    block = inner;
  }
}

namespace {

struct TileGPUReorderInstructionsPass
    : tessera::tilegpu::impl::TileGPUReorderInstructionsPassBase<TileGPUReorderInstructionsPass> {
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (sinks(op))
        ops.push_back(op);
    });
    // Users first, so that what they use can follow them.
    for (Operation *op : llvm::reverse(ops))
      if (Operation *place = findPlace(op))
        op->moveBefore(place);
  }
};

} // namespace
