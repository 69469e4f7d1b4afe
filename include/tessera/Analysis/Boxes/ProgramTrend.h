// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The trend of an integer from one program of a launch to the next along an axis of the grid: does
// it grow or shrink? An example is the bound of causal attention's loop, which decides how long a
// program takes.
//
//     %pid * 128                        grows
//     min((%pid + 1) * 128, %T)         grows: it never shrinks, and somewhere it grows
//     cdiv(%T - %pid * 64, 64)          shrinks
//     %T, (%pid + 1) * 64 - %pid * 64   is the same
//     %pid * 128 % %T, a load           is not known
//
// This is a guess for choosing an order, and proves nothing: integers are taken not to wrap, and
// arguments not to be negative.

#ifndef TESSERA_ANALYSIS_BOXES_PROGRAMTREND_H
#define TESSERA_ANALYSIS_BOXES_PROGRAMTREND_H

#include "mlir/IR/Value.h"

namespace tessera {

enum class ProgramTrend { Same, Grows, Shrinks, Unknown };

/// The trend of `first - second`, scalar integers, along an axis of the grid (0 to 2).
ProgramTrend getProgramTrendOfDifference(mlir::Value first, mlir::Value second, unsigned axis);

} // namespace tessera

#endif // TESSERA_ANALYSIS_BOXES_PROGRAMTREND_H
