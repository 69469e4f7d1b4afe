// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the registers that a thread's code needs before ptxas runs, since ptxas takes long over
// code that needs many times too many.

#ifndef TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H
#define TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H

#include <cstdint>

namespace llvm {
class Function;
} // namespace llvm

namespace tessera {

/// A lower bound of the 32-bit registers that the function's values occupy at once, in any order of
/// its instructions. Counts values that are live at boundaries of blocks and at instructions that
/// others cannot pass. Values that cost nothing to recompute do not count.
int64_t countLiveRegisters(const llvm::Function &function);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H
