// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/RegisterNeed.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

TEST(RegisterNeedTest, ThreadsShareWhatAProgramHolds) {
  RegisterNeed need(/*counted=*/640, /*warps=*/4, /*blocks=*/1);
  EXPECT_EQ(need.getHeld(4, 1), 640);
  EXPECT_EQ(need.getHeld(8, 1), 320);
  EXPECT_EQ(need.getHeld(8, 2), 160);
  EXPECT_EQ(need.getHeld(16, 8), 20);
  EXPECT_EQ(RegisterNeed(257, 8, 2).getHeld(8, 4), 129) << "rounded up";
}

TEST(RegisterNeedTest, ManyWarpsHaveFewerRegisters) {
  EXPECT_EQ(RegisterNeed::getAvailable(4), 255);
  EXPECT_EQ(RegisterNeed::getAvailable(8), 255);
  EXPECT_EQ(RegisterNeed::getAvailable(16), 128);
  EXPECT_EQ(RegisterNeed::getAvailable(32), 64);
  // As many in each thread: eight warps have room for them, sixteen have not.
  RegisterNeed need(640, 4, 1);
  EXPECT_TRUE(need.fits(8, 2));
  EXPECT_FALSE(need.fits(16, 1));
}

TEST(RegisterNeedTest, PtxasNeedsRegistersBeside) {
  EXPECT_TRUE(RegisterNeed(223, 8, 1).fits(8, 1));
  EXPECT_FALSE(RegisterNeed(224, 8, 1).fits(8, 1));
  EXPECT_TRUE(RegisterNeed(48, 32, 1).fits(32, 1));
  EXPECT_FALSE(RegisterNeed(49, 32, 1).fits(32, 1));
}

TEST(RegisterNeedTest, HalfMightWaitInSharedMemory) {
  // 320 and 32 of 255 registers.
  EXPECT_FALSE(RegisterNeed(640, 8, 1).fits(8, 2));
  EXPECT_TRUE(RegisterNeed(640, 8, 1).mightFit(8, 2));
  EXPECT_TRUE(RegisterNeed(478, 8, 1).mightFit(8, 1));
  EXPECT_FALSE(RegisterNeed(479, 8, 1).mightFit(8, 1));
}

TEST(RegisterNeedTest, MissingRegistersAreStoredTwice) {
  // 160 and 32 of 128: 64 are missing, of 512 threads.
  EXPECT_EQ(RegisterNeed(640, 4, 1).getSpilledBytes(16, 1), 2 * 4 * 64 * 512);
  EXPECT_EQ(RegisterNeed(640, 4, 1).getSpilledBytes(8, 2), 0);
}

} // namespace
