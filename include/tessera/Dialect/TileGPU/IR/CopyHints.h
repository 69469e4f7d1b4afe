// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a load or a store says about caches, on the copy that it has become. A copy that
// passes make of it (`tilegpu.async_copy`, `tilegpu.tma_load`, `tilegpu.tma_store`) has the
// attributes `tilegpu.cache` and `tilegpu.evict`, with the names that they have in tile IR;
// a copy without them is like an access without hints.

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

  /// What a line of the second-level cache is to be: copies have no other word for it. What
  /// is streamed (`.cs`) leaves first.
  tile::EvictionPolicy getPolicy() const;
};

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_COPYHINTS_H
