// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots that read both operands where they lie in the user's memory.
//
// If programs share no operand, each is read for one program alone. Copying it takes as long as a
// tenth of a matmul then. So a version of the loop notes where its tiles lie, and multiplies some
// of them at once:
//
//     for i:                          for i:
//       write load(p), a                if the mask leaves out an element: write load(p), slot i
//       write load(q), n                place i of a = the slot, or else the memory
//       acc += a @ b                    the same for b
//                                       if a block or the loop ends:
//                                         for each block of acc: add the products of all places
//
// Each row of a tile has neighbours in memory, and all rows are as far apart. The version is for
// rows whose distance has few factors of 2. Others meet in few sets of the caches, and are copied
// by the loop as it was.
//
// Meanwhile the loop fetches what is read next into the second-level cache: the next panel of b,
// and the next block of both operands. That is as far from this block as this one is from the last.
// This is a guess, and a wrong one costs only time.
//
// Each sum has its products in the same order as without all this.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PLACEDDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PLACEDDOT_H

#include "Grouping/CostModel.h"
#include "MergeDots.h"

#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// A loop that has a version with a dot of operands in place.
struct PlacedDot {
  LoopDot plain;        ///< the old one, in a copy of the loop
  int64_t scratchBytes; ///< that the version takes
  BlockShape block;     ///< of the result, in registers
  int64_t depth;        ///< steps of k that are multiplied at a time
};

/// Puts such a version beside a loop, with scratch memory from `scratchOffset` on. None: its dot
/// cannot read its operands in place. `fuses`: products may be fused with additions.
std::optional<PlacedDot> placeOperands(LoopDot found, const HostMachine &machine, bool fuses,
                                       int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PLACEDDOT_H
