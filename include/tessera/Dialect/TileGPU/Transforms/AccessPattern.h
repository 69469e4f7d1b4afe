// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The access analysis seen bit by bit.
//
// A layout puts bits of an element's number into registers, lanes and warps. So the
// question to an access is by how many bytes its address moves with each of these bits.
// Worked example, a tile of 4x8 f32 with rows of 1000 elements:
//
//     bit       0   1   2   3      4
//     is        column 1, 2, 4     row 1, 2
//     strides   4   8   16  4000   8000      bytes
//
// Bits 0, 1, 2 are a chain: neighbours, then pairs of neighbours, and so on. A thread
// that has the first k bits of the chain in registers moves 2^k elements at once.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_ACCESSPATTERN_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_ACCESSPATTERN_H

#include "tessera/Analysis/Access/ThreadAccess.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include <vector>

namespace tessera::tilegpu {

struct AccessPattern {
  int64_t elementBytes = 1;
  /// Bytes by which the address moves with each bit of the element's number; none where
  /// that is not known.
  llvm::SmallVector<std::optional<int64_t>> strides;
  /// Bits that one access of a thread may span, from the smallest: as far as alignment,
  /// contiguity and the mask allow it.
  llvm::SmallVector<unsigned> chain;
  /// log2 of the fewest elements that an asynchronous copy moves at once.
  unsigned minVectorBits = 0;

  /// log2 of the elements that a thread moves at once in this layout.
  unsigned vectorBits(const LinearLayout &layout) const;
  /// log2 of the neighbours that a thread has in this layout and that have one address.
  unsigned repeatBits(const LinearLayout &layout) const;
  /// Blocks of so many bytes, at most 128, that one access of a warp touches in this layout:
  /// sectors of 32 bytes, lines of 128.
  unsigned countBlocks(const LinearLayout &layout, int64_t blockBytes) const;
  /// The dimension of a tile of this shape along which neighbours lie side by side; the last one
  /// where that is not known.
  unsigned getFastDim(llvm::ArrayRef<int64_t> shape) const;
};

/// The pattern of an op that `getAccessedPointers` finds pointers for.
AccessPattern getAccessPattern(mlir::Operation *op, AccessAnalysis &analysis);

/// Limits a chain to bits that advance the buffer's offset as they advance the address. An
/// asynchronous copy can move that many elements at once.
void limitToBuffer(llvm::SmallVectorImpl<unsigned> &chain, MemDescType buffer);

/// Bytes that a copy of a loaded tile into a buffer moves at once.
int64_t getCopyBytes(tile::LoadOp load, MemDescType buffer, AccessAnalysis &analysis);

/// Layouts that suit an access, best first, for so many warps and blocks (as bits). For tiles that
/// are `transposed` (or written along another dimension than read), also one in which a thread has
/// a block. Its intermediate stores to shared memory are then in rows for both.
std::vector<LinearLayout> getCandidates(llvm::ArrayRef<int64_t> shape, const AccessPattern &pattern,
                                        unsigned warpBits, unsigned blockBits,
                                        bool transposed = false);

/// Assigns the bits of an element's number in order: `vectorBits` to registers, then lanes, warps,
/// registers, and blocks. With `warpsLast`, warps take the last bits before those of blocks.
LinearLayout spread(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> order,
                    unsigned vectorBits, unsigned warpBits, unsigned blockBits,
                    bool warpsLast = false);

/// The layout that a tile of this shape has where nothing says more: as if it were an
/// array in memory.
LinearLayout getDefaultLayout(llvm::ArrayRef<int64_t> shape, unsigned warpBits, unsigned blockBits);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_ACCESSPATTERN_H
