// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The swizzles of shared memory that TMA writes and MMA instructions read. They are the same on
// every GPU that has these instructions.

#ifndef TESSERA_MACHINE_SWIZZLE_H
#define TESSERA_MACHINE_SWIZZLE_H

#include <cstdint>

namespace tessera {

struct Swizzle {
  /// Bytes of a row over which chunks are permuted, the widest first.
  static constexpr unsigned kWidths[] = {128, 64, 32};
  /// The bytes that move together, and those after which the permutation changes.
  static constexpr unsigned kChunkBytes = 16, kLineBytes = 128;
  /// Lines after which the permutation repeats, and the rows of a block of an operand.
  static constexpr unsigned kLines = kLineBytes / kChunkBytes;

  static constexpr bool isWidth(unsigned bytes) {
    for (unsigned width : kWidths)
      if (width == bytes)
        return true;
    return false;
  }

  /// The place of byte `offset` with this width; 0 is none.
  static constexpr uint64_t move(uint64_t offset, unsigned width) {
    uint64_t chunks = width ? width / kChunkBytes - 1 : 0;
    return offset ^ (offset / kLines & chunks * kChunkBytes);
  }

  /// The alignment of the first byte: the permutation is one of addresses.
  static constexpr uint64_t getAlignment(unsigned width) {
    return width ? uint64_t(kLines) * width : kLineBytes;
  }

  /// The descriptor of an operand for wgmma without its address, by the bytes between its panels
  /// and between its blocks of rows.
  static constexpr uint64_t encode(int64_t panels, int64_t blocks, unsigned width) {
    uint64_t mode = 1;
    for (unsigned known : kWidths) {
      if (known == width)
        break;
      ++mode;
    }
    return encodeBytes(panels) << 16 | encodeBytes(blocks) << 32 | mode << 62;
  }

private:
  static constexpr uint64_t encodeBytes(int64_t bytes) {
    return uint64_t(bytes) / kChunkBytes & 0x3fff;
  }
};

} // namespace tessera

#endif // TESSERA_MACHINE_SWIZZLE_H
