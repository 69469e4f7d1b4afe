// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The transfer of tiles from the producer thread to the consumer warps: rings in shared memory,
// with two mbarriers for each slot.
//
//     producer                                consumer
//     wait until the slot is empty            wait until the slot is full
//     start copies, which fill it             multiply
//     next slot                               mark it empty; next slot
//
// A channel has the rings whose tiles are copied together, such as those of both operands of a dot.
// Successive loops fill the same rings, if the tiles of one are some of the other's. A loop does
// not use the rings that it does not need. A tile and its transpose are the same bytes. The phases
// of a barrier alternate. So the position of a side in a channel is two numbers: the slot, and the
// parity of its rounds. Both sides count separately, over all loops that use the channel, and
// neither reads the other's position.
//
// If copies are for all blocks of a cluster (Schedule.h), a slot is empty when it is empty in each
// of them. Readers arrive at the barriers of all blocks, and a producer counts all arrivals.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CHANNELS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CHANNELS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// The position of a side in a channel: two i32.
struct ChannelPlace {
  mlir::Value slot, phase;
};

/// The phase after this one, and before it.
mlir::Value emitOtherPhase(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value phase);

/// A ring of so many barriers, each of which so many arrivals end a phase of; a single one with 0.
mlir::Value allocateBarriers(mlir::OpBuilder &builder, mlir::Location loc, unsigned slots,
                             unsigned arrivals);

/// Numbers in shared memory, one after the other.
MemDescType getRowType(mlir::ArrayRef<int64_t> shape, mlir::Type element);

class Channel {
public:
  Channel(mlir::ArrayRef<MemDescType> tiles) : tiles(tiles) {}

  mlir::ArrayRef<MemDescType> getTiles() const { return tiles; }
  /// The ring of each of these tiles, which a loop copies together. Adds rings for those that have
  /// none. Fails, and changes nothing, unless the tiles are some of the channel's, or all of them
  /// and more.
  mlir::FailureOr<mlir::SmallVector<unsigned, 2>> join(mlir::ArrayRef<MemDescType> others);
  unsigned getNumSlots() const { return slots; }
  /// The number of blocks that copy to its rings: all of them must release a slot.
  void setBlocks(unsigned number) { blocks = number; }
  bool isShared() const { return blocks > 1; }
  /// Bytes of shared memory that one slot takes.
  int64_t getSlotBytes() const;
  /// Bytes that the barriers of a channel with so many slots take.
  static int64_t getBarrierBytes(int64_t slots);

  /// Allocates rings of so many slots, and their barriers. `warps` warps of each consuming block
  /// mark a slot empty.
  void allocate(mlir::OpBuilder &builder, mlir::Location loc, unsigned slots, unsigned warps);
  void deallocate(mlir::OpBuilder &builder, mlir::Location loc);

  /// The slot before any: its release has no effect.
  mlir::Value getNoSlot(mlir::OpBuilder &builder, mlir::Location loc) const;
  ChannelPlace getFirst(mlir::OpBuilder &builder, mlir::Location loc) const;
  ChannelPlace getNext(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place) const;
  ChannelPlace getPrevious(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place) const;

  /// A slot of a ring, as a tile of this type.
  mlir::Value getTile(mlir::OpBuilder &builder, mlir::Location loc, unsigned ring, mlir::Value slot,
                      MemDescType type) const;

  /// For consumers: wait until the tiles have arrived, and release the slot.
  void waitUntilFull(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place) const;
  void release(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value slot) const;

  /// For a producer: waits until the slot is empty, and announces so many bytes. Returns the
  /// barrier that counts them.
  mlir::Value beginToFill(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place,
                          int64_t bytes) const;

private:
  mlir::SmallVector<MemDescType, 2> tiles;
  unsigned slots = 0, blocks = 1;
  mlir::SmallVector<mlir::Value, 2> rings;
  mlir::Value full, empty;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CHANNELS_H
