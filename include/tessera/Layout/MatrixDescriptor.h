// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared memory as wgmma reads it. An operand is a start address and two strides. The instruction
// walks over blocks of 8 rows of 32, 64 or 128 bytes, swizzled.
//
// K-major, a row is along K: a block has 8 rows of M (or N), and blocks along M are one
// stride apart. An instruction takes 32 bytes of each row; the next ones start 32 bytes
// further. M-major, a row is along M: a block has 8 steps along K, blocks along K are one
// stride apart and the panels of a row another.
//
// The strides of a descriptor are the same all over an instruction, so how much of M one
// instruction can take follows from the layout: `covers` says it.

#ifndef TESSERA_LAYOUT_MATRIXDESCRIPTOR_H
#define TESSERA_LAYOUT_MATRIXDESCRIPTOR_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// Shared memory for an operand of a dot on tensor cores, with dimension `fast` in
/// rows: the widest swizzle that the rows fill. Good for wgmma, for ldmatrix, and for
/// copies of rows. Rank 2; rows of less than 32 bytes are not swizzled.
LinearLayout operandMemory(llvm::ArrayRef<int64_t> shape, unsigned fast, unsigned bits);

/// Shared memory for tiles that are read into registers as operands of dots, whichever dimension K
/// is. The same, with another swizzle for rows of 128 bytes. Reads of 8 rows by a warp (K along
/// them) have no conflicts, nor have reads across rows. Examples are 8 neighbours of 4 rows of
/// words, or 4 and 4 that are 64 bytes apart. Another is pairs of bytes of 8 rows that differ in
/// two of the lowest bits. wgmma and copies by tensor maps cannot access it.
LinearLayout fragmentMemory(llvm::ArrayRef<int64_t> shape, unsigned fast, unsigned bits);

class MatrixDescriptor {
public:
  /// How wgmma reads an operand in this memory, `kDim` being its dimension along K, for
  /// elements of `bits` bits; nothing where it cannot.
  static std::optional<MatrixDescriptor> match(const LinearLayout &memory, unsigned kDim,
                                               unsigned bits);

  bool isKMajor() const { return kMajor; }
  unsigned getSwizzleBytes() const { return swizzleBytes; }

  /// Bytes from the start of the memory to the element at these coordinates, where the
  /// swizzle moves nothing: at multiples of 8 across the rows.
  int64_t getOffset(int64_t mn, int64_t k) const;

  /// True if one instruction can take `extent` elements along M (or N) from each multiple
  /// of `extent`.
  bool covers(int64_t extent) const;

  /// The descriptor without its start address (bits 0 to 13, in units of 16 bytes).
  uint64_t getBits() const;

private:
  MatrixDescriptor(const LinearLayout &memory, unsigned kDim, unsigned bits, bool kMajor,
                   unsigned swizzleBytes);

  /// Elements along M between blocks that a stride is between, and that stride; and the
  /// bytes between blocks along K of an M-major operand.
  int64_t getStep() const;
  int64_t getStride() const { return getOffset(getStep(), 0); }

  LinearLayout memory;
  unsigned kDim, bits;
  bool kMajor;
  unsigned swizzleBytes;
  f2::Columns offsets;
};

} // namespace tessera

#endif // TESSERA_LAYOUT_MATRIXDESCRIPTOR_H
