// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the elements of an op's results come from, for ops with IndexMapOpInterface and elementwise
// ones. Passes ask here, and name no op.

#ifndef TESSERA_DIALECT_TILE_IR_SOURCEMAPS_H
#define TESSERA_DIALECT_TILE_IR_SOURCEMAPS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tile {

/// The map from an index in a result to that in the operand (IndexMapOpInterface). Null if the op
/// has neither the interface nor OpTrait::Elementwise.
mlir::AffineMap getSourceMap(mlir::OpOperand &operand, unsigned result = 0);

/// The dimension of the operand whose index is the result's index along `dim`; none if the map uses
/// it otherwise, or not at all.
std::optional<unsigned> getSourceDim(mlir::AffineMap map, unsigned dim);

/// The dimension of the result whose index is the operand's index along `dim`; none if that is
/// another index.
std::optional<unsigned> getResultDim(mlir::AffineMap map, unsigned dim);

/// Neighbouring dimensions of a tile and of its reshaped form that hold the same elements. A
/// reshape renumbers elements in each group separately.
struct ReshapeGroup {
  unsigned fromBegin, fromEnd; ///< of the operand
  unsigned toBegin, toEnd;     ///< of the result
};

/// The smallest groups, from the first dimension to the last one. Extents of 1 may be in a group of
/// their own, which has dimensions of one side only.
llvm::SmallVector<ReshapeGroup> getReshapeGroups(llvm::ArrayRef<int64_t> from,
                                                 llvm::ArrayRef<int64_t> to);

/// The source map of a reshape from one shape to another one: both have the same elements in
/// row-major order. Dimensions that stay as they are have plain indices.
mlir::AffineMap getReshapeMap(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                              mlir::MLIRContext *context);

/// True if the op moves whole dimensions or none at all, and so all elements of one tile.
bool movesDimensions(mlir::Operation *op);

/// True if the op permutes the dimensions of its only operand, at least two of them.
bool permutesDimensions(mlir::Operation *op);

/// True if the op only gives its operand another shape: elements keep their row-major order. A
/// reshape does, an expand_dims, and a trans that moves extents of 1 alone.
bool onlyReshapes(mlir::Operation *op);

/// The operands that elements of an op's results come from: one, or the two that join and cat have.
mlir::OperandRange getMovedOperands(MoveOpInterface move);

/// The choice between two operands by the index in the result: the first one has the indices below
/// `border` along `dim`, the other one has the others.
struct OperandChoice {
  unsigned dim;
  int64_t border;
};

/// None if all elements come from one operand.
std::optional<OperandChoice> getOperandChoice(MoveOpInterface move);

/// The dimensions of the operand: for each, what `ofResult` has for the dimension of the result
/// with the same index, and `none` if there is no such dimension.
template <typename T>
llvm::SmallVector<T> pullBack(mlir::AffineMap map, llvm::ArrayRef<T> ofResult, const T &none) {
  llvm::SmallVector<T> ofOperand;
  for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
    std::optional<unsigned> from = getResultDim(map, dim);
    ofOperand.push_back(from ? ofResult[*from] : none);
  }
  return ofOperand;
}

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_SOURCEMAPS_H
