// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two versions of the rest of a block, selected by a scalar.

#ifndef TESSERA_LIB_DIALECT_TILE_TRANSFORMS_BLOCKVERSIONS_H
#define TESSERA_LIB_DIALECT_TILE_TRANSFORMS_BLOCKVERSIONS_H

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Value.h"

namespace tessera::tile {

/// True if a scalar can be computed before an op of its block. With `overReads`, loads of scalars
/// may be among what it is computed from.
bool canHoist(mlir::Value value, mlir::Operation *before, bool overReads = false);
/// Moves what a scalar is computed from before an op of its block.
void hoist(mlir::Value value, mlir::Operation *before);

/// The scalar of which a tile is the splat, or none.
mlir::Value getSplatSource(mlir::Value tile);

/// True if no tile crosses the end of the ops from `first` on: it would have to be in memory.
bool canVersionFrom(mlir::Operation *first);
/// Makes two versions of all ops from `first` to the end of its block. The first, which runs if
/// `condition` holds, has the values that `mapping` has in place of the others, and lacks ops whose
/// results are all in there. `condition` is computed before `first`.
void versionFrom(mlir::Operation *first, mlir::Value condition, mlir::IRMapping &mapping);

} // namespace tessera::tile

#endif // TESSERA_LIB_DIALECT_TILE_TRANSFORMS_BLOCKVERSIONS_H
