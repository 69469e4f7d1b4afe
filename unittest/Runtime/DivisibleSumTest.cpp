// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Into how many parts a launch divides a sum, or tiles.

#include "tessera/Runtime/CUDA/DivisibleSum.h"

#include "gtest/gtest.h"

#include <cstdint>
#include <utility>

using namespace tessera::cuda;

namespace {

/// 512 cycles for 128 steps of K; 1,500 and more to bring together what blocks have.
DivisibleSum makeSum() {
  DivisibleSum sum;
  sum.step = 128;
  sum.iterationCycles = sum.busyCycles = 512;
  sum.meetCycles = 800;
  sum.waitCycles = 200;
  sum.exchangeCycles = 1000;
  return sum;
}

const ClusterRoom kRoom = ClusterRoom::guess(132);

int chooseBlocks(int64_t end, int64_t programs, const ClusterRoom &room) {
  Division division = makeSum().choose(end, programs, room);
  EXPECT_FALSE(division.ofTiles);
  return division.blocks;
}

TEST(DivisibleSum, FillsTheGPU) {
  EXPECT_EQ(chooseBlocks(4096, 64, kRoom), 2);
  EXPECT_EQ(chooseBlocks(1 << 16, 32, kRoom), 4);
  EXPECT_EQ(chooseBlocks(1 << 16, 16, kRoom), 8);
  EXPECT_EQ(chooseBlocks(1 << 16, 1, kRoom), 8);
}

TEST(DivisibleSum, IsNotWorthIt) {
  // Programs enough, or nearly.
  for (int64_t programs : {67, 128, 132, 1000})
    EXPECT_EQ(chooseBlocks(1 << 16, programs, kRoom), 1) << programs;
  // Iterations too few.
  for (int64_t end : {-1, 0, 1, 128, 256, 512})
    EXPECT_EQ(chooseBlocks(end, 8, kRoom), 1) << end;
}

/// 33 clusters of 4 blocks are as many SMs as there are, but not in groups of them.
TEST(DivisibleSum, LeavesWhatClustersCannotUse) {
  EXPECT_EQ(chooseBlocks(1 << 16, 32, kRoom), 4);
  EXPECT_EQ(chooseBlocks(1 << 16, 33, kRoom), 2);
  EXPECT_EQ(chooseBlocks(1 << 16, 17, kRoom), 4);
  EXPECT_EQ(chooseBlocks(1 << 16, 66, kRoom), 2);
}

/// Where groups of SMs are unequal, fewer clusters run at once than SMs would do for.
TEST(DivisibleSum, AsksHowManyClustersRunAtOnce) {
  ClusterRoom room = kRoom;
  room.clusters = {66, 30, 13};
  EXPECT_EQ(chooseBlocks(1 << 16, 32, room), 2);
  EXPECT_EQ(chooseBlocks(1 << 16, 30, room), 4);
  EXPECT_EQ(chooseBlocks(1 << 16, 14, room), 4);
  EXPECT_EQ(chooseBlocks(1 << 16, 13, room), 8);
  // Two blocks on an SM are not twice as fast.
  room.clusters = {132, 64, 32};
  EXPECT_EQ(chooseBlocks(1 << 16, 67, room), 1);
  EXPECT_EQ(chooseBlocks(1 << 16, 34, room), 2);
  // No cluster fits.
  room.clusters = {0, 0, 0};
  EXPECT_EQ(chooseBlocks(1 << 16, 1, room), 1);
}

/// Two blocks that have half of each tile exchange nothing; but they may take longer than half of
/// an iteration, and more blocks than two have less to do.
TEST(DivisibleSum, DividesTilesInstead) {
  DivisibleSum sum = makeSum();
  auto choose = [&](int64_t end, int64_t programs) {
    Division division = sum.choose(end, programs, kRoom);
    return std::pair(division.blocks, division.ofTiles);
  };
  sum.pairCycles = 256;
  EXPECT_EQ(choose(4096, 64), std::pair(2, true));
  EXPECT_EQ(choose(1 << 16, 66), std::pair(2, true));
  EXPECT_EQ(choose(1 << 16, 32), std::pair(4, false));
  EXPECT_EQ(choose(1 << 16, 67), std::pair(1, false));
  // A single iteration has tiles, and no sum to be divided.
  sum.step = 4096;
  sum.iterationCycles = sum.busyCycles = 16384;
  sum.pairCycles = 8192;
  EXPECT_EQ(choose(4096, 64), std::pair(2, true));
  sum = makeSum();
  sum.pairCycles = 410;
  EXPECT_EQ(choose(4096, 64), std::pair(2, false));
  // Where all SMs load, an iteration takes longer than half of one for which half of them do.
  sum.busyCycles = 830;
  EXPECT_EQ(choose(4096, 64), std::pair(2, true));
  sum.pairCycles = 500;
  EXPECT_EQ(choose(4096, 64), std::pair(1, false));
  sum = makeSum();
  // Clusters of two alone fit, or none.
  ClusterRoom room = kRoom;
  room.clusters = {66, 0, 0};
  sum.pairCycles = 256;
  EXPECT_TRUE(sum.choose(1 << 16, 16, room).ofTiles);
  room.clusters = {0, 0, 0};
  EXPECT_EQ(sum.choose(1 << 16, 16, room).blocks, 1);
}

TEST(DivisibleSum, TakesAnyNumbers) {
  for (int64_t end : {INT64_MIN, int64_t(-1), int64_t(0), int64_t(INT32_MAX), INT64_MAX})
    for (int64_t lower : {int64_t(0), int64_t(5)})
      for (int64_t programs : {int64_t(0), int64_t(1), int64_t(1) << 30}) {
        DivisibleSum sum = makeSum();
        sum.lower = lower;
        for (int64_t pair : {int64_t(-1), int64_t(0), int64_t(1), INT64_MAX}) {
          sum.pairCycles = pair;
          Division division = sum.choose(end, programs, kRoom);
          int blocks = division.blocks;
          EXPECT_TRUE(blocks == 1 || blocks == 2 || blocks == 4 || blocks == 8);
          EXPECT_TRUE(!division.ofTiles || (blocks == 2 && pair == 1));
        }
      }
  EXPECT_EQ(DivisibleSum().choose(4096, 8, kRoom).blocks, 1);
}

} // namespace
