// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/KernelSkeleton.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace tessera;

namespace {

using Op = SkeletonValue::Op;

/// for (i = 0; i < argument 0; i += step) of 10 cycles and 4 instructions an iteration, and 100
/// cycles before it. `count` may be another leaf.
KernelSkeleton makeLoop(int64_t step, SkeletonValue count = {Op::Argument, 32, 0, {-1, -1, -1}}) {
  KernelSkeleton skeleton;
  skeleton.values = {
      {Op::Constant, 32, 0, {-1, -1, -1}},
      {Op::Constant, 32, step, {-1, -1, -1}},
      count,
      {Op::Phi, 32, 0, {-1, -1, -1}},
      {Op::Add, 32, 0, {3, 1, -1}},
      {Op::SLt, 1, 32, {4, 2, -1}},
  };
  skeleton.blocks.resize(3);
  SkeletonBlock &entry = skeleton.blocks[0], &loop = skeleton.blocks[1];
  entry.values = {0, 1, 2};
  entry.successors = {1};
  entry.latency = 100;
  loop.phis = {{3, {{0, 0}, {1, 4}}}};
  loop.values = {4, 5};
  loop.condition = 5;
  loop.successors = {1, 2};
  loop.guess = 0;
  loop.loop = SkeletonBlock::Loop::Guessed;
  loop.latency = 10;
  loop.work[Resource::Issue] = 4;
  loop.traffic[1] = {128, 0};
  loop.reads[1] = {128, 0, ArrayRead::kAll};
  return skeleton;
}

LaunchSizes getSizes(std::optional<int64_t> argument, int64_t threads = 32,
                     std::array<int64_t, 3> grid = {1, 1, 1}) {
  return {grid, threads, {argument}};
}

TEST(KernelSkeletonTest, LoopsRunAsOftenAsTheArgumentSays) {
  ProgramWork work = makeLoop(64).walk(getSizes(4096));
  EXPECT_EQ(work.use[Resource::Issue], 64 * 4);
  EXPECT_EQ(work.latency, 100 + 64 * 10);
  EXPECT_NEAR(work.visitsOfBusiest, 64, 1e-9);
  EXPECT_EQ(work.traffic[1].first, 64 * 128);
  EXPECT_TRUE(work.isCertain);
  // Each warp issues its own instructions; the program takes as long as one.
  work = makeLoop(64).walk(getSizes(4096, /*threads=*/128));
  EXPECT_EQ(work.use[Resource::Issue], 4 * 64 * 4);
  EXPECT_EQ(work.latency, 100 + 64 * 10);
}

TEST(KernelSkeletonTest, ProgramsOfTheGridDiffer) {
  // Program i has i iterations, at least one: of 0 to 9 that is 4.6 on average.
  KernelSkeleton triangle = makeLoop(1, {Op::ProgramId, 32, 0, {-1, -1, -1}});
  ProgramWork work = triangle.walk(getSizes(0, 32, {10, 1, 1}));
  EXPECT_NEAR(work.use[Resource::Issue], 4.6 * 4, 1e-9);
  EXPECT_NEAR(work.longest, 100 + 9 * 10, 1e-9);
  // A walk samples a large grid.
  work = triangle.walk(getSizes(0, 32, {1000, 1, 1}));
  EXPECT_NEAR(work.use[Resource::Issue], 500 * 4, 20);
}

TEST(KernelSkeletonTest, UnknownLoopsAreGuessed) {
  ProgramWork work = makeLoop(1).walk(getSizes(std::nullopt));
  EXPECT_FALSE(work.isCertain);
  EXPECT_EQ(work.use[Resource::Issue], KernelSkeleton::kGuessedIterations * 4);
}

TEST(KernelSkeletonTest, UnknownLoopsReadArraysOnce) {
  // An iteration of a warp reads 128 bytes of array 1. Ten programs of two warps share it.
  LaunchSizes launch = getSizes(std::nullopt, 64, {10, 1, 1});
  launch.arrayBytes = {-1, 128 * 2 * 10 * 50};
  ProgramWork work = makeLoop(1).walk(launch);
  EXPECT_FALSE(work.isCertain);
  EXPECT_DOUBLE_EQ(work.traffic[1].first, 128 * 2 * 50);
  EXPECT_DOUBLE_EQ(work.visits[1], 2 * 50);
  // An array of no known size says nothing, and no array makes a loop endless.
  launch.arrayBytes = {-1, -1};
  EXPECT_DOUBLE_EQ(makeLoop(1).walk(launch).visits[1], 2 * KernelSkeleton::kGuessedIterations);
  launch.arrayBytes = {-1, int64_t(1) << 60};
  EXPECT_DOUBLE_EQ(makeLoop(1).walk(launch).visits[1], 2 * KernelSkeleton::kMaxGuessedIterations);
  launch.arrayBytes = {-1, 0};
  EXPECT_DOUBLE_EQ(makeLoop(1).walk(launch).visits[1], 2 * KernelSkeleton::kGuessedIterations);
  // A loop whose end is known is not guessed.
  launch.arguments = {3};
  EXPECT_DOUBLE_EQ(makeLoop(1).walk(launch).visits[1], 2 * 3);
}

TEST(KernelSkeletonTest, ProgramsAndWarpsShareWhatTheyRead) {
  // 6 columns of programs read the same rows, of which 10 programs have 50 iterations.
  KernelSkeleton skeleton = makeLoop(1);
  ArrayRead &read = skeleton.blocks[1].reads[1];
  LaunchSizes launch = getSizes(std::nullopt, 64, {10, 6, 1});
  launch.arrayBytes = {-1, 128 * 2 * 10 * 50};
  read.axes = 1 | ArrayRead::kThreads;
  EXPECT_DOUBLE_EQ(skeleton.walk(launch).visits[1], 2 * 50);
  read.axes = 2 | ArrayRead::kThreads;
  EXPECT_DOUBLE_EQ(skeleton.walk(launch).visits[1], 2 * std::round(50 * 10 / 6.0));
  // Both warps read the same: that is half as much for an iteration.
  read = {0, 128, 1};
  EXPECT_DOUBLE_EQ(skeleton.walk(launch).visits[1], 2 * 100);
}

TEST(KernelSkeletonTest, RemaindersRunOnce) {
  KernelSkeleton skeleton = makeLoop(1);
  skeleton.blocks[1].loop = SkeletonBlock::Loop::Remainder;
  ProgramWork work = skeleton.walk(getSizes(std::nullopt));
  EXPECT_FALSE(work.isCertain);
  EXPECT_EQ(work.visits[1], 1);
  EXPECT_EQ(skeleton.walk(getSizes(3)).visits[1], 3); // its end is known
}

TEST(KernelSkeletonTest, SecondLoopsReadAgain) {
  // 10 programs have 50 iterations each, and a second block reads as much.
  KernelSkeleton skeleton = makeLoop(1);
  skeleton.blocks[2].traffic[1] = {128 * 50, 0};
  LaunchSizes launch = getSizes(50, 32, {10, 1, 1});
  launch.arrayBytes = {-1, 128 * 50 * 10};
  EXPECT_DOUBLE_EQ(skeleton.walk(launch).reread[1], 128 * 50);
  // Programs that share an array read it more often than once in each loop.
  launch.arrayBytes[1] /= 2;
  EXPECT_TRUE(skeleton.walk(launch).reread.empty());
  // Last tiles, most of which are beyond the end, are no second loop.
  launch.arrayBytes[1] = 128 * 50 * 10;
  skeleton.blocks[2].traffic[1] = {128, 0};
  EXPECT_TRUE(skeleton.walk(launch).reread.empty());
}

TEST(KernelSkeletonTest, AccessesOfNoLaneLookNothingUp) {
  // Each thread has one number of an iteration: i + thread < argument 0. There are 588
  // numbers in tiles of 512. The second iteration of 16 warps has 76, which are in three warps.
  KernelSkeleton skeleton = makeLoop(512);
  skeleton.values.push_back({Op::ThreadId, 32, 0, {-1, -1, -1}});
  skeleton.values.push_back({Op::Add, 32, 0, {3, 6, -1}});
  skeleton.values.push_back({Op::SLt, 1, 32, {7, 2, -1}});
  skeleton.blocks[0].values.push_back(6);
  skeleton.blocks[1].values.insert(skeleton.blocks[1].values.end(), {7, 8});
  skeleton.blocks[1].work[Resource::Global] = 1;
  skeleton.blocks[1].masked = {{{8}, {}, {{1, {128, 0}}}}};
  skeleton.blocks[1].masked[0].use[Resource::Global] = 1;
  ProgramWork work = skeleton.walk(getSizes(588, /*threads=*/512));
  EXPECT_EQ(work.use[Resource::Global], 16 + 3);
  EXPECT_EQ(work.traffic[1].first, (16 + 3) * 128);
  EXPECT_EQ(work.largest[1], (16 + 3) * 128);
  EXPECT_EQ(work.use[Resource::Issue], 2 * 16 * 4); // instructions issue all the same
  // A mask that is not known masks nothing off.
  skeleton.values[8].op = Op::Unknown;
  EXPECT_EQ(skeleton.walk(getSizes(588, 512)).use[Resource::Global], 2 * 16);
}

TEST(KernelSkeletonTest, OuterUnknownLoopsAreNotScaledAgain) {
  // An outer loop around block 1, of which nothing is known either.
  KernelSkeleton skeleton = makeLoop(1);
  skeleton.blocks[1].successors = {1, 2};
  skeleton.blocks.push_back({});
  skeleton.blocks[2].successors = {1, 3};
  skeleton.blocks[2].loop = SkeletonBlock::Loop::Guessed;
  LaunchSizes launch = getSizes(std::nullopt, 32, {10, 1, 1});
  launch.arrayBytes = {-1, 128 * 10 * KernelSkeleton::kGuessedIterations * 5};
  ProgramWork work = skeleton.walk(launch);
  EXPECT_DOUBLE_EQ(work.visits[2], KernelSkeleton::kGuessedIterations);
  EXPECT_DOUBLE_EQ(work.visits[1], KernelSkeleton::kGuessedIterations * 5);
}

TEST(KernelSkeletonTest, ProgramsThatStoreMoreThanThereIsReturnEarly) {
  ProgramWork work;
  work.stored = {{-1, 1e9}, {0, 4096}, {2, 64}};
  std::vector<int64_t> arrayBytes = {100 * 4096, -1, -1};
  EXPECT_EQ(work.getActivePart(400, arrayBytes), 1); // nothing was guessed
  work.isCertain = false;
  EXPECT_EQ(work.getActivePart(400, arrayBytes), 0.25);
  EXPECT_EQ(work.getActivePart(50, arrayBytes), 1);
  EXPECT_EQ(work.getActivePart(400, {}), 1);
  // Eight warps store the same 64 bytes for each program to array 2.
  EXPECT_EQ(work.getActivePart(400, {100 * 4096, -1, 100 * 8}), 0.25);
  // Arrays without elements say nothing.
  EXPECT_EQ(work.getActivePart(400, {0, 0, 0}), 1);
}

TEST(KernelSkeletonTest, EndlessLoopsEnd) {
  ProgramWork work = makeLoop(0).walk(getSizes(1));
  EXPECT_FALSE(work.isCertain);
  EXPECT_LE(work.use[Resource::Issue], KernelSkeleton::kMaxVisits * 4);
}

TEST(KernelSkeletonTest, LoadsOfTheNextIterationOverlap) {
  KernelSkeleton skeleton = makeLoop(1);
  skeleton.blocks[1].pending = 500;
  ProgramWork early = skeleton.walk(getSizes(8));
  EXPECT_EQ(early.latency, 100 + 7 * 10 + 500); // no warp waits before the end
  skeleton.blocks[1].waitsForPending = true;
  EXPECT_EQ(skeleton.walk(getSizes(8)).latency, 100 + 8 * 500);
}

TEST(KernelSkeletonTest, SwitchesOfWarps) {
  KernelSkeleton skeleton;
  skeleton.values = {{Op::ThreadId, 32, 0, {-1, -1, -1}},
                     {Op::Constant, 32, 5, {-1, -1, -1}},
                     {Op::LShr, 32, 0, {0, 1, -1}}};
  skeleton.blocks.resize(4);
  skeleton.blocks[0].values = {0, 1, 2};
  skeleton.blocks[0].condition = 2;
  skeleton.blocks[0].successors = {1, 2, 3};
  skeleton.blocks[0].cases = {1, 3};
  for (unsigned i = 1; i < 4; ++i)
    skeleton.blocks[i].work[Resource::Issue] = std::pow(10, i);
  // Warps 0 and 2, 1, 3.
  EXPECT_EQ(skeleton.walk({{1, 1, 1}, 128, {}}).use[Resource::Issue], 10 + 10 + 100 + 1000);
}

TEST(KernelSkeletonTest, TextIsReadBack) {
  KernelSkeleton skeleton = makeLoop(64);
  skeleton.usesMbarriers = true;
  skeleton.blocks[1].pending = 12.5;
  skeleton.blocks[0].guarded = 1;
  skeleton.blocks[1].stored = {{-1, 32}, {2, 512}};
  skeleton.blocks[1].reads = {{-1, {32, 0, 9}}, {2, {0, 8, 1}}};
  skeleton.blocks[1].masked = {{{5}, {}, {{1, {64, 32}}}}};
  skeleton.blocks[1].masked[0].use[Resource::Requests] = 4;
  std::string text = skeleton.print();
  std::optional<KernelSkeleton> read = KernelSkeleton::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->print(), text);
  EXPECT_EQ(read->walk(getSizes(640)).latency, skeleton.walk(getSizes(640)).latency);
  EXPECT_EQ(read->walk(getSizes(640)).stored[2], 10 * 512);
  EXPECT_TRUE(read->walk(getSizes(640)).usesMbarriers);
  EXPECT_EQ(read->blocks[1].reads[2].shared, 8);
  EXPECT_EQ(read->blocks[1].reads[-1].axes, 9u);
  ASSERT_EQ(read->blocks[1].masked.size(), 1u);
  EXPECT_EQ(read->blocks[1].masked[0].masks, std::vector<int>{5});
  EXPECT_EQ(read->blocks[1].masked[0].use[Resource::Requests], 4);
  EXPECT_EQ(read->blocks[1].masked[0].traffic[1].second, 32);
  for (llvm::StringRef bad : {"", "[]", "[[],[]]", "{}", "[[],[[]]]", "[[[99,32,0,-1,-1,-1]],[]]"})
    EXPECT_FALSE(KernelSkeleton::parse(bad)) << bad.str();
  // A value that is none of the list, and a block.
  size_t place = text.find("[4,32,0,") == std::string::npos ? text.find(",3,1,-1]") : 0;
  ASSERT_NE(place, std::string::npos);
  std::string damaged = text;
  damaged.replace(text.find(",3,1,-1]"), 8, ",9,1,-1]");
  EXPECT_FALSE(KernelSkeleton::parse(damaged));
}

} // namespace
