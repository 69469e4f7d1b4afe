// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the schedule of a loop is expected to cost: cycles of an SM for an iteration of one program.
//
// An iteration asks three things of an SM that go on at the same time for different programs, and
// one after the other in a program that does not overlap them: dots of tensor cores, arithmetic of
// threads, and tiles by the way from the second-level cache. So many programs as share the SM need
// at least what the busiest of the three does; what the others do is hidden the better, the more
// programs there are (the balanced job bound of closed queueing networks; Zahorjan and others,
// "Balanced job bound analysis of queueing networks", 1982):
//
//     cycles = busiest + (sum of dots and arithmetic - the longer of them) / programs
//
// Worked example, 600 cycles of dots and 400 of arithmetic: 1000 with one program, 800 with two,
// 733 with three. A program that itself has a dot under way while it computes hides half as much
// again, as one and a half programs would: 867.
//
// Copies come in time or not. From where one begins to where its tile is needed are `ahead`
// iterations, which each program has for itself, and it takes the latency of memory. So an
// iteration takes latency / (ahead * programs) at least.
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

/// What an iteration of one program asks of an SM.
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

/// What takes longest.
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
