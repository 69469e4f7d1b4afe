// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of narrow elements by instructions that take several steps of k at once.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPEDDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPEDDOT_H

#include "tessera/Dialect/Strips/IR/Strips.h"

#include <optional>

namespace tessera {

/// What the machine has.
struct DotInstructions {
  bool int8 = false; ///< four products of a u8 and an s8, summed in i32 (VNNI)
  bool bf16 = false; ///< two products of bf16, summed in f32
};

/// Elements of k that one 32-bit word holds.
enum class DotGroup { Int8 = 4, BF16 = 2 };

/// The instruction that does a product, if there is one: for its types, and extents that
/// need no masks. The bf16 instruction flushes denormals and rounds in an order of its
/// own, so it is not used for `deterministic`.
std::optional<DotGroup> findDotGroup(strips::DotOp dot, const DotInstructions &machine,
                                     bool deterministic);

/// Writes the loops of a product in place of it. Packed operands go to the scratch arena
/// from `scratchOffset` on; returns how many bytes of it they take.
int64_t emitGroupedDot(strips::DotOp dot, DotGroup group, unsigned vectorBits,
                       int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPEDDOT_H
