// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the simulator's counts of shared memory's banks, address by address, with the layout
// library's formula.

#include "tessera/Layout/MemoryExchange.h"
#include "tessera/Simulator/Simulator.h"

#include "gtest/gtest.h"

#include <random>

using namespace tessera;

TEST(BanksTest, LanesSideBySideTakeOneTurnA128Bytes) {
  std::array<uint64_t, 32> addresses;
  for (unsigned bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (unsigned lane = 0; lane < 32; ++lane)
      addresses[lane] = lane * bytes;
    unsigned turns = bytes <= 4 ? 1 : bytes / 4;
    EXPECT_EQ(countWavefronts(addresses.data(), ~0u, bytes), std::make_pair(turns, turns));
  }
}

TEST(BanksTest, OneBankForAllTakesATurnALane) {
  std::array<uint64_t, 32> addresses;
  for (unsigned lane = 0; lane < 32; ++lane)
    addresses[lane] = lane * 128;
  EXPECT_EQ(countWavefronts(addresses.data(), ~0u, 4), std::make_pair(32u, 1u));
  // Lanes that are masked off take none.
  EXPECT_EQ(countWavefronts(addresses.data(), 0x11u, 4), std::make_pair(2u, 1u));
}

TEST(BanksTest, TheSameWordIsNoConflict) {
  std::array<uint64_t, 32> addresses;
  for (unsigned lane = 0; lane < 32; ++lane)
    addresses[lane] = 64 + lane % 4;
  EXPECT_EQ(countWavefronts(addresses.data(), ~0u, 1), std::make_pair(1u, 1u));
}

/// Any linear map of lanes to addresses: 8- to 64-bit elements, 1 to 16 bytes a lane.
TEST(BanksTest, AgreesWithTheFormulaOfLayouts) {
  std::mt19937_64 random(1);
  for (unsigned trial = 0; trial < 20000; ++trial) {
    unsigned bits = 8u << random() % 4, vectorBits = random() % 5;
    unsigned bytes = (bits / 8) << vectorBits;
    if (bytes > 16)
      continue;
    std::array<uint64_t, 5> columns;
    for (uint64_t &column : columns)
      column = (random() % 4096) >> vectorBits << vectorBits;
    // Every other map is like those of real layouts: unit vectors.
    if (trial % 2)
      for (uint64_t &column : columns)
        column = uint64_t(1) << (vectorBits + random() % (12 - vectorBits));
    std::array<uint64_t, 32> addresses;
    for (unsigned lane = 0; lane < 32; ++lane) {
      uint64_t element = 0;
      for (unsigned bit = 0; bit < 5; ++bit)
        element ^= lane >> bit & 1 ? columns[bit] : 0;
      addresses[lane] = element * (bits / 8);
    }
    EXPECT_EQ(countWavefronts(addresses.data(), ~0u, bytes).first,
              wavefronts(columns, vectorBits, bits))
        << "trial " << trial << ", " << bits << " bits, " << bytes << " bytes a lane";
  }
}
