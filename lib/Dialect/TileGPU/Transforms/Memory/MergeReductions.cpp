// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reduction ends with two barriers of all warps. Two reductions that do not depend on each other
// can share them: one reduction has all their operands, and its region has both computations.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUMERGEREDUCTIONSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// More would hold too many tiles at once.
static constexpr unsigned kMaxOperands = 4;

static bool match(tile::ReduceOp first, tile::ReduceOp second) {
  auto shape = [](tile::ReduceOp op) { return tile::getShape(op.getOperandTypes().front()); };
  return first.getAxis() == second.getAxis() && shape(first) == shape(second) &&
         first.getNumOperands() + second.getNumOperands() <= kMaxOperands;
}

/// The ops between the two that need the first one's results, if they may all move behind the
/// second. None if the second needs them itself, or if one of them may not move.
static std::optional<llvm::SetVector<Operation *>> findDependents(tile::ReduceOp first,
                                                                  tile::ReduceOp second) {
  llvm::SetVector<Operation *> dependents;
  auto depends = [&](Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands())
            if (Operation *from = operand.getDefiningOp())
              if (from == first || dependents.contains(from))
                return WalkResult::interrupt();
          return WalkResult::advance();
        })
        .wasInterrupted();
  };
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode()) {
    if (!depends(op))
      continue;
    if (!isPure(op))
      return std::nullopt;
    dependents.insert(op);
  }
  if (depends(second))
    return std::nullopt;
  return dependents;
}

/// Replaces both by one reduction at the second's position, and moves the users of the first behind
/// it.
static tile::ReduceOp merge(tile::ReduceOp first, tile::ReduceOp second,
                            const llvm::SetVector<Operation *> &dependents) {
  OpBuilder builder(second);
  SmallVector<Value> operands(first.getOperands());
  llvm::append_range(operands, second.getOperands());
  SmallVector<Type> results(first.getResultTypes());
  llvm::append_range(results, second.getResultTypes());
  Location loc = builder.getFusedLoc({first.getLoc(), second.getLoc()});
  OperationState state(loc, tile::ReduceOp::getOperationName(), operands, results,
                       first->getAttrs());
  Region *region = state.addRegion();
  auto merged = cast<tile::ReduceOp>(builder.create(state));
  region = &merged.getCombine();

  Block *body = builder.createBlock(region);
  SmallVector<SmallVector<Value>> arguments(2);
  for (unsigned side = 0; side < 2; ++side)
    for (tile::ReduceOp op : {first, second}) {
      Block &from = op.getCombine().front();
      unsigned count = op.getNumOperands();
      for (BlockArgument argument : from.getArguments().slice(side * count, count))
        arguments[op == second].push_back(body->addArgument(argument.getType(), argument.getLoc()));
    }
  SmallVector<Value> yielded;
  for (auto [op, ofOp] : llvm::zip_equal(SmallVector<tile::ReduceOp>{first, second}, arguments)) {
    IRMapping mapping;
    Block &from = op.getCombine().front();
    mapping.map(from.getArguments(), ofOp);
    for (Operation &inner : from.without_terminator())
      builder.clone(inner, mapping);
    for (Value value : from.getTerminator()->getOperands())
      yielded.push_back(mapping.lookupOrDefault(value));
  }
  tile::ReduceReturnOp::create(builder, loc, yielded);

  Operation *last = merged;
  for (Operation *op : dependents) {
    op->moveAfter(last);
    last = op;
  }
  unsigned count = first.getNumResults();
  first->replaceAllUsesWith(merged.getResults().take_front(count));
  second->replaceAllUsesWith(merged.getResults().drop_front(count));
  first.erase();
  second.erase();
  return merged;
}

namespace {

struct TileGPUMergeReductionsPass
    : tessera::tilegpu::impl::TileGPUMergeReductionsPassBase<TileGPUMergeReductionsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    // In the interpreter's order whole tiles go through shared memory: no two at a time.
    if (module->hasAttr(kDeterministicAttr))
      return;
    SmallVector<Block *> blocks;
    module.walk([&](tile::ReduceOp op) {
      if (!llvm::is_contained(blocks, op->getBlock()))
        blocks.push_back(op->getBlock());
    });
    for (Block *block : blocks) {
      SmallVector<tile::ReduceOp> reductions(block->getOps<tile::ReduceOp>());
      tile::ReduceOp previous;
      for (tile::ReduceOp op : reductions) {
        if (previous && match(previous, op))
          if (auto dependents = findDependents(previous, op))
            op = merge(previous, op, *dependents);
        previous = op;
      }
    }
  }
};

} // namespace
