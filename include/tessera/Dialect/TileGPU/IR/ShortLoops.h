// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that turn out to be short at a launch. A loop whose loads are grouped has as many of them
// in flight as a long loop needs (tilegpu-overlap-loads). If it has two iterations, the other
// loads are masked off, and their registers keep programs from an SM. How many iterations there
// are only the launch knows. So a kernel has a variant for short loops:
//
//     tilegpu.short_loops = ["(sub64 (add64 0 4096) i32:2)"]    on a module: launches in which none
//                                                               of these is negative
//                                                               (ProgramBound.h) prefer the variant
//     tilegpu.short_loops                                       this is the variant
//
// Both variants are right for any launch.

#ifndef TESSERA_DIALECT_TILEGPU_IR_SHORTLOOPS_H
#define TESSERA_DIALECT_TILEGPU_IR_SHORTLOOPS_H

#include "llvm/ADT/StringRef.h"

namespace tessera::tilegpu {

inline constexpr llvm::StringLiteral kShortLoopsAttr = "tilegpu.short_loops";

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_IR_SHORTLOOPS_H
