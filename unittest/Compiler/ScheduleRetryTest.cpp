// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScheduleRetry.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

ScheduleOutcome spills(int64_t bytes, int registers = 255, int warps = 4) {
  ScheduleOutcome outcome;
  outcome.spillBytes = bytes;
  outcome.registers = registers;
  outcome.numThreads = 32 * warps;
  return outcome;
}

ScheduleOutcome specialized(ScheduleOutcome outcome, int programs) {
  outcome.isSpecialized = true;
  outcome.programs = programs;
  return outcome;
}

TEST(ScheduleRetry, compilesOnceWhatFits) {
  ScheduleRetry retry(4, /*mayWiden=*/true);
  EXPECT_EQ(retry.current(), ScheduleLimits{4});
  EXPECT_FALSE(retry.next(spills(0)));
  EXPECT_FALSE(retry.next(specialized(spills(0, 232), 2)));
}

TEST(ScheduleRetry, givesUpProgramsThenSpecialisation) {
  ScheduleRetry retry(4, true);
  ASSERT_TRUE(retry.next(specialized(spills(72, 160), 3)));
  EXPECT_EQ(retry.current().mostPrograms, 2);
  ASSERT_TRUE(retry.next(specialized(spills(72, 232), 2)));
  EXPECT_EQ(retry.current().mostPrograms, 1);
  EXPECT_EQ(retry.describe(), "one program on an SM");
  // A few values are no reason to have no producer.
  EXPECT_FALSE(
      ScheduleRetry(retry).next(specialized(spills(RetryBudget::kFewSpilledBytes, 232), 1)));
  ASSERT_TRUE(retry.next(specialized(spills(RetryBudget::kFewSpilledBytes + 4, 232), 1)));
  EXPECT_EQ(retry.current().mostPrograms, 0);
  EXPECT_TRUE(retry.current().specialize);
  EXPECT_EQ(retry.describe(), "no producer warps");
  EXPECT_FALSE(ScheduleRetry(retry).next(spills(0)));
  ASSERT_TRUE(retry.next(spills(8)));
  EXPECT_FALSE(retry.current().specialize);
  EXPECT_EQ(retry.describe(), "no copies by TMA");
  // All registers are a thread's, and few are too few.
  EXPECT_FALSE(retry.next(spills(8)));
}

TEST(ScheduleRetry, givesUpHeldOperandsFirst) {
  auto hold = [](int64_t bytes, bool isSerialized) {
    ScheduleOutcome outcome = specialized(spills(bytes, 232, 8), 1);
    outcome.holdsOperands = true;
    outcome.isSerialized = isSerialized;
    return outcome;
  };
  EXPECT_FALSE(ScheduleRetry(8, true).next(hold(0, false)));
  ScheduleRetry retry(8, true);
  ASSERT_TRUE(retry.next(hold(4, false)));
  EXPECT_FALSE(retry.current().hold);
  EXPECT_EQ(retry.current().mostPrograms, 3);
  EXPECT_EQ(retry.describe(), "no operands held in registers");
  EXPECT_FALSE(ScheduleRetry(retry).next(specialized(spills(4, 232, 8), 1)));
  ASSERT_TRUE(retry.next(specialized(spills(72, 232, 8), 1)));
  EXPECT_EQ(retry.current().mostPrograms, 0);
  // Dots that wait for each other are worse than a few spills.
  ScheduleRetry other(8, true);
  ASSERT_TRUE(other.next(hold(0, true)));
  EXPECT_FALSE(other.current().hold);
  EXPECT_TRUE(specialized(spills(12, 232, 8), 1).isBetterThan(hold(0, true)));
  EXPECT_EQ(hold(0, true).describe(), "dots wait for each other, since a thread has 232 registers");
}

TEST(ScheduleRetry, shortensRingsThatDoNotFit) {
  ScheduleRetry retry(4, true);
  ScheduleOutcome outcome;
  outcome.isRefused = outcome.lacksShared = true;
  ASSERT_TRUE(retry.next(outcome));
  EXPECT_EQ(retry.current().mostStages, 2);
  EXPECT_EQ(retry.describe(), "two stages");
  ASSERT_TRUE(retry.next(outcome));
  EXPECT_EQ(retry.current().mostStages, 1);
  EXPECT_EQ(retry.describe(), "no prefetching");
  EXPECT_EQ(retry.current().numWarps, 4);
  EXPECT_FALSE(retry.next(outcome));
}

TEST(ScheduleRetry, leavesSpecialisedWarpsThatHaveAllRegisters) {
  ScheduleRetry retry(4, true);
  EXPECT_FALSE(retry.next(specialized(spills(72, 248), 1)));
}

TEST(ScheduleRetry, widensWhereMuchIsSpilled) {
  ScheduleRetry retry(4, true);
  EXPECT_FALSE(ScheduleRetry(retry).next(spills(RetryBudget::kMinSpilledBytes - 4)));
  ASSERT_TRUE(retry.next(spills(916)));
  EXPECT_EQ(retry.current(), ScheduleLimits{8});
  EXPECT_EQ(retry.describe(), "8 warps, not 4");
  // The search starts again with so many warps.
  ASSERT_TRUE(retry.next(specialized(spills(24, 168, 8), 1)));
  EXPECT_EQ(retry.current().mostPrograms, 0);
  EXPECT_EQ(retry.current().numWarps, 8);
}

ScheduleOutcome needs(int64_t registers) {
  ScheduleOutcome outcome;
  outcome.neededRegisters = registers;
  return outcome;
}

TEST(ScheduleRetry, skipsWarpsThatCannotDo) {
  ScheduleRetry one(1, true);
  ASSERT_TRUE(one.next(needs(2 * 255)));
  EXPECT_EQ(one.current().numWarps, 2);
  ScheduleRetry more(1, true);
  ASSERT_TRUE(more.next(needs(2 * 255 + 1)));
  EXPECT_EQ(more.current().numWarps, 4);
  ScheduleRetry most(4, true);
  ASSERT_TRUE(most.next(needs(100'000)));
  EXPECT_EQ(most.current().numWarps, RetryBudget::kMaxWarpsWithAllRegisters);
  // Spilled bytes do not predict the need, since a value may be spilled several times.
  ScheduleRetry spilled(4, true);
  ASSERT_TRUE(spilled.next(spills(100'000)));
  EXPECT_EQ(spilled.current().numWarps, 8);
}

TEST(ScheduleRetry, doesNotStopAtWarpsThatNobodyAskedFor) {
  ScheduleRetry retry(1, true);
  ASSERT_TRUE(retry.next(needs(500)));
  EXPECT_EQ(retry.current().numWarps, 2);
  ASSERT_TRUE(retry.next(spills(124, 255, 2)));
  EXPECT_EQ(retry.current().numWarps, 4);
}

TEST(ScheduleRetry, givesThreadsOfManyWarpsMoreRegisters) {
  ScheduleOutcome refused;
  refused.isRefused = true;
  ScheduleRetry retry(16, true);
  ASSERT_TRUE(retry.next(refused));
  EXPECT_FALSE(retry.current().skew);
  ASSERT_TRUE(retry.next(refused));
  EXPECT_EQ(retry.current(), ScheduleLimits{8});
  // No way back.
  EXPECT_FALSE(retry.next(spills(1772, 255, 8)));
  // Nor after more warps were tried.
  ScheduleRetry wider(8, true);
  ASSERT_TRUE(wider.next(spills(1772, 255, 8)));
  ASSERT_TRUE(wider.next(refused));
  EXPECT_FALSE(wider.next(refused));
}

TEST(ScheduleRetry, keepsWarpsThatAreAskedFor) {
  EXPECT_FALSE(ScheduleRetry(4, /*mayWiden=*/false).next(spills(1444)));
  EXPECT_FALSE(ScheduleRetry(RetryBudget::kMaxWarps, true).next(spills(1444)));
  EXPECT_FALSE(ScheduleRetry(32, true).next(spills(1444)));
}

TEST(ScheduleRetry, triesAnotherScheduleForWhatIsRefused) {
  ScheduleOutcome refused = specialized(spills(0, 232), 2);
  refused.isRefused = true;
  ScheduleRetry retry(4, true);
  ASSERT_TRUE(retry.next(refused));
  EXPECT_EQ(retry.current().mostPrograms, 1);
  EXPECT_TRUE(retry.current().specialize);
  ScheduleOutcome unknown;
  unknown.isRefused = true;
  ASSERT_TRUE(retry.next(unknown));
  EXPECT_FALSE(retry.current().skew);
  ASSERT_TRUE(retry.next(unknown));
  EXPECT_EQ(retry.current().numWarps, 8);
}

TEST(ScheduleRetry, ends) {
  for (bool isRefused : {false, true}) {
    ScheduleRetry retry(1, true);
    int attempts = 1;
    ScheduleOutcome outcome = specialized(spills(4000, 100, 1), 3);
    for (outcome.isRefused = isRefused; retry.next(outcome); ++attempts)
      if (outcome.programs > 0)
        --outcome.programs;
      else
        outcome.isSpecialized = false;
    EXPECT_LE(attempts, ScheduleRetry::kMaxAttempts);
  }
}

constexpr ClusterLimits kClusters = {8, 200'000};

TEST(ScheduleRetry, spreadsWhatACacheDoesNotHold) {
  // No clusters if they are not allowed, or if the cache holds the spills.
  EXPECT_FALSE(ScheduleRetry(16, true).next(spills(1708, 128, 16)));
  EXPECT_FALSE(ScheduleRetry(16, true, kClusters).next(spills(180, 128, 16)));
  // Half of what a thread needs, or an eighth of it, has registers in so many blocks.
  ScheduleRetry half(16, true, kClusters);
  ASSERT_TRUE(half.next(spills(512, 128, 16)));
  EXPECT_EQ(half.current(), (ScheduleLimits{16, 2}));
  EXPECT_EQ(half.describe(), "a cluster of 2 blocks");
  ScheduleRetry most(16, true, kClusters);
  ASSERT_TRUE(most.next(spills(100'000, 128, 16)));
  EXPECT_EQ(most.current().numBlocks, 8);
  EXPECT_FALSE(most.next(spills(10'000, 128, 16)));
  // Spilled values are not all live at once. So the first cluster is sized for half of them, and
  // later ones have twice the blocks.
  ScheduleRetry more(16, true, kClusters);
  ASSERT_TRUE(more.next(spills(1708, 128, 16)));
  EXPECT_EQ(more.current().numBlocks, 2);
  ASSERT_TRUE(more.next(spills(400, 128, 16)));
  EXPECT_EQ(more.current().numBlocks, 4);
}

TEST(ScheduleRetry, spreadsTheWarpsThatWereAskedFor) {
  ScheduleRetry retry(8, true, kClusters);
  ASSERT_TRUE(retry.next(spills(3324, 255, 8)));
  EXPECT_EQ(retry.current(), (ScheduleLimits{16, 1}));
  ASSERT_TRUE(retry.next(spills(1708, 128, 16)));
  EXPECT_EQ(retry.current(), (ScheduleLimits{8, 2}));
  // Those are widened in turn.
  ASSERT_TRUE(retry.next(spills(900, 255, 8)));
  EXPECT_EQ(retry.current(), (ScheduleLimits{16, 2}));
}

TEST(ScheduleRetry, choosesTheFirstClusterThatIsPredictedToFit) {
  // Held by a thread of four warps, and the cluster: fewest blocks, then fewest warps.
  struct Case {
    int64_t held;
    int warps, blocks;
  };
  for (auto [held, warps, blocks] : {Case{640, 8, 2}, Case{1026, 8, 4}, Case{2560, 8, 8}}) {
    ScheduleRetry retry(4, true, kClusters);
    ASSERT_TRUE(retry.next(needs(held)));
    EXPECT_EQ(retry.current(), (ScheduleLimits{warps, blocks}));
    EXPECT_EQ(retry.describe(),
              "a cluster of " + std::to_string(blocks) + " blocks with 8 warps, not 4");
    EXPECT_FALSE(retry.next(spills(0, 255, 8)));
  }
  // The warps that were asked for, if they do.
  ScheduleRetry asked(16, true, kClusters);
  ASSERT_TRUE(asked.next(needs(320)));
  EXPECT_EQ(asked.current(), (ScheduleLimits{16, 4}));
  EXPECT_EQ(asked.describe(), "a cluster of 4 blocks");
  // None fits: as many registers as there are.
  ScheduleRetry most(4, true, kClusters);
  ASSERT_TRUE(most.next(needs(100'000)));
  EXPECT_EQ(most.current(), (ScheduleLimits{8, 8}));
}

TEST(ScheduleRetry, triesFewerBlocksThatMightFit) {
  // The gradient of a norm: two blocks keep their rows in shared memory, one has no room for them.
  ClusterLimits clusters = kClusters;
  clusters.loadsInLoops = true;
  ScheduleRetry retry(8, true, clusters);
  ASSERT_TRUE(retry.next(needs(640)));
  EXPECT_EQ(retry.current(), (ScheduleLimits{8, 2}));
  // Without loops over tiles there is nothing that could wait there.
  ScheduleRetry once(8, true, kClusters);
  ASSERT_TRUE(once.next(needs(640)));
  EXPECT_EQ(once.current(), (ScheduleLimits{8, 4}));
  ScheduleRetry fits = retry, few = retry, spilled = retry, counted = retry, refused = retry;
  EXPECT_FALSE(fits.next(spills(0, 255, 8)));
  EXPECT_FALSE(few.next(spills(8, 255, 8)));
  // Otherwise the cluster follows that was predicted to fit, and after that no other.
  ASSERT_TRUE(spilled.next(spills(256, 255, 8)));
  EXPECT_EQ(spilled.current(), (ScheduleLimits{8, 4}));
  EXPECT_FALSE(spilled.next(spills(8, 255, 8)));
  ASSERT_TRUE(counted.next(needs(320)));
  EXPECT_EQ(counted.current(), (ScheduleLimits{8, 4}));
  ScheduleOutcome outcome = spills(0, 255, 8);
  outcome.isRefused = true;
  ASSERT_TRUE(refused.next(outcome));
  EXPECT_EQ(refused.current(), (ScheduleLimits{8, 4}));
}

TEST(ScheduleRetry, triesMoreWarpsBeforeBlocksThatExchangeOperands) {
  ClusterLimits clusters = kClusters;
  clusters.dotsInLoops = true;
  ScheduleRetry retry(8, true, clusters);
  ASSERT_TRUE(retry.next(needs(323)));
  EXPECT_EQ(retry.current(), ScheduleLimits{16});
  ScheduleRetry fits = retry, counted = retry;
  EXPECT_FALSE(fits.next(spills(0, 124, 16)));
  // A cluster follows if they do not do.
  ASSERT_TRUE(counted.next(needs(323)));
  EXPECT_EQ(counted.current().numBlocks, 4);
  // Without dots, or with a number of warps that must stay, the cluster comes at once.
  ScheduleRetry none(8, true, kClusters), fixed(8, false, clusters);
  ASSERT_TRUE(none.next(needs(400)));
  EXPECT_EQ(none.current(), (ScheduleLimits{8, 2}));
  ASSERT_TRUE(fixed.next(needs(323)));
  EXPECT_EQ(fixed.current().numBlocks, 2);
}

TEST(ScheduleRetry, predictsNoClusterForWhatACacheHolds) {
  ScheduleRetry retry(4, true, kClusters);
  ASSERT_TRUE(retry.next(needs(500)));
  EXPECT_EQ(retry.current(), ScheduleLimits{8});
}

TEST(ScheduleRetry, goesBackToOneBlockIfBlocksShareLittle) {
  ScheduleRetry retry(4, true, kClusters);
  ASSERT_TRUE(retry.next(needs(768)));
  EXPECT_EQ(retry.current(), (ScheduleLimits{8, 2}));
  ASSERT_TRUE(retry.next(needs(1000)));
  EXPECT_EQ(retry.current(), ScheduleLimits{8});
  ASSERT_TRUE(retry.next(needs(384)));
  EXPECT_EQ(retry.current(), ScheduleLimits{16});
  EXPECT_FALSE(retry.next(spills(4044, 128, 16)));
  // A prediction that is not quite met has more blocks.
  ScheduleRetry more(4, true, kClusters);
  ASSERT_TRUE(more.next(needs(768)));
  ASSERT_TRUE(more.next(needs(340)));
  EXPECT_EQ(more.current(), (ScheduleLimits{8, 4}));
}

TEST(ScheduleOutcome, isBetterWithLessSpilled) {
  EXPECT_TRUE(spills(0).isBetterThan(spills(8)));
  EXPECT_FALSE(spills(8).isBetterThan(spills(8)));
  EXPECT_FALSE(spills(0).isBetterThan(spills(0)));
  ScheduleOutcome refused = spills(0);
  refused.isRefused = true;
  EXPECT_TRUE(spills(4000).isBetterThan(refused));
  EXPECT_FALSE(refused.isBetterThan(spills(4000)));
  EXPECT_FALSE(refused.isBetterThan(refused));
}

TEST(ScheduleOutcome, isComparedWithWhatIsNeeded) {
  EXPECT_FALSE(needs(512).fits());
  EXPECT_TRUE(spills(680, 128, 16).isBetterThan(needs(512)));
  EXPECT_FALSE(spills(1028, 128, 16).isBetterThan(needs(512)));
  EXPECT_TRUE(needs(300).isBetterThan(needs(512)));
  EXPECT_FALSE(needs(512).isBetterThan(needs(512)));
  // Threads of many warps have fewer registers.
  ScheduleOutcome manyWarps = needs(192);
  manyWarps.registers = 128;
  EXPECT_TRUE(spills(0, 128, 16).isBetterThan(manyWarps));
  EXPECT_FALSE(spills(256, 128, 16).isBetterThan(manyWarps));
}

TEST(ScheduleOutcome, isNotBetterWithMoreBlocksUnlessMuchLessIsSpilled) {
  ScheduleOutcome cluster = spills(2712, 128, 16);
  cluster.numBlocks = 2;
  EXPECT_FALSE(cluster.isBetterThan(spills(3420, 128, 16)));
  EXPECT_TRUE(cluster.isBetterThan(spills(5424, 128, 16)));
  cluster.spillBytes = 0;
  EXPECT_TRUE(cluster.isBetterThan(spills(3420, 128, 16)));
}

TEST(ScheduleOutcome, isNotBetterWithMoreThreadsUnlessMuchLessIsSpilled) {
  EXPECT_TRUE(spills(0, 255, 8).isBetterThan(spills(400)));
  EXPECT_TRUE(spills(100, 255, 8).isBetterThan(spills(400)));
  EXPECT_FALSE(spills(150, 255, 8).isBetterThan(spills(400)));
}

} // namespace
