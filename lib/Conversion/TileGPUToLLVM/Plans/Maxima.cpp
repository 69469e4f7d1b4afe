// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Maxima.h"

#include "Fragments/Choice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;

static bool isLargerOf(Operation *op) {
  return isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(op);
}

/// The tile before its conversions to other layouts.
static Value skipConversions(Value tile) {
  while (auto convert = tile.getDefiningOp<tilegpu::ConvertLayoutOp>())
    tile = convert.getOperand();
  return tile;
}

/// True if a result of a reduction is the maximum of its operand's elements.
static bool isMaximumOf(tile::ReduceOp reduce, unsigned number) {
  Block &body = *reduce.getBody();
  unsigned count = reduce->getNumOperands();
  Operation *op = body.getTerminator()->getOperand(number).getDefiningOp();
  if (!isLargerOf(op) || op->getBlock() != &body)
    return keepsLarger(reduce.getCombine(), number);
  Value first = body.getArgument(number), second = body.getArgument(count + number);
  return (op->getOperand(0) == first && op->getOperand(1) == second) ||
         (op->getOperand(0) == second && op->getOperand(1) == first);
}

/// True if `large` is a maximum of `small` and others, element by element. Below a broadcast,
/// `axis` is the dimension that `large` lacks.
static bool isAtLeast(Value large, Value small, std::optional<unsigned> axis, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 12;
  large = skipConversions(large);
  if (!axis && large == skipConversions(small))
    return true;
  Operation *op = large.getDefiningOp();
  if (!op || depth == kMaxDepth)
    return false;
  if (isLargerOf(op))
    return isAtLeast(op->getOperand(0), small, axis, depth + 1) ||
           isAtLeast(op->getOperand(1), small, axis, depth + 1);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    unsigned number = cast<OpResult>(large).getResultNumber();
    return axis == reduce.getAxis() && isMaximumOf(reduce, number) &&
           skipConversions(reduce->getOperand(number)) == skipConversions(small);
  }
  // A scalar is the maximum along the only dimension, or not the maximum of a tile's elements.
  if (auto splat = dyn_cast<tile::SplatOp>(op))
    return !axis && cast<RankedTensorType>(splat.getType()).getRank() == 1 &&
           isAtLeast(splat.getSource(), small, 0, depth + 1);
  // Not an index map: the dimension that a reduction took away comes back.
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  if (!broadcast || axis)
    return false;
  // Not an index map: as above.
  auto expand = skipConversions(broadcast->getOperand(0)).getDefiningOp<tile::ExpandDimsOp>();
  return expand && isAtLeast(expand->getOperand(0), small, static_cast<unsigned>(expand.getAxis()),
                             depth + 1);
}

/// True if a tile is a product, or chosen from some.
static bool hasProduct(Value tile, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 12;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::MulFOp>(op) || depth == kMaxDepth)
    return true;
  if (tile::movesOneTile(op))
    return hasProduct(op->getOperand(0), depth + 1);
  auto select = dyn_cast<arith::SelectOp>(op);
  return select && (hasProduct(select.getTrueValue(), depth + 1) ||
                    hasProduct(select.getFalseValue(), depth + 1));
}

std::optional<unsigned> tessera::getAxisBelowMaximum(Value difference) {
  auto sub = difference.getDefiningOp<arith::SubFOp>();
  if (!sub || hasProduct(sub.getLhs()))
    return std::nullopt;
  Value large = skipConversions(sub.getRhs());
  std::optional<unsigned> axis;
  if (auto splat = large.getDefiningOp<tile::SplatOp>()) {
    if (cast<RankedTensorType>(splat.getType()).getRank() != 1)
      return std::nullopt;
    axis = 0;
    large = splat.getSource();
    // Not an index map: the dimension that a reduction took away comes back.
  } else if (auto broadcast = large.getDefiningOp<tile::BroadcastOp>()) {
    // Not an index map: as above.
    auto expand = skipConversions(broadcast->getOperand(0)).getDefiningOp<tile::ExpandDimsOp>();
    if (!expand)
      return std::nullopt;
    axis = static_cast<unsigned>(expand.getAxis());
    large = skipConversions(expand->getOperand(0));
  }
  auto reduce = large.getDefiningOp<tile::ReduceOp>();
  if (!reduce || axis != reduce.getAxis())
    return std::nullopt;
  unsigned number = cast<OpResult>(large).getResultNumber();
  bool isOfTile = isMaximumOf(reduce, number) &&
                  skipConversions(reduce->getOperand(number)) == skipConversions(sub.getLhs());
  return isOfTile ? axis : std::nullopt;
}

bool tessera::isBelowMaximum(Value difference) {
  auto sub = difference.getDefiningOp<arith::SubFOp>();
  return sub && isAtLeast(sub.getRhs(), sub.getLhs(), std::nullopt);
}
