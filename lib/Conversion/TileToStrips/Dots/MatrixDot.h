// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots of bytes by instructions that multiply small matrices (AArch64's i8mm).

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MATRIXDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MATRIXDOT_H

#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// The instruction that does a dot, if the machine has one: for its types, and extents that need no
/// masks.
const MatrixInstruction *findMatrixInstruction(strips::DotOp dot, const HostMachine &machine);

/// Writes the loops of a dot in place of it. Packed operands go to the scratch arena
/// from `scratchOffset` on; returns how many bytes of it they take.
int64_t emitMatrixDot(strips::DotOp dot, const MatrixInstruction &instruction,
                      const HostMachine &machine, int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MATRIXDOT_H
