// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots of narrow elements by instructions that take several steps of k at once.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_GROUPEDDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_GROUPEDDOT_H

#include "KeptOperands.h"
#include "PackedWeights.h"
#include "ReadyWords.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// The instruction that does a dot, if the machine has one: for its types, and extents
/// that need no masks. The bf16 instruction flushes denormals and rounds in an order of its
/// own, so it is not used for `deterministic`.
const DotInstruction *findDotInstruction(strips::DotOp dot, const HostMachine &machine,
                                         bool deterministic);

/// How operands of such a dot are kept; none if its columns do not fill vectors.
std::optional<PanelForm> getGroupedPanels(strips::DotOp dot, const DotInstruction &instruction,
                                          const HostMachine &machine);

/// Writes the loops of a dot in place of it. Packed operands go to the scratch arena
/// from `scratchOffset` on; returns how many bytes of it they take. `ready`: where words of b are
/// that need no packing.
int64_t emitGroupedDot(strips::DotOp dot, const DotInstruction &instruction,
                       const HostMachine &machine, ReadyWords ready, int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_GROUPEDDOT_H
