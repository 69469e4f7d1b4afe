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

TEST(DivisibleSum, FillsTheGPU) {
  EXPECT_EQ(makeSum().chooseBlocks(4096, 64, 132), 2);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 32, 132), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 16, 132), 8);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 1, 132), 8);
}

TEST(DivisibleSum, IsNotWorthIt) {
  // Programs enough, or nearly.
  for (int64_t programs : {67, 128, 132, 1000})
    EXPECT_EQ(makeSum().chooseBlocks(1 << 16, programs, 132), 1) << programs;
  // Iterations too few.
  for (int64_t end : {-1, 0, 1, 128, 256, 512})
    EXPECT_EQ(makeSum().chooseBlocks(end, 8, 132), 1) << end;
}

/// 33 clusters of 4 blocks are as many SMs as there are, but not in groups of them.
TEST(DivisibleSum, LeavesWhatClustersCannotUse) {
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 32, 132), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 33, 132), 2);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 17, 132), 4);
  EXPECT_EQ(makeSum().chooseBlocks(1 << 16, 66, 132), 2);
}

TEST(DivisibleSum, TakesAnyNumbers) {
  for (int64_t end : {INT64_MIN, int64_t(-1), int64_t(0), int64_t(INT32_MAX), INT64_MAX})
    for (int64_t lower : {int64_t(0), int64_t(5)})
      for (int64_t programs : {int64_t(0), int64_t(1), int64_t(1) << 30}) {
        DivisibleSum sum = makeSum();
        sum.lower = lower;
        int blocks = sum.chooseBlocks(end, programs, 132);
        EXPECT_TRUE(blocks == 1 || blocks == 2 || blocks == 4 || blocks == 8);
      }
  EXPECT_EQ(DivisibleSum().chooseBlocks(4096, 8, 132), 1);
}

} // namespace
