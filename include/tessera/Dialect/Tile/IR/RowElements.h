// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single elements of tiles that are computed from scalars.

#ifndef TESSERA_DIALECT_TILE_IR_ROWELEMENTS_H
#define TESSERA_DIALECT_TILE_IR_ROWELEMENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::tile {

/// Computes element `number` of a tile of one dimension by scalars, where the builder stands; null
/// if that takes more than arithmetic on elements, ranges and splats. A scalar is returned as it
/// is. `known` has the elements that were computed before, of the same number.
mlir::Value emitRowElement(mlir::OpBuilder &builder, mlir::Value row, int64_t number,
                           llvm::DenseMap<mlir::Value, mlir::Value> &known);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_ROWELEMENTS_H
