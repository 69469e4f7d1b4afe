// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Into how many parts a launch divides a sum.

#include "tessera/Runtime/CUDA/DivisibleSum.h"

#include "gtest/gtest.h"

#include <cstdint>

using namespace tessera::cuda;

namespace {

/// 512 cycles for 128 steps of K; 1,500 to bring together what blocks have.
DivisibleSum makeSum() {
  DivisibleSum sum;
  sum.step = 128;
  sum.iterationCycles = 512;
  sum.meetCycles = 1000;
  sum.exchangeCycles = 1000;
  return sum;
}

const ClusterRoom kRoom = ClusterRoom::guess(132);

TEST(DivisibleSum, FillsTheGPU) {
  EXPECT_EQ(makeSum().chooseBlocks(4096, 64, kRoom), 2);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 32, kRoom), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 16, kRoom), 8);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 1, kRoom), 8);
}

TEST(DivisibleSum, IsNotWorthIt) {
  // Programs enough, or nearly.
  for (int64_t programs : {67, 128, 132, 1000})
    EXPECT_EQ(makeSum().chooseBlocks(1 << 16, programs, kRoom), 1) << programs;
  // Iterations too few.
  for (int64_t end : {-1, 0, 1, 128, 256, 512})
    EXPECT_EQ(makeSum().chooseBlocks(end, 8, kRoom), 1) << end;
}

/// 33 clusters of 4 blocks are as many SMs as there are, but not in groups of them.
TEST(DivisibleSum, LeavesWhatClustersCannotUse) {
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 32, kRoom), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 33, kRoom), 2);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 17, kRoom), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 66, kRoom), 2);
}

/// Where groups of SMs are unequal, fewer clusters run at once than SMs would do for.
TEST(DivisibleSum, AsksHowManyClustersRunAtOnce) {
  ClusterRoom room = kRoom;
  room.clusters = {66, 30, 13};
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 32, room), 2);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 30, room), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 14, room), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 13, room), 8);
  // Two blocks on an SM are not twice as fast.
  room.clusters = {132, 64, 32};
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 67, room), 1);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 34, room), 2);
  // No cluster fits.
  room.clusters = {0, 0, 0};
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 1, room), 1);
}

TEST(DivisibleSum, TakesAnyNumbers) {
  for (int64_t end : {INT64_MIN, int64_t(-1), int64_t(0), int64_t(INT32_MAX), INT64_MAX})
    for (int64_t lower : {int64_t(0), int64_t(5)})
      for (int64_t programs : {int64_t(0), int64_t(1), int64_t(1) << 30}) {
        DivisibleSum sum = makeSum();
        sum.lower = lower;
        int blocks = sum.chooseBlocks(end, programs, kRoom);
        EXPECT_TRUE(blocks == 1 || blocks == 2 || blocks == 4 || blocks == 8);
      }
  EXPECT_EQ(DivisibleSum().chooseBlocks(4096, 8, kRoom), 1);
}

} // namespace
