// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop carries for itself alone. The canonicalizer keeps a carried value whose next
// value is computed from it, though nothing else uses it. Here a value is live if an op with an
// effect needs it, through any number of loops and conditionals.
//
// Such a value costs time, and for a dot also the result: ptxas (13.5, sm_90a) removes a wgmma
// whose results are dead, but counts its group. On an H200 a wait for an earlier group then
// returned before that group had ended (notes/Notebook.md).

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEREMOVEDEADCARRIESPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;

namespace {

/// The values of a function on which its effects depend.
class LiveValues {
public:
  explicit LiveValues(Operation *root);

  bool contains(Value value) const { return live.contains(value); }

private:
  void add(Value value);
  void addOperands(Operation *op);
  void addSources(Value value);

  llvm::DenseSet<Value> live;
  SmallVector<Value> work;
};

struct RemoveDeadCarriesPass
    : public tessera::tile::impl::TileRemoveDeadCarriesPassBase<RemoveDeadCarriesPass> {
  void runOnOperation() final;
};

} // namespace

LiveValues::LiveValues(Operation *root) {
  root->walk([&](Operation *op) {
    // Bounds and conditions decide about effects within.
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        add(bound);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      add(branch.getCondition());
    } else if (op != root && !wouldOpBeTriviallyDead(op) &&
               !(isa<scf::YieldOp>(op) && isa<scf::ForOp, scf::IfOp>(op->getParentOp()))) {
      // Other loops carry live values alone: their terminators are no trivially dead ops.
      addOperands(op);
    }
  });
  while (!work.empty())
    addSources(work.pop_back_val());
}

void LiveValues::add(Value value) {
  if (live.insert(value).second)
    work.push_back(value);
}

void LiveValues::addOperands(Operation *op) {
  for (Value operand : op->getOperands())
    add(operand);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    add(value);
}

void LiveValues::addSources(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(value))
    op = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op)) {
    OpResult result = dyn_cast<OpResult>(value);
    if (!result)
      result = loop.getTiedLoopResult(cast<BlockArgument>(value));
    if (!result) // the loop's variable
      return;
    add(loop.getTiedLoopInit(result)->get());
    add(loop.getTiedLoopYieldedValue(loop.getTiedLoopRegionIterArg(result))->get());
    add(loop.getTiedLoopRegionIterArg(result));
    return;
  }
  if (isa<BlockArgument>(value))
    return;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    add(branch.thenYield().getOperand(number));
    add(branch.elseYield().getOperand(number));
    return;
  }
  addOperands(op);
}

void RemoveDeadCarriesPass::runOnOperation() {
  LiveValues live(getOperation());
  getOperation()->walk([&](scf::ForOp loop) {
    Operation *yield = loop.getBody()->getTerminator();
    for (auto [argument, next] : llvm::zip_equal(loop.getRegionIterArgs(), yield->getOpOperands()))
      if (!live.contains(argument))
        next.set(argument);
  });
}
