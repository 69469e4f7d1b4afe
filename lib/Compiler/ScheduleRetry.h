// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The next schedule to try if a kernel for a GPU exceeds its shared memory or registers.
//
// If the kernel's tiles exceed shared memory, its rings get shorter, and then are removed.
//
// Schedules are planned on tiles, with estimates of registers; only ptxas knows the true number. If
// ptxas refuses a kernel or spills its registers, the kernel is compiled again without one feature.
// First the features that take registers from a thread are dropped, one after the other: operands
// that it holds over a loop, then programs beside it, then producer warps. Then the
// number of warps changes. If a kernel spills more than the L1 cache of an SM holds, clusters of
// blocks divide its programs, which multiplies the registers. Below that, spilling costs less than
// the exchanges between such blocks (notes/Notebook.md). The first schedule that fits is used; if
// none fits, the one that spills least.
//
// If a kernel's live values far exceed its threads' registers, it is not assembled. If a cluster is
// predicted to be necessary (RegisterNeed.h), the next schedule has the fewest blocks, and then the
// fewest warps, that are predicted to fit.
// If loops load tiles, a smaller part of a tile may fit into shared memory, and then blocks hold
// less than predicted. So fewer blocks that might fit are tried before.
//
// If loops have dots, more warps are tried before a cluster in any case.

#ifndef TESSERA_LIB_COMPILER_SCHEDULERETRY_H
#define TESSERA_LIB_COMPILER_SCHEDULERETRY_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/RegisterNeed.h"
#include "tessera/Machine/RetryBudget.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Limits of a schedule.
struct ScheduleLimits {
  int numWarps = 4;
  int numBlocks = 1;        ///< of a cluster, that do a program
  int64_t mostPrograms = 3; ///< with a producer, that share an SM; 0: without producers
  bool specialize = true;   ///< TMA may copy tiles
  bool skew = true;         ///< dots in another iteration than their loop's
  bool hold = true;         ///< operands in registers over a loop
  /// The most stages of a loop, which overrides the loop and the options; 1 turns prefetching off.
  int mostStages = RetryBudget::kMaxStages;

  bool operator==(const ScheduleLimits &other) const {
    return numWarps == other.numWarps && numBlocks == other.numBlocks &&
           mostPrograms == other.mostPrograms && specialize == other.specialize &&
           skew == other.skew && hold == other.hold && mostStages == other.mostStages;
  }
};

/// The outcome of a compilation with a schedule.
struct ScheduleOutcome {
  bool isRefused = false;      ///< not even by spilling could it be assembled
  bool lacksShared = false;    ///< it is refused because its tiles do not fit into shared memory
  int64_t spillBytes = 0;      ///< of a thread
  int64_t neededRegisters = 0; ///< if not 0, ptxas was not asked: a thread holds so many
  int64_t registers = GPUMachine::kMaxRegisters; ///< that a thread of those that compute may have
  int64_t numThreads = 0;                        ///< of a block, that compute
  int numBlocks = 1;                             ///< of a cluster
  bool isSpecialized = false;
  bool holdsOperands = false; ///< of dots, in registers over a loop
  /// With held operands: ptxas lets each dot wait for the one before, for want of registers.
  bool isSerialized = false;
  int programs = 0; ///< that were to share an SM; 0 if that was left to ptxas

  bool fits() const {
    return !isRefused && !isSerialized && spillBytes == 0 && neededRegisters == 0;
  }
  /// True if this schedule should replace `other`, which was tried earlier.
  bool isBetterThan(const ScheduleOutcome &other) const;
  /// "ptxas spills 72 bytes of a thread with 232 registers".
  std::string describe() const;
};

/// The properties of a kernel and its GPU that decide if clusters are tried.
struct ClusterLimits {
  int mostBlocks = 1; ///< 1: the kernel or the GPU is not for clusters, or the user says how many
  int64_t cacheBytes = 0; ///< what the first-level cache of an SM holds
  /// Loops load tiles, which may wait in shared memory if the parts of a block are small enough.
  bool loadsInLoops = false;
  /// Loops have dots, of whose operands each block loads a part. So blocks exchange parts and wait
  /// for each other in each iteration. With more warps instead, they do not.
  bool dotsInLoops = false;
};

/// The order in which schedules are tried, a pure function of earlier outcomes.
class ScheduleRetry {
public:
  /// The most compilations of a kernel.
  static constexpr int kMaxAttempts = 7;

  ScheduleRetry(int numWarps, bool mayWiden, ClusterLimits clusters = {})
      : clusters(clusters), wanted(numWarps), mayWiden(mayWiden) {
    limits.numWarps = numWarps;
  }

  const ScheduleLimits &current() const { return limits; }
  /// Chooses the next schedule after this outcome; false if there is none.
  bool next(const ScheduleOutcome &outcome);
  /// True if more warps could be tried.
  bool canWiden() const { return mayWiden && 2 * limits.numWarps <= RetryBudget::kMaxWarps; }
  /// True if a cluster of twice the blocks is allowed.
  bool canSpread() const { return 2 * limits.numBlocks <= clusters.mostBlocks; }
  /// The schedule's difference from the previous one, for remarks: "one program on an SM".
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
