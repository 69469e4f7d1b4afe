// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the work of a kernel in optimised LLVM IR, as its skeleton (Machine/KernelSkeleton.h).
//
// Instructions of LLVM IR are counted as what ptxas makes of them, with the machine's table of
// rates and latencies. Inline assembly is read instruction by instruction. The addresses of the
// first warp's lanes are computed, so that bank conflicts and the sectors of an access are known.
// There, arguments and loaded values are stand-ins: a large power of two for integers.
//
// The latency of a block is its longest path of dependent instructions, but no less than the cycles
// in which its instructions issue. Instructions after a barrier wait for those before it.
//
// Left out: instructions that ptxas adds (moves, spills), registers' banks, and the caches of
// instructions and constants.

#ifndef TESSERA_TARGET_NVPTX_KERNELWORK_H
#define TESSERA_TARGET_NVPTX_KERNELWORK_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/KernelSkeleton.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class Function;
}

namespace tessera {

/// `getBoxBytes` returns the bytes that one copy with the tensor map in such an argument moves.
KernelSkeleton countWork(const llvm::Function &function, const GPUMachine &machine,
                         llvm::function_ref<int64_t(unsigned argument)> getBoxBytes);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_KERNELWORK_H
