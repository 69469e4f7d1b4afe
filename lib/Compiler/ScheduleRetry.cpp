// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScheduleRetry.h"

#include <algorithm>
#include <utility>

using namespace tessera;

bool ScheduleOutcome::isBetterThan(const ScheduleOutcome &other) const {
  if (isRefused || other.isRefused)
    return !isRefused;
  if (isSerialized || other.isSerialized)
    return !isSerialized;
  if (neededRegisters != 0)
    return neededRegisters < other.neededRegisters;
  // The predicted need is a lower bound, so it can be compared with actual spills.
  if (other.neededRegisters != 0)
    return spillBytes < GPUMachine::kRegisterBytes * (other.neededRegisters - other.registers);
  // More threads have a cost, and so do blocks that wait for each other.
  if (numThreads > other.numThreads || numBlocks > other.numBlocks)
    return 2 * spillBytes * numThreads <= other.spillBytes * other.numThreads &&
           other.spillBytes != 0;
  return spillBytes * numThreads < other.spillBytes * other.numThreads;
}

std::string ScheduleOutcome::describe() const {
  std::string have = std::to_string(registers) + " registers";
  if (lacksShared)
    return "its tiles do not fit into shared memory";
  if (isRefused)
    return "an instruction needs more than a thread's " + have;
  if (neededRegisters != 0)
    return "a thread needs " + std::to_string(neededRegisters) + " and has " + have;
  if (isSerialized)
    return "dots wait for each other, since a thread has " + have;
  return "a thread with " + have + " spills " + std::to_string(spillBytes) + " bytes";
}

/// Limits that allow every feature again, except rings that do not fit.
ScheduleLimits ScheduleRetry::limited(int numWarps, int numBlocks) const {
  ScheduleLimits all{numWarps, numBlocks};
  all.mostStages = limits.mostStages;
  return all;
}

/// Doubles the warps, which halves a thread's registers at best.
bool ScheduleRetry::widen(int64_t neededRegisters) {
  if (!canWiden())
    return false;
  int numWarps = 2 * limits.numWarps;
  while (2 * numWarps <= RetryBudget::kMaxWarpsWithAllRegisters &&
         neededRegisters * limits.numWarps > GPUMachine::kMaxRegisters * numWarps)
    numWarps *= 2;
  limits = limited(numWarps, limits.numBlocks);
  description = std::to_string(numWarps) + " warps, not " + std::to_string(wanted);
  return true;
}

/// Reduces the warps. A thread then has more registers, and ptxas can at least spill.
bool ScheduleRetry::narrow() {
  if (!mayWiden || limits.numWarps <= RetryBudget::kMaxWarpsWithAllRegisters ||
      limits.numWarps > wanted)
    return false;
  mayWiden = false;
  limits = limited(RetryBudget::kMaxWarpsWithAllRegisters, limits.numBlocks);
  description = std::to_string(limits.numWarps) + " warps, not " + std::to_string(wanted);
  return true;
}

/// Doubles the blocks of a cluster. Each block has a part of every tile, and all requested warps.
bool ScheduleRetry::spread(const ScheduleOutcome &outcome) {
  int64_t held = GPUMachine::kRegisterBytes * outcome.registers;
  if (!canSpread() || outcome.spillBytes * outcome.numThreads <= clusters.cacheBytes)
    return false;
  int numBlocks = 2 * limits.numBlocks;
  // About half of the spilled values are duplicates, or move to shared memory once the rest fits.
  while (2 * numBlocks <= clusters.mostBlocks &&
         outcome.spillBytes + held >= 2 * held * (2 * numBlocks / limits.numBlocks))
    numBlocks *= 2;
  limits = limited(std::min(wanted, limits.numWarps), numBlocks);
  description = "a cluster of " + std::to_string(numBlocks) + " blocks";
  return true;
}

bool ScheduleRetry::choose(const ScheduleLimits &choice) {
  limits = choice;
  description = "a cluster of " + std::to_string(choice.numBlocks) + " blocks";
  if (choice.numWarps != wanted)
    description +=
        " with " + std::to_string(choice.numWarps) + " warps, not " + std::to_string(wanted);
  return true;
}

/// Chooses the fewest blocks, and then the fewest warps, that are predicted to fit. If none fit,
/// chooses all blocks, with as many warps as can have all registers.
/// If a choice with fewer blocks might fit, it is tried before.
bool ScheduleRetry::spreadUntilItFits(const RegisterNeed &need) {
  int numWarps = std::min(wanted, limits.numWarps);
  int mostWarps = mayWiden ? std::max<int>(RetryBudget::kMaxWarps, numWarps) : numWarps;
  std::optional<ScheduleLimits> possible;
  predicted.reset();
  for (int blocks = 2 * limits.numBlocks; blocks <= clusters.mostBlocks && !predicted; blocks *= 2)
    for (int warps = numWarps; warps <= mostWarps && !predicted; warps *= 2) {
      if (need.fits(warps, blocks))
        predicted = limited(warps, blocks);
      else if (clusters.loadsInLoops && !possible && need.mightFit(warps, blocks))
        possible = limited(warps, blocks);
    }
  if (!predicted) {
    while (mayWiden && 2 * numWarps <= RetryBudget::kMaxWarpsWithAllRegisters)
      numWarps *= 2;
    predicted = limited(numWarps, clusters.mostBlocks);
  }
  // With as many blocks, the choice that is predicted to fit is the better one.
  if (possible && possible->numBlocks < predicted->numBlocks)
    return choose(*possible);
  return choose(*std::exchange(predicted, std::nullopt));
}

/// Chooses the next schedule after one that was not assembled, because threads hold too many
/// values.
bool ScheduleRetry::skip(int64_t neededRegisters) {
  RegisterNeed need(neededRegisters, limits.numWarps, limits.numBlocks);
  if (skipped) {
    RegisterNeed before(skipped->neededRegisters, skipped->limits.numWarps,
                        skipped->limits.numBlocks);
    // If blocks hold much more than predicted, they do not share what the kernel holds.
    if (neededRegisters > 2 * before.getHeld(limits.numWarps, limits.numBlocks)) {
      clusters.mostBlocks = 1;
      limits = skipped->limits;
      return widen(skipped->neededRegisters);
    }
  }
  int widest = limits.numWarps;
  while (mayWiden && 2 * widest <= RetryBudget::kMaxWarps)
    widest *= 2;
  bool widensFirst = clusters.dotsInLoops && canWiden();
  if (!canSpread() || widensFirst ||
      need.getSpilledBytes(widest, limits.numBlocks) <= clusters.cacheBytes)
    return widen(neededRegisters);
  skipped = {limits, neededRegisters};
  return spreadUntilItFits(need);
}

/// Shortens the rings. Planning cannot, since scratch memory of exchanges is known only when tiles
/// have layouts.
bool ScheduleRetry::shorten() {
  if (limits.mostStages == 1)
    return false;
  limits.mostStages = limits.mostStages > 2 ? 2 : 1;
  description = limits.mostStages == 2 ? "two stages" : "no prefetching";
  return true;
}

bool ScheduleRetry::next(const ScheduleOutcome &outcome) {
  if (outcome.fits() || attempts == kMaxAttempts)
    return false;
  if (outcome.holdsOperands && !outcome.isRefused) {
    ++attempts;
    limits.hold = false;
    description = "no operands held in registers";
    return true;
  }
  if (outcome.isSpecialized && !outcome.isRefused && !outcome.lacksShared &&
      outcome.neededRegisters == 0 && outcome.spillBytes <= RetryBudget::kFewSpilledBytes)
    return false;
  ++attempts;
  if (outcome.lacksShared)
    return shorten();
  if (outcome.neededRegisters != 0)
    return skip(outcome.neededRegisters);
  if (predicted && (outcome.isRefused || outcome.spillBytes >= RetryBudget::kMinSpilledBytes))
    return choose(*std::exchange(predicted, std::nullopt));
  // A thread's registers are rounded down to a step. If it has the maximum, the schedule does not
  // limit it.
  bool isLimited = outcome.isRefused || outcome.registers < GPUMachine::kMaxAllocatedRegisters;
  if (outcome.isSpecialized && isLimited) {
    if (outcome.programs > 1) {
      limits.mostPrograms = outcome.programs - 1;
      description = limits.mostPrograms == 1
                        ? "one program on an SM"
                        : std::to_string(limits.mostPrograms) + " programs on an SM";
      return true;
    }
    limits.mostPrograms = 0;
    description = "no producer warps";
    return true;
  }
  // Without a producer, the program's first thread copied by TMA, if it could.
  if (limits.mostPrograms == 0 && limits.specialize) {
    limits.specialize = false;
    description = "no copies by TMA";
    return true;
  }
  if (outcome.isRefused && limits.skew) {
    limits.skew = false;
    description = "no dot deferred to another iteration";
    return true;
  }
  bool isMuch = outcome.isRefused || outcome.spillBytes >= RetryBudget::kMinSpilledBytes ||
                (limits.numWarps > wanted && outcome.spillBytes != 0);
  return (isMuch && widen(/*neededRegisters=*/0)) || (outcome.isRefused && narrow()) ||
         spread(outcome);
}
