// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots by instructions on tile registers (x86's AMX).

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_AMXDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_AMXDOT_H

#include "KeptOperands.h"
#include "PackedWeights.h"
#include "ReadyWords.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// The instruction on tile registers that does a dot, if the machine has one: for its types, and
/// extents that fill whole registers. With `deterministic`, floats get none, since the order of its
/// sums is its own, and it flushes denormal numbers. `isPacked`: b was packed ahead, so that rows
/// need not fill registers.
const AMXInstruction *findAMXInstruction(strips::DotOp dot, const HostMachine &machine,
                                         bool deterministic, bool isPacked = false);

/// Elements of k that are packed at a time. A longer dot loads and stores its sums again.
int64_t getAMXDepth(const AMXInstruction &instruction, const HostMachine &machine);

/// How operands of such a dot are kept.
PanelForm getAMXPanels(const AMXInstruction &instruction, const HostMachine &machine);

/// Writes the loops of a dot in place of it, and marks its function as one that needs the registers
/// configured. Packed operands go to the scratch arena from `scratchOffset` on; returns how many
/// bytes of it they take. If b is packed here, that is from `columnsOfB`, a buffer whose rows are
/// the columns of b, if that is not null.
int64_t emitAMXDot(strips::DotOp dot, const AMXInstruction &instruction, const HostMachine &machine,
                   ReadyWords ready, mlir::Value columnsOfB, int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_AMXDOT_H
