// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache hints of a load or a store, on the copy that it has become. Such a copy
// (`tilegpu.async_copy`, `tilegpu.tma_load`, `tilegpu.tma_store`) has the attributes
// `tilegpu.cache` and `tilegpu.evict`, with the names of tile IR. A copy without them is like an
// access without hints.

#ifndef TESSERA_DIALECT_TILEGPU_COPYHINTS_H
#define TESSERA_DIALECT_TILEGPU_COPYHINTS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tilegpu {

struct CopyHints {
  tile::CacheModifier cache = tile::CacheModifier::None;
  tile::EvictionPolicy evict = tile::EvictionPolicy::Normal;

  /// Those of a tile.load or tile.store.
  static CopyHints of(mlir::Operation *access);
  /// Those that a copy has been given.
  static CopyHints attachedTo(mlir::Operation *copy);
  /// Gives them to a copy.
  void attachTo(mlir::Operation *copy) const;

  /// The priority of a line in the second-level cache: copies have no other hint. Streamed lines
  /// (`.cs`) are evicted first.
  tile::EvictionPolicy getPolicy() const;
};

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_COPYHINTS_H
