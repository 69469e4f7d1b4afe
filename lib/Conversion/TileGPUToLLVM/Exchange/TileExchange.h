// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exchange of a tile through shared memory from one layout to another, whole or slice by slice
// (Layout/ExchangeRounds.h). Each round is a store, a barrier and a load, and another barrier
// before the next round, which writes the same memory. The caller inserts the barriers, since
// several tiles may be exchanged at once.
//
// If blocks of a cluster have parts of the tile, each stores its own. Threads load from the blocks
// that hold their elements (Layout/BlockExchange.h). All blocks synchronise before that, and once
// more after the last round: until then others read a block's memory.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_TILEEXCHANGE_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_TILEEXCHANGE_H

#include "SharedTile.h"
#include "tessera/Layout/BlockExchange.h"

namespace tessera {

/// True if this thread has a share of a slice; null if every thread has.
mlir::Value emitHasShare(ThreadBuilder &thread, const SliceShare &share);

class TileExchange {
public:
  /// `scratch` has room for a slice of the tile, of which there are `rounds`; `element` is the
  /// type of a register. `ofAllThreads`: in none of the rounds has a thread nothing.
  TileExchange(mlir::Value scratch, const LinearLayout &source, const LinearLayout &destination,
               mlir::Type element, MatrixInstructions matrices, unsigned rounds,
               bool ofAllThreads = false);

  /// Stores what a thread has of a slice, of its registers in the source's layout.
  void store(ThreadBuilder &thread, mlir::ValueRange registers, unsigned round) const;
  /// Loads what a thread is to have of a slice, of its registers in the destination's layout.
  /// With a distance, which takes all threads: what the thread would have whose lane and warp
  /// differ by these bits.
  void load(ThreadBuilder &thread, llvm::MutableArrayRef<mlir::Value> registers, unsigned round,
            const Place &distance = {}) const;

  /// The same from one block (null: the own one), for clusters in which each block has its own
  /// whole tile.
  void loadFrom(ThreadBuilder &thread, llvm::MutableArrayRef<mlir::Value> registers, unsigned round,
                mlir::Value block) const;

  /// True if threads load from other blocks of a cluster, so that these have to meet.
  bool isAcrossBlocks(const Place &distance = {}) const;

  /// True if every warp loads only elements that it stored itself. Then only its lanes must
  /// synchronise.
  bool isWithinWarps() const;

private:
  /// Loads a part of the tile from memory at `from`.
  void loadPart(ThreadBuilder &thread, llvm::MutableArrayRef<mlir::Value> registers, unsigned round,
                const Place &distance, const SharedTile &from) const;
  /// The number of the block that a thread loads a group's registers from.
  mlir::Value emitBlock(ThreadBuilder &thread, const BlockExchange::Group &group,
                        const Place &distance) const;

  /// For clusters; the layouts are then those of a part.
  std::optional<BlockExchange> blocks;
  mlir::Value scratch;
  LinearLayout source, destination;
  mlir::Type element;
  MatrixInstructions matrices;
  RoundedExchange exchange;
  SharedTile tile;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_TILEEXCHANGE_H
