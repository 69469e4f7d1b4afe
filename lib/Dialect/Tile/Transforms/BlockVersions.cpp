// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BlockVersions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

/// True for an op that may be moved over others that do not write memory.
static bool onlyReads(Operation *op) {
  auto load = dyn_cast<LoadOp>(op);
  return load && !isa<RankedTensorType>(load.getType()) && !load.getIsVolatile();
}

bool tessera::tile::canHoist(Value value, Operation *before, bool overReads) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != before->getBlock() || op->isBeforeInBlock(before))
    return true;
  bool isMovable = isPure(op) || (overReads && onlyReads(op));
  return op != before && isMovable && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return canHoist(operand, before, overReads); });
}

void tessera::tile::hoist(Value value, Operation *before) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != before->getBlock() || op->isBeforeInBlock(before))
    return;
  for (Value operand : op->getOperands())
    hoist(operand, before);
  op->moveBefore(before);
}

Value tessera::tile::getSplatSource(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  return splat ? splat.getSource() : Value();
}

/// True if an op of the versions makes a value.
static bool isWithin(Value value, Operation *first) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == first->getBlock() && !op->isBeforeInBlock(first);
}

bool tessera::tile::canVersionFrom(Operation *first) {
  return llvm::none_of(first->getBlock()->getTerminator()->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) && isWithin(operand, first);
  });
}

void tessera::tile::versionFrom(Operation *first, Value condition, IRMapping &mapping) {
  Block *block = first->getBlock();
  Operation *terminator = block->getTerminator();
  OpBuilder builder(first);
  Location loc = first->getLoc();
  // The values that the rest of the block yields to the enclosing op.
  SmallVector<Value> yielded;
  for (Value operand : terminator->getOperands())
    if (isWithin(operand, first))
      yielded.push_back(operand);
  auto ifOp = scf::IfOp::create(builder, loc, ValueRange(yielded).getTypes(), condition,
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  Block *changed = ifOp.thenBlock(), *original = ifOp.elseBlock();
  for (Block *version : {changed, original})
    if (!version->empty())
      version->back().erase();
  builder.setInsertionPointToEnd(changed);
  for (Operation &op : llvm::make_range(first->getIterator(), terminator->getIterator()))
    if (op.getNumResults() == 0 ||
        !llvm::all_of(op.getResults(), [&](Value result) { return mapping.contains(result); }))
      builder.clone(op, mapping);
  SmallVector<Value> mapped = llvm::to_vector(
      llvm::map_range(yielded, [&](Value value) { return mapping.lookupOrDefault(value); }));
  scf::YieldOp::create(builder, loc, mapped);
  original->getOperations().splice(original->end(), block->getOperations(), first->getIterator(),
                                   terminator->getIterator());
  builder.setInsertionPointToEnd(original);
  scf::YieldOp::create(builder, loc, yielded);
  for (auto [value, result] : llvm::zip_equal(yielded, ifOp.getResults()))
    terminator->replaceUsesOfWith(value, result);
}
