// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules that relate the layouts of an op's operands and results, for so many warps and blocks.
// Ops declare them by LayoutRuleOpInterface, which explains labels.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTRULES_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTRULES_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// True if a value is spread over threads at all.
inline bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }

class LayoutRules {
public:
  /// `warpBits`, `blockBits`: the warps of a block and the blocks of a cluster, as bits.
  LayoutRules(mlir::MLIRContext *context, unsigned warpBits, unsigned blockBits)
      : context(context), warpBits(warpBits), blockBits(blockBits) {}

  /// The tile type whose layout is the label; null if the op has no rule.
  mlir::RankedTensorType getLabelType(mlir::Operation *op) const;

  /// True if the op can be done with this label.
  bool isValid(mlir::Operation *op, LayoutAttr label) const;

  /// The layout of a result.
  LayoutAttr ofResult(mlir::Operation *op, unsigned result, LayoutAttr label) const;
  /// The layout in which an operand is needed; null if any will do.
  LayoutAttr ofOperand(mlir::Operation *op, unsigned operand, LayoutAttr label) const;

  /// The layout in which an operand is needed for which any of those will do in which each block
  /// has the whole tile; null where it may be divided.
  LayoutAttr ofWholeOperand(mlir::Operation *op, LayoutAttr layout) const;

  /// The layout with what blocks have parts of in each of them.
  LayoutAttr makeWhole(LayoutAttr layout) const;

  /// The layout with the block columns of another one, so that no element moves to another block;
  /// null if there is none.
  LayoutAttr withBlocksOf(LayoutAttr layout, LayoutAttr other) const;

  /// A label with which the result (operand) has this layout; null if there is none, or
  /// the layout does not decide it.
  LayoutAttr fromResult(mlir::Operation *op, unsigned result, LayoutAttr layout) const;
  LayoutAttr fromOperand(mlir::Operation *op, unsigned operand, LayoutAttr layout) const;

  /// Labels that the op proposes, best first, from which those of its neighbours follow; none if it
  /// follows them.
  llvm::SmallVector<LayoutAttr> proposeOwn(mlir::Operation *op) const;
  /// The same, or the default for an op that proposes none; at least one that is valid, if there
  /// is any.
  llvm::SmallVector<LayoutAttr> propose(mlir::Operation *op) const;

  /// The layout of a tile that functions take or give.
  LayoutAttr ofSignature(mlir::Type type) const;

  /// The attribute of a layout; null for none.
  LayoutAttr make(const std::optional<LinearLayout> &layout) const;
  LayoutAttr makeDefault(llvm::ArrayRef<int64_t> shape) const;

  unsigned getWarpBits() const { return warpBits; }
  unsigned getBlockBits() const { return blockBits; }

private:
  mlir::MLIRContext *context;
  unsigned warpBits, blockBits;
};

/// Tiles that are cheap enough to be recomputed in each layout that is needed: index arithmetic
/// from ranges, splats and constants. Answers are cached.
class CheapTiles {
public:
  bool contains(mlir::Value value);

private:
  /// Ops to compute it, counted as a tree; above the most for what is not cheap.
  unsigned getCost(mlir::Value value);

  llvm::DenseMap<mlir::Value, unsigned> costs;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTRULES_H
