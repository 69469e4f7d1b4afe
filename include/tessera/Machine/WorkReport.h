// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints a kernel's skeleton for developers of the cost model: a line for each basic block, with
// the path onwards, the latency and the resources.
//
//     b1 -> b1 or b2 (loop, guessed if unknown): 64 visits; latency 312, pending 940;
//       issue 45, integers 3.5, shared 12, read 4096; argument 0: 4096 read
//
// `tessera-compile --stage=work` prints it.

#ifndef TESSERA_MACHINE_WORKREPORT_H
#define TESSERA_MACHINE_WORKREPORT_H

#include "tessera/Machine/KernelSkeleton.h"

namespace tessera {

/// The blocks, each as one warp executes it once.
std::string describeSkeleton(const KernelSkeleton &skeleton);

/// The same behind a line for the work of an average program. Each block has its visits by all
/// warps of that program. Blocks without visits are omitted.
std::string describeWork(const KernelSkeleton &skeleton, const ProgramWork &work);

} // namespace tessera

#endif // TESSERA_MACHINE_WORKREPORT_H
