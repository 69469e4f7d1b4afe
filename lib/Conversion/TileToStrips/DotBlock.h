// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large a block of a product is kept in registers, and how much of its operands in
// the cache.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTBLOCK_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTBLOCK_H

#include <cstdint>

namespace tessera {

/// Steps of k for which a panel of b is kept in the first-level cache.
inline constexpr int64_t kDotDepth = 128;
/// Buffers of packed operands start at multiples of a cache line.
inline constexpr int64_t kLineBytes = 64;

/// A block of the result in registers.
struct BlockShape {
  int64_t rows, vectors;
};

/// The block with which M rows by `vectors` vectors of columns take the least time.
BlockShape chooseBlock(int64_t M, int64_t vectors, int64_t registers);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTBLOCK_H
