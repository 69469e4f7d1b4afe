// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers by which a kernel is compiled again: with other warps, stages or blocks, or with
// fewer registers a thread, so that more programs share an SM. They fit the kernels of
// python/benchmarks on an H200.

#ifndef TESSERA_MACHINE_RETRYBUDGET_H
#define TESSERA_MACHINE_RETRYBUDGET_H

#include "tessera/Machine/GPUMachine.h"

namespace tessera {

struct RetryBudget {
  // The next schedule of a kernel:

  /// The most stages of a loop.
  static constexpr int kMaxStages = 64;
  /// The most warps of a program, and those with which a thread can have all its registers.
  static constexpr int kMaxWarps = 16, kMaxWarpsWithAllRegisters = 8;
  /// If a thread spills fewer bytes (a quarter of its registers), more warps are not tried.
  static constexpr int64_t kMinSpilledBytes = 256;
  /// Four values, which ptxas spills once a program. Without producer warps a program loses more.
  static constexpr int64_t kFewSpilledBytes = 16;
  /// If a schedule needs so many registers more than a thread has, ptxas is not run. The margin
  /// scales with the registers available. It is not 0 because the count is inexact, and a schedule
  /// that almost fits may be the best one.
  static constexpr int64_t kHopelessRegisters = 64;

  // More programs on an SM:

  /// From so many warps an SM on, registers for loads in flight hide as much latency as warps do.
  static constexpr int kEnoughWarpsOfSM = 32;
  /// From so many warps an SM on, further ones hide little latency.
  static constexpr int kMaxWarpsOfSM = 48;
  /// With that many warps or more, a load that is delayed matters if its use is so far behind it.
  static constexpr unsigned kFarInstructions = 128;
  /// Spilling a few words costs less than the latency that few warps cannot hide.
  static constexpr int kMaxBytesSpilledForPrograms = 40;
  /// From so many programs on, a further one hides little latency.
  static constexpr int kMaxPrograms = 4;
};

} // namespace tessera

#endif // TESSERA_MACHINE_RETRYBUDGET_H
