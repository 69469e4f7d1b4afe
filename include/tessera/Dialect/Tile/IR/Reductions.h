// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions that passes put in, and ops that reductions combine elements by.

#ifndef TESSERA_DIALECT_TILE_IR_REDUCTIONS_H
#define TESSERA_DIALECT_TILE_IR_REDUCTIONS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tile {

/// True if the op gives the smaller or the larger one of two integers.
inline bool isIntegerMinMax(mlir::Operation *op) {
  return llvm::isa<mlir::arith::MinSIOp, mlir::arith::MaxSIOp, mlir::arith::MinUIOp,
                   mlir::arith::MaxUIOp>(op);
}

/// True if the op computes each bit from the same bits of two integers.
inline bool isBitwise(mlir::Operation *op) {
  return llvm::isa<mlir::arith::AndIOp, mlir::arith::OrIOp, mlir::arith::XOrIOp>(op);
}

/// Builds what combines two scalars; the builder stands in the reduction's region.
using BuildCombination = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::Value left, mlir::Value right)>;

/// The elements of a tile along an axis, combined: a tile without that axis, a scalar for one
/// of rank 1.
mlir::Value buildReduction(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                           unsigned axis, BuildCombination combine);

/// All elements of a tile, combined, the last axis first; a scalar as it is.
mlir::Value buildReductionToScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                                   BuildCombination combine);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_REDUCTIONS_H
