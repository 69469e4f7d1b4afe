// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that loads in a conditional has the loads of one iteration in flight at most: the second
// stage of split decoding skips parts without keys, for instance. With masked loads and selects in
// place of the conditional, tilegpu-overlap-loads unrolls the loop, and issues the loads of several
// iterations before the first result is needed.

#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEPREDICATELOADSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

struct PredicateLoadsPass
    : public tessera::tile::impl::TilePredicateLoadsPassBase<PredicateLoadsPass> {
  void runOnOperation() final;
};

/// True if an op may run whether or not a condition holds, once its load is masked.
bool canPredicate(Operation &op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return !load.getIsVolatile() && !mayWriteMemory(load);
  return isPure(&op) && op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>() &&
         !op.hasTrait<Collective>();
}

bool canPredicate(scf::IfOp branch) {
  // Skipped iterations execute these ops, too. More of them may cost more than the latency of a
  // load.
  constexpr size_t kMaxOps = 48;
  bool hasLoad = false;
  size_t count = 0;
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
    for (Block &block : *region)
      for (Operation &op : block.without_terminator()) {
        if (!canPredicate(op) || ++count > kMaxOps)
          return false;
        hasLoad |= isa<LoadOp>(op);
      }
  return hasLoad;
}

/// The conditionals of a loop, if all else in it runs in any iteration and writes nothing.
SmallVector<scf::IfOp> findBranches(scf::ForOp loop) {
  SmallVector<scf::IfOp> branches;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (!canPredicate(branch))
        return {};
      branches.push_back(branch);
    } else if (!canPredicate(op)) {
      return {};
    }
  }
  return branches;
}

/// Adds a condition to the mask of a load.
void addToMask(LoadOp load, Value condition) {
  OpBuilder builder(load);
  Value mask = condition;
  if (auto tile = dyn_cast<RankedTensorType>(load.getType()))
    mask = SplatOp::create(builder, load.getLoc(), tile.clone(builder.getI1Type()), condition);
  if (load.getMask())
    mask = arith::AndIOp::create(builder, load.getLoc(), load.getMask(), mask);
  load.getMaskMutable().assign(mask);
}

void predicate(scf::IfOp branch) {
  OpBuilder builder(branch);
  Location loc = branch.getLoc();
  Value condition = branch.getCondition();
  auto moveOut = [&](Block *block, Value holds) {
    for (Operation &op : llvm::make_early_inc_range(block->without_terminator())) {
      op.moveBefore(branch);
      if (auto load = dyn_cast<LoadOp>(op))
        addToMask(load, holds);
    }
  };
  moveOut(branch.thenBlock(), condition);
  if (Block *otherwise = branch.elseBlock();
      otherwise && !otherwise->without_terminator().empty()) {
    Value one = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    moveOut(otherwise, arith::XOrIOp::create(builder, loc, condition, one));
  }
  for (OpResult result : branch.getResults()) {
    unsigned number = result.getResultNumber();
    result.replaceAllUsesWith(arith::SelectOp::create(builder, loc, condition,
                                                      branch.thenYield().getOperand(number),
                                                      branch.elseYield().getOperand(number))
                                  .getResult());
  }
  branch.erase();
}

} // namespace

void PredicateLoadsPass::runOnOperation() {
  SmallVector<scf::IfOp> branches;
  getOperation()->walk([&](scf::ForOp loop) { branches.append(findBranches(loop)); });
  llvm::for_each(branches, predicate);
}
