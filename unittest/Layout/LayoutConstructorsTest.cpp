// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constructors against the formulas that the PTX manual gives for each thread, and
// swizzles against the rule on byte addresses.

#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Layout/Fragments.h"

#include "RandomLayout.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

#include <set>

using namespace tessera;

namespace {

Place at(uint64_t reg, uint64_t lane, uint64_t warp = 0) { return {reg, lane, warp, 0, 0}; }

/// Registers of a canonical layout are sorted; the manual's order is given back by
/// looking elements up.
template <typename Coordinate>
void expectThreads(const LinearLayout &layout, unsigned registers, Coordinate coordinate) {
  ASSERT_EQ(layout.columns(HwDim::Reg).size(), llvm::Log2_32(registers));
  for (unsigned lane = 0; lane < 32; ++lane) {
    std::set<uint64_t> got, want;
    for (unsigned reg = 0; reg < registers; ++reg) {
      got.insert(layout.apply(at(reg, lane)));
      auto [row, column] = coordinate(reg, lane);
      want.insert(layout.element({row, column}));
    }
    EXPECT_EQ(got, want) << "lane " << lane;
  }
}

using Coordinates = std::pair<int64_t, int64_t>;

TEST(LayoutConstructors, MmaAccumulatorFragment) {
  expectThreads(mmaAccumulator({16, 8}, 1, 1), 4, [](unsigned i, unsigned lane) -> Coordinates {
    return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
  });
}

TEST(LayoutConstructors, MmaOperandFragmentsOf16Bits) {
  expectThreads(mmaOperandA({16, 16}, 16, 2, 1, 1), 8,
                [](unsigned i, unsigned lane) -> Coordinates {
                  int64_t row = lane / 4 + ((i < 2 || (i >= 4 && i < 6)) ? 0 : 8);
                  return {row, lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
                });
  expectThreads(mmaOperandB({16, 8}, 16, 2, 1, 1), 4, [](unsigned i, unsigned lane) -> Coordinates {
    return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
  });
}

TEST(LayoutConstructors, MmaOperandFragmentsOf8Bits) {
  expectThreads(mmaOperandA({16, 32}, 8, 2, 1, 1), 16,
                [](unsigned i, unsigned lane) -> Coordinates {
                  int64_t row = lane / 4 + ((i < 4 || (i >= 8 && i < 12)) ? 0 : 8);
                  return {row, lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
                });
  expectThreads(mmaOperandB({32, 8}, 8, 2, 1, 1), 8, [](unsigned i, unsigned lane) -> Coordinates {
    return {lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane / 4};
  });
}

TEST(LayoutConstructors, MmaOperandFragmentsOfTf32) {
  expectThreads(mmaOperandA({16, 8}, 32, 2, 1, 1), 4, [](unsigned i, unsigned lane) -> Coordinates {
    return {lane / 4 + (i & 1 ? 8 : 0), lane % 4 + (i >= 2 ? 4 : 0)};
  });
  expectThreads(mmaOperandB({8, 8}, 32, 2, 1, 1), 2, [](unsigned i, unsigned lane) -> Coordinates {
    return {lane % 4 + (i ? 4 : 0), lane / 4};
  });
}

TEST(LayoutConstructors, WgmmaAccumulatorFragment) {
  for (int64_t n : {8, 64, 256}) {
    LinearLayout layout = wgmmaAccumulator({64, n}, 1, 1);
    ASSERT_EQ(layout.whyNotDistributed(), "");
    for (unsigned warp = 0; warp < 4; ++warp)
      for (unsigned lane = 0; lane < 32; ++lane) {
        std::set<uint64_t> got, want;
        for (unsigned i = 0; i < n / 2; ++i) {
          got.insert(layout.apply(at(i, lane, warp)));
          int64_t row = warp * 16 + lane / 4 + (i % 4 < 2 ? 0 : 8);
          want.insert(
              layout.element({row, static_cast<int64_t>(i / 4 * 8 + lane % 4 * 2 + i % 2)}));
        }
        EXPECT_EQ(got, want) << "n " << n << " warp " << warp << " lane " << lane;
      }
  }
}

TEST(LayoutConstructors, AccumulatorOf16BitsIsAnOperandAsItIs) {
  // Flash attention relies on this: the second dot reads the first one's result from its registers,
  // without a conversion.
  LinearLayout scores = wgmmaAccumulator({64, 16}, 1, 1);
  EXPECT_EQ(scores, wgmmaOperandA({64, 16}, 16, 1, 1));
  EXPECT_NE(wgmmaAccumulator({64, 32}, 1, 1), wgmmaOperandA({64, 32}, 8, 1, 1));
}

TEST(LayoutConstructors, WarpsOfTheOtherOperandHoldCopies) {
  LinearLayout a = mmaOperandA({32, 16}, 16, 2, 2, 2), b = mmaOperandB({16, 16}, 16, 2, 2, 2);
  EXPECT_EQ(a.columns(HwDim::Warp), (f2::Columns{0, a.element({16, 0})}));
  EXPECT_EQ(b.columns(HwDim::Warp), (f2::Columns{b.element({0, 8}), 0}));
}

TEST(LayoutConstructors, NvidiaSwizzlesFollowTheByteRule) {
  for (unsigned width : {0u, 32u, 64u, 128u})
    for (unsigned bits : {8u, 16u, 32u, 64u})
      for (unsigned panels : {1u, 2u, 4u}) {
        unsigned columns = (width ? width : 128) * 8 / bits * panels;
        LinearLayout layout = nvidiaSwizzle({16, columns}, width, bits);
        ASSERT_EQ(layout.whyNotMemory(), "") << width << " " << bits << " " << panels;
        uint64_t panelColumns = width ? width * 8 / bits : columns;
        for (uint64_t row = 0; row < 16; ++row)
          for (uint64_t column = 0; column < columns; ++column) {
            uint64_t panel = column / panelColumns;
            uint64_t byte =
                (panel * 16 * panelColumns + row * panelColumns + column % panelColumns) * bits / 8;
            unsigned shift = 3, mask = width == 128 ? 7 : width == 64 ? 3 : width == 32 ? 1 : 0;
            uint64_t swizzled = byte ^ ((byte >> (4 + shift) & mask) << 4);
            EXPECT_EQ(layout.apply({0, 0, 0, 0, swizzled * 8 / bits}),
                      layout.element({static_cast<int64_t>(row), static_cast<int64_t>(column)}))
                << width << " " << bits << " " << panels;
          }
      }
}

TEST(LayoutConstructors, BlockedCountsRegistersThenLanesThenWarps) {
  // 2x4 registers, 8x4 lanes, 2x1 warps, the last dimension first.
  LinearLayout layout = blocked({64, 32}, {2, 4}, {8, 4}, {2, 1}, {1, 0});
  EXPECT_EQ(layout.whyNotDistributed(), "");
  EXPECT_EQ(layout.coordinates(layout.apply(at(0, 1))), (llvm::SmallVector<int64_t>{0, 4}));
  EXPECT_EQ(layout.coordinates(layout.apply(at(0, 4))), (llvm::SmallVector<int64_t>{2, 0}));
  EXPECT_EQ(layout.coordinates(layout.apply(at(0, 0, 1))), (llvm::SmallVector<int64_t>{16, 0}));
}

TEST(LayoutConstructors, TooSmallATensorIsHeldInCopies) {
  LinearLayout layout = blocked({8}, {4}, {32}, {4}, {0});
  EXPECT_EQ(layout.whyNotDistributed(), "");
  EXPECT_EQ(layout.columns(HwDim::Lane), (f2::Columns{4, 0, 0, 0, 0}));
  EXPECT_EQ(layout.columns(HwDim::Warp), (f2::Columns{0, 0}));
}

TEST(LayoutConstructors, CoalescedSortsBitsByStride) {
  // A column-major 16x8 tile of floats: rows are 4 bytes apart.
  std::optional<int64_t> strides[] = {64, 128, 256, 4, 8, 16, 32};
  LinearLayout layout = coalesced({16, 8}, strides, 2, 0);
  EXPECT_EQ(layout.whyNotDistributed(), "");
  EXPECT_EQ(layout.columns(HwDim::Reg),
            (f2::Columns{layout.element({1, 0}), layout.element({2, 0})}));
  EXPECT_EQ(layout.columns(HwDim::Lane)[0], layout.element({4, 0}));
  EXPECT_EQ(layout.columns(HwDim::Lane)[2], layout.element({0, 1}));
}

} // namespace
