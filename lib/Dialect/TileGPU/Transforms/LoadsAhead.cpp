// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoadsAhead.h"

#include "EarlyLoads.h"
#include "LoopSlice.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

WarpgroupDotOp tessera::tilegpu::findPromotedDot(scf::ForOp loop) {
  SmallVector<WarpgroupDotOp> dots;
  loop.getBody()->walk([&](WarpgroupDotOp dot) { dots.push_back(dot); });
  if (dots.size() != 1 || dots.front()->getBlock() != loop.getBody() || dots.front().getIsAsync())
    return {};
  Operation *terminator = loop.getBody()->getTerminator();
  bool isComputedWith =
      llvm::any_of(dots.front()->getUsers(), [&](Operation *user) { return user != terminator; });
  return isComputedWith ? dots.front() : WarpgroupDotOp();
}

bool tessera::tilegpu::canLoadAhead(tile::LoadOp load) {
  return !load.getIsVolatile() && load.getCache() != tile::CacheModifier::CV &&
         !mayWriteMemory(load);
}

/// The ops of the body that compute the operands of a load, users after what they use. Nothing if
/// they cannot be done in another iteration.
static std::optional<SmallVector<Operation *>> findAddress(scf::ForOp loop, tile::LoadOp load) {
  llvm::SmallDenseSet<Operation *, 16> found;
  SmallVector<Value> work(load->getOperands());
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      // What comes behind the last iteration is nowhere.
      if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
        return std::nullopt;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op->getBlock() != loop.getBody() || !found.insert(op).second)
      continue;
    if (!isPure(op) || op->getNumRegions() != 0 || isa<WarpgroupDotOp>(op))
      return std::nullopt;
    llvm::append_range(work, op->getOperands());
  }
  SmallVector<Operation *> ops;
  for (Operation &op : loop.getBody()->without_terminator())
    if (found.contains(&op))
      ops.push_back(&op);
  return ops;
}

SmallVector<tile::LoadOp>
tessera::tilegpu::findLoadsAhead(scf::ForOp loop, const ReplacedOps &replaced, MemoryOrder &order) {
  if (!findPromotedDot(loop) || !getSmallStep(loop) || findObstacleInLoop(loop, order))
    return {};
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>()) {
    // Whole tiles would take too many registers.
    auto tile = dyn_cast<RankedTensorType>(load.getType());
    if (replaced.contains(load) || !live.contains(load) || !canLoadAhead(load) ||
        (tile && tile.getRank() > 1) || reachesDot(load.getResult(), loop.getBody()) ||
        !findAddress(loop, load))
      continue;
    loads.push_back(load);
  }
  return loads;
}

void tessera::tilegpu::loadAhead(tile::LoadOp load) {
  auto loop = cast<scf::ForOp>(load->getParentOp());
  MLIRContext *context = load.getContext();
  auto ahead = NodeAttr::get(context, NodeRole::Vector, /*stage=*/-1, /*order=*/0);
  std::optional<SmallVector<Operation *>> address = findAddress(loop, load);
  OpBuilder builder(load);
  IRMapping mapping;
  for (Operation *op : *address)
    builder.clone(*op, mapping)->setAttr(kNodeAttr, ahead);
  for (OpOperand &operand : load->getOpOperands())
    operand.set(mapping.lookupOrDefault(operand.get()));
  load->setAttr(kNodeAttr, ahead);
}
