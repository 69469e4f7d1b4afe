// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of dots that lie in the user's memory as matrices, and need not be copied to a buffer.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MEMORYTILE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MEMORYTILE_H

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

#include <optional>

namespace tessera {

/// Where such a tile lies.
struct TilePlace {
  mlir::Value address; ///< of its first element, an i64
  mlir::Value stride;  ///< bytes between its rows, an i64
  mlir::Value isWhole; ///< false: the mask leaves out some elements; null: there is no mask
};

/// A tile that a group loads and writes to a buffer. Each row has neighbours in memory, and all
/// rows are as far apart.
struct MemoryTile {
  mlir::Value buffer;
  strips::GroupOp group; ///< does nothing else
  tile::LoadOp load;
  mlir::SmallVector<MaskTerm> terms; ///< of the mask, none of them general

  /// Computes the place in front of the group.
  TilePlace locate(mlir::OpBuilder &b);
};

/// The tile in a buffer that nothing but a dot reads; none if it is no such tile.
std::optional<MemoryTile> findMemoryTile(mlir::Value buffer, strips::DotOp dot,
                                         AccessAnalysis &access);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MEMORYTILE_H
