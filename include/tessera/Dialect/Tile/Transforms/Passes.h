// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tile IR (docs in Passes.td).

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_H
#define TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tile {

#define GEN_PASS_DECL
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_H
