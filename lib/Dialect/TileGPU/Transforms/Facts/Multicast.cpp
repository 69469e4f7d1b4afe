// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Multicast.h"

#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

bool tessera::tilegpu::dependsOnBlock(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Value, 16> seen;
  auto addRegions = [&](Operation *op) {
    llvm::append_range(work, op->getOperands());
    op->walk([&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
  };
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (isa_and_nonnull<ClusterRankOp>(op))
      return true;
    if (op && op->getNumRegions() == 0) {
      llvm::append_range(work, op->getOperands());
      continue;
    }
    // For a loop, the operands of its variable; for any other op with regions, all ops in it.
    Operation *parent = op ? op : cast<BlockArgument>(next).getOwner()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop) {
      if (!isa<tile::FuncOp>(parent))
        addRegions(parent);
      continue;
    }
    if (next == loop.getInductionVar()) {
      work.append({loop.getLowerBound(), loop.getStep()});
      continue;
    }
    // The number of iterations only affects the loop's results.
    if (op)
      work.append({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    unsigned number =
        op ? cast<OpResult>(next).getResultNumber() : cast<BlockArgument>(next).getArgNumber() - 1;
    work.append({loop.getInitArgs()[number], loop.getYieldedValues()[number]});
  }
  return false;
}

bool tessera::tilegpu::isUneven(scf::ForOp loop) {
  for (Operation *op = loop; !isa<tile::FuncOp>(op); op = op->getParentOp()) {
    SmallVector<Value, 3> values;
    if (auto around = dyn_cast<scf::ForOp>(op))
      values = {around.getLowerBound(), around.getUpperBound(), around.getStep()};
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      values = {branch.getCondition()};
    else
      return true;
    if (llvm::any_of(values, dependsOnBlock))
      return true;
  }
  return false;
}

std::optional<int64_t> tessera::tilegpu::getRowsOfShares(MemDescType tile, unsigned blocks) {
  int64_t bits = 8 * getElementBytes(tile.getElementType());
  for (int64_t rows = kMaxBoxElements; rows > 0; rows /= 2) {
    std::optional<TensorMapBox> box = TensorMapBox::match(tile.getLayout().getLayout(), bits, rows);
    if (box && box->parts.size() % blocks == 0)
      return rows;
  }
  return std::nullopt;
}
