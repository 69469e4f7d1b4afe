// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running the programs of a grid.

#ifndef TESSERA_RUNTIME_HOST_LAUNCHER_H
#define TESSERA_RUNTIME_HOST_LAUNCHER_H

#include "tessera/Runtime/Host/KernelABI.h"
#include "tessera/Runtime/Host/Print.h"

#include <atomic>
#include <cstdint>

namespace tessera::host {

/// A kernel, as the launcher sees it. One for each compiled kernel, shared by all its
/// launches.
struct LaunchableKernel {
  ChunkFunction function = nullptr;
  int64_t scratchBytes = 0; ///< that each thread needs
  /// True if a program may loop until another one has written something. Such a kernel gets
  /// more threads, up to kMaxWaitingThreads, where none of its programs ends.
  bool waitsForPrograms = false;
  /// The time of a program in the last launches, in nanoseconds; negative while unknown. It shows
  /// which launches end before a second thread would have woken up.
  mutable std::atomic<float> nanosecondsPerProgram{-1.0f};
};

/// Thrown by a launch that was asked to end; some programs have not run.
struct Interrupted {};

/// Asked now and then by the thread that launches; true ends the launch.
using InterruptCheck = bool (*)();

inline constexpr int kMaxWaitingThreads = 1024;

struct LaunchOptions {
  int numThreads = 0;         ///< 0 is getDefaultNumThreads()
  Printer *printer = nullptr; ///< null is standard output
  InterruptCheck isInterrupted = nullptr;
  /// One an argument, for a kernel that checks its accesses.
  const MemoryRange *memory = nullptr;
};

/// Runs programs (0, 0, 0) to (grid - 1), x fastest, in chunks of neighbours that the
/// threads take from the front; returns when all are done. No program where an extent
/// is zero. After a failed assertion the rest is skipped and the first failure is in
/// `fault`; returns whether there was none. Throws std::bad_alloc if there is no memory
/// for scratch, Interrupted where the check says so between two programs. Extents are not negative,
/// and their product fits int64_t.
bool launch(const LaunchableKernel &kernel, const int32_t grid[3], const uint64_t *args,
            Fault &fault, const LaunchOptions &options = {});

} // namespace tessera::host

#endif // TESSERA_RUNTIME_HOST_LAUNCHER_H
