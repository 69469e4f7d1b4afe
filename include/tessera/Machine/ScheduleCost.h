// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expected cost of a loop's schedule: cycles of an SM per iteration of one program.
//
// An iteration uses three resources of an SM: tensor cores for dots, threads for arithmetic, and
// the path from the second-level cache for tiles. Different programs use them at the same time. A
// program that does not overlap them uses one after another. The programs that share an SM need at
// least the time of the busiest resource. The more programs there are, the better the others are
// hidden. This is the balanced job bound of closed queueing networks (Zahorjan and others,
// "Balanced job bound analysis of queueing networks", 1982):
//
//     cycles = busiest + (sum of dots and arithmetic - the longer of them) / programs
//
// Worked example, 600 cycles of dots and 400 of arithmetic: 1000 with one program, 800 with two,
// 733 with three. A program that itself has a dot under way while it computes hides half as much
// again, as one and a half programs would: 867.
//
// Copies come in time or not. A copy begins `ahead` iterations before its tile is needed, in each
// program, and takes the latency of memory. So an iteration takes latency / (ahead * programs) at
// least.
//
// Left out: addresses, barriers, bank conflicts, and memory behind the second-level cache, which
// programs share in ways that a loop does not say. The number compares schedules of one loop, and
// says what bounds it; it is no forecast of a launch.

#ifndef TESSERA_MACHINE_SCHEDULECOST_H
#define TESSERA_MACHINE_SCHEDULECOST_H

#include "tessera/Machine/GPUMachine.h"

#include <cstdint>
#include <optional>

namespace tessera {

/// The resources of an SM that an iteration of one program uses.
struct IterationWork {
  int64_t dots = 0;        ///< cycles of tensor cores, or of threads that multiply and add
  int64_t arithmetic = 0;  ///< cycles of threads that compute with whole tiles
  int64_t loadedBytes = 0; ///< of tiles that come from memory

  bool isBoundByDots() const { return dots >= arithmetic; }
};

/// How iterations and programs overlap.
struct IterationOverlap {
  int64_t programs = 1; ///< that share an SM
  /// True if a program computes while a dot of its own is under way.
  bool hasDotBeside = false;
  /// Iterations from where a copy begins to where its tile is needed; none: copies are in time.
  std::optional<int64_t> ahead = std::nullopt;
  /// True if blocks of a cluster copy tiles to each other, and wait for each other's slots.
  bool isMulticast = false;
};

/// The resource that takes longest.
enum class ScheduleBound { Dots, Arithmetic, Copies, Latency };

struct ScheduleCost {
  int64_t cycles = 0; ///< of an SM for an iteration of one program
  ScheduleBound bound = ScheduleBound::Dots;
  int64_t copies = 0; ///< cycles in which the loaded bytes come

  static ScheduleCost get(const IterationWork &work, const IterationOverlap &overlap,
                          const GPUMachine &machine);
};

/// "its dots", "its arithmetic", "its copies" or "the latency of its copies", for remarks.
llvm::StringRef describe(ScheduleBound bound);

} // namespace tessera

#endif // TESSERA_MACHINE_SCHEDULECOST_H
