// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared memory as TMA fills and reads it. A tile is one or several boxes. Each has contiguous
// rows, swizzled over 32, 64 or 128 bytes or not at all.
//
// A swizzled row is not longer than the swizzle is wide, so a tile with longer rows is
// several boxes: the panels of Layout/MatrixDescriptor.h. The swizzle is a rule on the
// bits of addresses, so a box begins where these are 0.

#ifndef TESSERA_LAYOUT_TENSORMAPBOX_H
#define TESSERA_LAYOUT_TENSORMAPBOX_H

#include "tessera/Layout/LinearLayout.h"
#include "tessera/Machine/GPUMachine.h"

namespace tessera {

/// The most elements of a box along a dimension, and the alignment of the bytes of its rows and of
/// the array's strides.
inline constexpr int64_t kMaxBoxElements = GPUMachine::kMaxBoxElements,
                         kBoxRowAlignment = GPUMachine::kBoxRowBytes;

struct TensorMapBox {
  /// One of the boxes of a tile: where it begins, in coordinates of the tile (in the order
  /// of `order`) and in bytes of shared memory.
  struct Part {
    llvm::SmallVector<int64_t> coordinates;
    int64_t offset;
  };

  /// The boxes in this memory, for elements of `bits` bits; nothing where it is not in boxes.
  /// They are as large as can be, with at most `rows` of them along each dimension but that
  /// of rows.
  static std::optional<TensorMapBox> match(const LinearLayout &memory, unsigned bits,
                                           int64_t rows = kMaxBoxElements);

  /// Dimensions of the tile, outermost first; the last one is that of rows.
  llvm::SmallVector<unsigned> order;
  /// The extents of a box, in that order.
  llvm::SmallVector<int64_t> extents;
  unsigned swizzleBytes = 0;
  /// All boxes of the tile, by their offsets.
  llvm::SmallVector<Part> parts;

private:
  /// Adds what an odd extent repeats.
  void addRepeats(const LinearLayout &memory, unsigned bytes, int64_t rows);
};

} // namespace tessera

#endif // TESSERA_LAYOUT_TENSORMAPBOX_H
