// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words of 32 bits of a dot's second operand, each of which has neighbours along k of one column.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_READYWORDS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_READYWORDS_H

#include "KeptOperands.h"
#include "PackedWeights.h"

namespace tessera {

/// Where words of b are that need no packing. None: they are packed for the dot.
struct ReadyWords {
  const PackedPanels *ahead = nullptr; ///< packed ahead, in the user's memory
  const ColumnPanels *kept = nullptr;  ///< kept by the thread
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_READYWORDS_H
