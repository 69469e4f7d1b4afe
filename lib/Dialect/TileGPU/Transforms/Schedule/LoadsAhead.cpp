// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoadsAhead.h"

#include "Facts/LoopSlice.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

bool tessera::tilegpu::computesWithDots(scf::ForOp loop) {
  bool isFound = false;
  WalkResult result = loop.getBody()->walk([&](AsyncDotOp dot) {
    isFound = true;
    // The result of a dot with its operands swapped is moved about, and nothing else.
    bool isComputedWith = llvm::any_of(
        dot->getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::Elementwise>(); });
    return dot->getBlock() == loop.getBody() && !dot.isInFlight() && isComputedWith &&
                   !reachesDot(dot.getResult(), loop.getBody())
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return isFound && !result.wasInterrupted();
}

bool tessera::tilegpu::canLoadAhead(tile::LoadOp load) {
  return !load.getIsVolatile() && load.getCache() != tile::CacheModifier::CV &&
         !mayWriteMemory(load);
}

namespace {

/// The ops that compute the address of a load, users after their operands.
struct Address {
  /// The ops of the body that compute the operands.
  SmallVector<Operation *> ops;
  /// Those that compute what the loop carries for them into its next iteration.
  SmallVector<Operation *> next;
  bool isCarried = false;
};

} // namespace

/// Nothing if it cannot be computed in another iteration.
static std::optional<Address> findAddress(scf::ForOp loop, tile::LoadOp load) {
  using Ops = llvm::SmallDenseSet<Operation *, 16>;
  llvm::SmallDenseSet<Value, 4> carried;
  SmallVector<Value> yielded;
  auto collect = [&](SmallVector<Value> work, Ops &found) {
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar() ||
            !carried.insert(argument).second)
          continue;
        if (!argument.getType().isIntOrIndex())
          return false;
        yielded.push_back(loop.getYieldedValues()[argument.getArgNumber() - 1]);
        continue;
      }
      Operation *op = value.getDefiningOp();
      if (op->getBlock() != loop.getBody() || !found.insert(op).second)
        continue;
      if (!isPure(op) || op->getNumRegions() != 0 || isa<AsyncDotOp>(op))
        return false;
      llvm::append_range(work, op->getOperands());
    }
    return true;
  };
  Ops ops, next;
  if (!collect(SmallVector<Value>(load->getOperands()), ops))
    return std::nullopt;
  while (!yielded.empty())
    if (!collect({yielded.pop_back_val()}, next))
      return std::nullopt;
  Address address;
  address.isCarried = !carried.empty();
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (ops.contains(&op))
      address.ops.push_back(&op);
    if (next.contains(&op))
      address.next.push_back(&op);
  }
  return address;
}

bool tessera::tilegpu::isLoadableAhead(scf::ForOp loop, tile::LoadOp load) {
  return canLoadAhead(load) && findAddress(loop, load);
}

SmallVector<tile::LoadOp>
tessera::tilegpu::findLoadsAhead(scf::ForOp loop, const ReplacedOps &replaced, bool ofAll) {
  if (!getSmallStep(loop))
    return {};
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>()) {
    // Whole tiles would take too many registers.
    auto tile = dyn_cast<RankedTensorType>(load.getType());
    if (replaced.contains(load) || !live.contains(load) || (tile && tile.getRank() > 1) ||
        (!ofAll && reachesDot(load.getResult(), loop.getBody())) || !isLoadableAhead(loop, load))
      continue;
    loads.push_back(load);
  }
  return loads;
}

/// The loads of whole tiles that the operands of a dot are computed from; none if another dot's
/// result is among them, since its wait hides that of the loads.
static SmallVector<tile::LoadOp> findLoadsOfOperands(DotOpInterface dot) {
  SmallVector<Value> work = {dot->getOperand(0), dot->getOperand(1)};
  llvm::SmallDenseSet<Operation *, 16> seen;
  SmallVector<tile::LoadOp> loads;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != dot->getBlock() || !seen.insert(op).second)
      continue;
    if (isa<DotOpInterface>(op))
      return {};
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (auto tile = dyn_cast<RankedTensorType>(load.getType()); tile && tile.getRank() > 1)
        loads.push_back(load);
      continue;
    }
    llvm::append_range(work, op->getOperands());
  }
  return loads;
}

SmallVector<tile::LoadOp> tessera::tilegpu::findTilesAhead(scf::ForOp loop,
                                                           const ReplacedOps &replaced) {
  if (!getSmallStep(loop))
    return {};
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  SmallVector<tile::LoadOp> tiles;
  for (DotOpInterface dot : loop.getBody()->getOps<DotOpInterface>())
    for (tile::LoadOp load : findLoadsOfOperands(dot))
      if (!replaced.contains(load) && live.contains(load) && isLoadableAhead(loop, load) &&
          !llvm::is_contained(tiles, load))
        tiles.push_back(load);
  return tiles;
}

void tessera::tilegpu::loadAhead(tile::LoadOp load, int distance) {
  auto loop = cast<scf::ForOp>(load->getParentOp());
  MLIRContext *context = load.getContext();
  std::optional<Address> address = findAddress(loop, load);
  auto ahead = NodeAttr::get(context, NodeRole::Vector,
                             /*stage=*/address->isCarried ? -1 : -distance, /*order=*/0);
  // The initial values of the next iteration are known before its load.
  for (Operation *op : address->next)
    if (load->isBeforeInBlock(op))
      op->moveBefore(load);
  OpBuilder builder(load);
  IRMapping mapping;
  for (Operation *op : address->ops)
    builder.clone(*op, mapping)->setAttr(kNodeAttr, ahead);
  for (OpOperand &operand : load->getOpOperands())
    operand.set(mapping.lookupOrDefault(operand.get()));
  load->setAttr(kNodeAttr, ahead);
}
