// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers of a thread code needs, before ptxas is asked, which takes long over code
// that needs many times what there are.

#ifndef TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H
#define TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H

#include <cstdint>

namespace llvm {
class Function;
} // namespace llvm

namespace tessera {

/// The most 32-bit registers that values of the function take at once where no order of its
/// instructions could help: where blocks meet, and where something happens that nothing passes.
/// Values that can be computed again at no cost do not count.
int64_t countLiveRegisters(const llvm::Function &function);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_REGISTERPRESSURE_H
