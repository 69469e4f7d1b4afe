// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How messages name an access.

#ifndef TESSERA_DIALECT_TILE_IR_ACCESSNAME_H
#define TESSERA_DIALECT_TILE_IR_ACCESSNAME_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tile {

/// "load", "store" or "atomic".
inline llvm::StringRef getAccessName(AccessOpInterface op) {
  return op.isAtomic() ? "atomic" : mlir::isa<LoadOp>(op) ? "load" : "store";
}

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_ACCESSNAME_H
