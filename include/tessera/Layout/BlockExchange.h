// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges between the blocks of a cluster.
//
// A tile whose layout has nonzero block columns is in parts. The elements of a part agree in the
// bits of these columns. Each block stores its part in its own shared memory; then every thread
// loads its elements from the blocks that have them. Without the bits that number parts, a part is
// a plain tile with its own layouts (ExchangeRounds.h), so the rules for shared memory hold for it.
// Worked example:
//
//     source       reg = [1]  lane = [2, 4]  block = [8]
//     destination  reg = [8]  lane = [1, 2]  block = [4]
//     a part has elements 0 to 7: source reg = [1] lane = [2, 4], destination lane = [1, 2],
//     block = [4]; register 0 of the destination is loaded from block 0, register 1 from block 1
//
// A block bit with the column 0 distinguishes copies: a thread then loads from a block with its own
// block's bit there.

#ifndef TESSERA_LAYOUT_BLOCKEXCHANGE_H
#define TESSERA_LAYOUT_BLOCKEXCHANGE_H

#include "tessera/Layout/ExchangeRounds.h"

namespace tessera {

class BlockExchange {
public:
  /// Both layouts are distributed, of one shape, over as many blocks.
  BlockExchange(const LinearLayout &source, const LinearLayout &destination);

  /// True if blocks have parts. If not, the part is the whole tile.
  bool hasParts() const { return parts.getMask() != 0; }
  /// True if any element comes from another block.
  bool isAcrossBlocks() const { return acrossBlocks; }

  /// The layouts of a part, which have as many dimensions as a slice (one). The registers of the
  /// source are those of its part; of the destination, see the groups.
  const LinearLayout &getSource() const { return source; }
  const LinearLayout &getDestination() const { return destination; }

  /// Registers of the destination that are loaded from one block.
  struct Group {
    /// The term that they add (XOR) to the number of the block to load from.
    uint64_t block = 0;
    /// Register i of the part is this register of the destination.
    llvm::SmallVector<uint64_t> registers;
  };
  llvm::ArrayRef<Group> getGroups() const { return groups; }

  /// The term that a bit of the lane's, the warp's or the own block's number adds to the number of
  /// the block to load from.
  llvm::ArrayRef<uint64_t> getBlockColumns(HwDim dim) const {
    return blockColumns[static_cast<unsigned>(dim)];
  }

private:
  TileSlices parts;
  LinearLayout source, destination;
  llvm::SmallVector<Group> groups;
  std::array<f2::Columns, kNumHwDims> blockColumns;
  bool acrossBlocks = false;
};

/// In how many parts a tile of this layout is over blocks.
unsigned countBlockParts(const LinearLayout &layout);

} // namespace tessera

#endif // TESSERA_LAYOUT_BLOCKEXCHANGE_H
