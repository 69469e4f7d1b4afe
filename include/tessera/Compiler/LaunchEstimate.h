// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expected time of a compiled kernel's launch (Machine/LaunchCost.h), from the kernel's
// metadata and the launch's arguments. Nothing runs.

#ifndef TESSERA_COMPILER_LAUNCHESTIMATE_H
#define TESSERA_COMPILER_LAUNCHESTIMATE_H

#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Machine/KernelSkeleton.h"

namespace tessera {

/// The blocks that a launch has on a GPU with `numSMs`, and the arguments that the kernel gets
/// behind its own `arguments`, of which integers are known.
LaunchSizes getLaunchSizes(const KernelMetadata &metadata, llvm::ArrayRef<int32_t> grid,
                           std::vector<std::optional<int64_t>> arguments, int64_t numSMs);

/// `arrayBytes` has the size of the array behind each argument; -1 if it is unknown, or no array.
/// Device -1 is the GPU of the machine's table. Returns JSON:
///
///     {"microseconds", "bound", "memory_microseconds", "latency_cycles", "waves",
///      "programs_per_sm", "is_certain", "busy_cycles": {resource: cycles of an SM for a program}}
///
/// Throws UserError for a kernel for the CPU, and for one that was compiled from PTX (E054). Throws
/// it, too, for a grid whose programs cannot be counted (E052), and if no ptxas has counted the
/// registers (E063).
std::string estimateLaunch(const CompiledKernel &kernel, llvm::ArrayRef<int32_t> grid,
                           llvm::ArrayRef<uint64_t> args, llvm::ArrayRef<int64_t> arrayBytes,
                           int device);

} // namespace tessera

#endif // TESSERA_COMPILER_LAUNCHESTIMATE_H
