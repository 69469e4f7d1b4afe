// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is tried where a kernel for a GPU does not fit the registers that its schedule leaves it.
//
// A kernel whose tiles turn out to need more shared memory than there is has shorter rings, or
// none.
//
// Schedules are planned on tiles, with estimates of registers; ptxas has the last word. A kernel
// that it refuses, or of which it spills, is compiled again, with one choice less: first those
// that take registers from a thread for something else, one after the other, then the number of
// warps. A kernel of which more is spilled than the SM's first-level cache holds is then done by
// clusters of blocks, whose SMs have the registers of one several times over; what such blocks
// exchange costs more than spilling what the cache holds (notes/Notebook.md). The first schedule
// that fits is taken; if none does, the one that spills least.
//
// A kernel that holds far more than its threads' registers is not assembled. If a cluster is
// predicted to be necessary (RegisterNeed.h), the next schedule is the one with the fewest blocks
// and then the fewest warps that are predicted to fit. Where loops load tiles, blocks with smaller
// parts may have room for them in shared memory, and then hold less than predicted. So fewer blocks
// that might fit are tried before.

#ifndef TESSERA_LIB_COMPILER_SCHEDULERETRY_H
#define TESSERA_LIB_COMPILER_SCHEDULERETRY_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/RegisterNeed.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// What schedules may do.
struct ScheduleLimits {
  int numWarps = 4;
  int numBlocks = 1;        ///< of a cluster, that do a program
  int64_t mostPrograms = 3; ///< specialised ones, that share an SM
  bool specialize = true;
  bool skew = true; ///< dots in another iteration than their loop's
  /// Of a loop, whatever it or the options ask for; 1 is no copying ahead.
  int mostStages = 64;

  bool operator==(const ScheduleLimits &other) const {
    return numWarps == other.numWarps && numBlocks == other.numBlocks &&
           mostPrograms == other.mostPrograms && specialize == other.specialize &&
           skew == other.skew && mostStages == other.mostStages;
  }
};

/// What became of a kernel that was scheduled so.
struct ScheduleOutcome {
  bool isRefused = false;      ///< not even by spilling could it be assembled
  bool lacksShared = false;    ///< it is refused because its tiles do not fit into shared memory
  int64_t spillBytes = 0;      ///< of a thread
  int64_t neededRegisters = 0; ///< if not 0, ptxas was not asked: a thread holds so many
  int64_t registers = GPUMachine::kMaxRegisters; ///< that a thread of those that compute may have
  int64_t numThreads = 0;                        ///< of a block, that compute
  int numBlocks = 1;                             ///< of a cluster
  bool isSpecialized = false;
  int programs = 0; ///< that were to share an SM; 0 if that was left to ptxas

  bool fits() const { return !isRefused && spillBytes == 0 && neededRegisters == 0; }
  /// True if it is worth having in the place of `other`, which was tried earlier.
  bool isBetterThan(const ScheduleOutcome &other) const;
  /// "ptxas spills 72 bytes of a thread with 232 registers".
  std::string describe() const;
};

/// What of a GPU decides whether clusters are tried.
struct ClusterLimits {
  int mostBlocks = 1; ///< 1: the kernel or the GPU is not for clusters, or the user says how many
  int64_t cacheBytes = 0; ///< what the first-level cache of an SM holds
  /// Loops load tiles, which may wait in shared memory if the parts of a block are small enough.
  bool loadsInLoops = false;
};

/// The order in which schedules are tried, a pure function of what came out before.
class ScheduleRetry {
public:
  /// Compilations of a kernel at most, and warps that a program may be given.
  static constexpr int kMostAttempts = 6, kMostWarps = 16;
  /// With more warps a thread has fewer registers.
  static constexpr int kMostWarpsWithAllRegisters = 8;
  /// Bytes of a thread's that are spilled without more warps being tried: a quarter of its
  /// registers.
  static constexpr int64_t kFewSpilledBytes = 256;

  ScheduleRetry(int numWarps, bool mayWiden, ClusterLimits clusters = {})
      : clusters(clusters), wanted(numWarps), mayWiden(mayWiden) {
    limits.numWarps = numWarps;
  }

  const ScheduleLimits &current() const { return limits; }
  /// Goes on to what is to be tried after this came out; false if there is nothing.
  bool next(const ScheduleOutcome &outcome);
  /// True if more warps could be tried.
  bool canWiden() const { return mayWiden && 2 * limits.numWarps <= kMostWarps; }
  /// True if a cluster of twice the blocks is allowed.
  bool canSpread() const { return 2 * limits.numBlocks <= clusters.mostBlocks; }
  /// How the schedule differs from the one before, for remarks: "one program on an SM".
  const std::string &describe() const { return description; }

private:
  bool widen(int64_t neededRegisters);
  bool narrow();
  bool shorten();
  ScheduleLimits limited(int numWarps, int numBlocks) const;
  bool spread(const ScheduleOutcome &outcome);
  bool skip(int64_t neededRegisters);
  bool spreadUntilItFits(const RegisterNeed &need);
  bool choose(const ScheduleLimits &choice);

  ScheduleLimits limits;
  ClusterLimits clusters;
  int wanted;
  bool mayWiden;
  int attempts = 1;
  /// The schedule that a prediction rejected before ptxas assembled it. The search goes back to it.
  struct Prediction {
    ScheduleLimits limits;
    int64_t neededRegisters;
  };
  std::optional<Prediction> skipped;
  /// The cluster that is predicted to fit, while a smaller one that might fit is tried.
  std::optional<ScheduleLimits> predicted;
  std::string description = "the schedule that was planned";
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_SCHEDULERETRY_H
