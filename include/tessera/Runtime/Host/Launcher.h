// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the programs of a grid.

#ifndef TESSERA_RUNTIME_HOST_LAUNCHER_H
#define TESSERA_RUNTIME_HOST_LAUNCHER_H

#include "tessera/Runtime/Host/KernelABI.h"
#include "tessera/Runtime/Host/Print.h"

#include <atomic>
#include <cstdint>

namespace tessera::host {

/// The launcher's view of a kernel. Each compiled kernel has one, which all its launches share.
struct LaunchableKernel {
  ChunkFunction function = nullptr;
  int64_t scratchBytes = 0; ///< that each thread needs
  /// True if a program may loop until another one has written a value. If no program of such a
  /// kernel ends, the launch gets more threads, up to kMaxWaitingThreads.
  bool waitsForPrograms = false;
  /// The time of a program in the last launches, in nanoseconds; negative while unknown. It
  /// predicts which launches end before a second thread would wake up.
  mutable std::atomic<float> nanosecondsPerProgram{-1.0f};
};

/// Thrown by a launch that an interrupt ended; some programs have not run.
struct Interrupted {};

/// Called now and then by the launching thread; true ends the launch.
using InterruptCheck = bool (*)();

inline constexpr int kMaxWaitingThreads = 1024;

struct LaunchOptions {
  int numThreads = 0;         ///< 0 is getDefaultNumThreads()
  Printer *printer = nullptr; ///< null is standard output
  InterruptCheck isInterrupted = nullptr;
  /// One range an argument, for a kernel that checks its accesses.
  const MemoryRange *memory = nullptr;
};

/// Runs programs (0, 0, 0) to (grid - 1), x fastest, and returns when all are done. Threads take
/// chunks of adjacent programs in order. If an extent is zero, there are no programs. After a
/// failed assertion the remaining programs are skipped, `fault` has the first failure, and the
/// result is false. Throws std::bad_alloc if there is no memory for scratch, and Interrupted if the
/// check returns true. Extents must not be negative, and their product must fit int64_t.
bool launch(const LaunchableKernel &kernel, const int32_t grid[3], const uint64_t *args,
            Fault &fault, const LaunchOptions &options = {});

} // namespace tessera::host

#endif // TESSERA_RUNTIME_HOST_LAUNCHER_H
