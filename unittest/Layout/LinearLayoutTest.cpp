// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The algebra, as properties of random layouts checked place by place.

#include "tessera/Layout/LinearLayout.h"

#include "RandomLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace tessera;
using llvm::SmallVector;

namespace {

constexpr int kCases = 100000;

/// A random layout, and the numbers of warps and blocks it was made with.
LinearLayout drawLayout(std::mt19937 &rng, RandomShape options = {}) {
  options.hasOddFactors = true;
  SmallVector<int64_t> shape = randomShape(rng, options);
  return randomLayout(rng, shape, options, rng() % (options.maxWarps + 1),
                      rng() % (options.maxBlocks + 1));
}

TEST(LinearLayout, WorkedExampleOfTheHeader) {
  LinearLayout layout({4, 4});
  layout.columns(HwDim::Reg) = {1, 2};
  layout.columns(HwDim::Lane) = {4, 8};
  EXPECT_EQ(layout.apply({3, 2, 0, 0, 0}), 11u);
  EXPECT_EQ(layout.coordinates(11), (SmallVector<int64_t>{2, 3}));
  EXPECT_EQ(layout.element({2, 3}), 11u);
  EXPECT_EQ(layout.whyNotDistributed(), "");
}

TEST(LinearLayout, RandomLayoutsAreDistributedAndReachEveryElement) {
  std::mt19937 rng(1);
  for (int i = 0; i < kCases / 8; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng, {0, 8, 3, 2, 1});
    ASSERT_EQ(layout.whyNotDistributed(), "");
    std::set<uint64_t> reached;
    forEachPlace(layout, [&](const Place &place) { reached.insert(layout.apply(place)); });
    EXPECT_EQ(reached.size(), uint64_t(1) << layout.elementBits());
  }
}

TEST(LinearLayout, RepresentativesHoldEveryElementOnce) {
  std::mt19937 rng(2);
  for (int i = 0; i < kCases / 8; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng, {0, 8, 3, 2, 1});
    Place free = layout.freeBits();
    std::multiset<uint64_t> reached;
    forEachPlace(layout, [&](const Place &place) {
      for (unsigned dim = 0; dim < kNumHwDims; ++dim)
        if (place[dim] & free[dim])
          return;
      reached.insert(layout.apply(place));
    });
    EXPECT_EQ(reached.size(), uint64_t(1) << layout.elementBits());
    EXPECT_EQ(std::set<uint64_t>(reached.begin(), reached.end()).size(), reached.size());
  }
}

TEST(LinearLayout, CanonicalFormIgnoresRegisterNamesAndIsIdempotent) {
  std::mt19937 rng(3);
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng), renamed = layout;
    std::shuffle(renamed.columns(HwDim::Reg).begin(), renamed.columns(HwDim::Reg).end(), rng);
    renamed.columns(HwDim::Reg).push_back(0);
    EXPECT_EQ(renamed.canonical(), layout);
    EXPECT_EQ(layout.canonical(), layout);
  }
}

TEST(LinearLayout, TransposeMovesCoordinates) {
  std::mt19937 rng(4);
  for (int i = 0; i < kCases / 8; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng, {0, 8, 3, 1, 0});
    SmallVector<unsigned> order(layout.rank());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    LinearLayout moved = layout.transpose(order);
    forEachPlace(layout, [&](const Place &place) {
      auto before = layout.coordinates(layout.apply(place));
      auto after = moved.coordinates(moved.apply(place));
      for (auto [to, from] : llvm::enumerate(order))
        ASSERT_EQ(after[to], before[from]);
    });
    SmallVector<unsigned> back(order.size());
    for (auto [to, from] : llvm::enumerate(order))
      back[from] = to;
    EXPECT_EQ(moved.transpose(back), layout);
    for (auto [to, from] : llvm::enumerate(order))
      EXPECT_EQ(moved.extent(to), layout.extent(from));
  }
}

TEST(LinearLayout, ReshapeKeepsRowMajorOrder) {
  std::mt19937 rng(5);
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = getRepeat(drawLayout(rng));
    SmallVector<int64_t> shape(1 + rng() % 4, 1);
    for (unsigned bit = 0; bit < layout.elementBits(); ++bit)
      shape[rng() % shape.size()] *= 2;
    auto reshaped = layout.reshape(shape);
    ASSERT_TRUE(reshaped);
    EXPECT_EQ(reshaped->allColumns(), layout.allColumns());
    EXPECT_EQ(reshaped->reshape(layout.shape()), layout);
  }
}

TEST(LinearLayout, ReshapeTakesAnOddExtentApartBehindItsFactor) {
  std::mt19937 rng(10);
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng);
    SmallVector<int64_t> shape;
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      int64_t inner = int64_t(1) << rng() % (layout.dimBits(dim) + 1);
      shape.push_back(layout.extent(dim) / inner);
      shape.push_back(inner);
    }
    auto reshaped = layout.reshape(shape);
    ASSERT_TRUE(reshaped);
    EXPECT_EQ(reshaped->allColumns(), layout.allColumns());
    EXPECT_EQ(reshaped->shape(), shape);
    EXPECT_EQ(reshaped->reshape(layout.shape()), layout);
  }
}

TEST(LinearLayout, ReshapeDoesNotCutThroughAnOddFactor) {
  LinearLayout layout({8, 24});
  EXPECT_TRUE(layout.reshape({2, 4, 24}).has_value());
  EXPECT_FALSE(layout.reshape({4, 48}).has_value());
  EXPECT_FALSE(layout.reshape({192}).has_value());
  EXPECT_FALSE(layout.reshape({24, 8}).has_value());
}

TEST(LinearLayout, JoinAddsALastDimensionAndSplitTakesItAway) {
  std::mt19937 rng(6);
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng), joined = layout.join();
    EXPECT_EQ(joined.whyNotDistributed(), "");
    EXPECT_EQ(joined.extent(joined.rank() - 1), 2);
    auto split = joined.split();
    ASSERT_TRUE(split);
    EXPECT_EQ(*split, layout);
  }
}

TEST(LinearLayout, ProjectionForgetsOneCoordinate) {
  std::mt19937 rng(7);
  for (int i = 0; i < kCases / 8; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng, {0, 8, 3, 2, 0});
    unsigned axis = rng() % layout.rank();
    LinearLayout projected = layout.project(axis);
    EXPECT_EQ(projected.whyNotDistributed(), "");
    // Registers were dropped, so compare threads with all registers 0.
    forEachPlace(layout, [&](Place place) {
      place[0] = 0;
      auto before = layout.coordinates(layout.apply(place));
      before.erase(before.begin() + axis);
      ASSERT_EQ(projected.coordinates(projected.apply(place)), before);
    });
  }
}

TEST(LinearLayout, ExpandingADimensionIsUndoneByProjectingIt) {
  std::mt19937 rng(8);
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    LinearLayout layout = drawLayout(rng);
    unsigned axis = rng() % (layout.rank() + 1);
    LinearLayout expanded = layout.expandDims(axis);
    EXPECT_EQ(expanded.extent(axis), 1);
    EXPECT_EQ(expanded.project(axis), layout);
  }
}

TEST(LinearLayout, ProductIsAssociative) {
  std::mt19937 rng(9);
  auto part = [&](int64_t factor = 1) {
    LinearLayout layout({int64_t(1) << rng() % 3, factor << rng() % 3});
    for (unsigned bit = 0; bit < layout.elementBits(); ++bit)
      layout.columns(kAllHwDims[rng() % 3]).push_back(uint64_t(1) << bit);
    return layout;
  };
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE(i);
    // Repeats are outermost.
    LinearLayout a = part(), b = part(), c = part(1 + 2 * (rng() % 3));
    EXPECT_EQ(LinearLayout::product(LinearLayout::product(a, b), c),
              LinearLayout::product(a, LinearLayout::product(b, c)));
  }
}

TEST(LinearLayout, SaysWhatIsWrong) {
  LinearLayout layout({4});
  layout.columns(HwDim::Reg) = {1};
  EXPECT_EQ(layout.whyNotDistributed(), "not every element is somewhere");
  layout.columns(HwDim::Lane) = {3};
  EXPECT_EQ(layout.whyNotDistributed(), "lane column 3 is no power of two");
  layout.columns(HwDim::Lane) = {1};
  EXPECT_EQ(layout.whyNotDistributed(), "lane column 1 occurs twice");
  LinearLayout memory({4});
  memory.columns(HwDim::Offset) = {1, 3};
  EXPECT_EQ(memory.whyNotMemory(), "");
  memory.columns(HwDim::Offset) = {1, 1};
  EXPECT_EQ(memory.whyNotMemory(), "not every element is somewhere");
  memory.columns(HwDim::Offset) = {1, 2, 3};
  EXPECT_EQ(memory.whyNotMemory(), "two offsets hold one element");
  memory.columns(HwDim::Offset) = {1, 2};
  memory.columns(HwDim::Block) = {2};
  EXPECT_EQ(memory.whyNotMemory(), "two blocks hold some elements, and not others");
}

TEST(LinearLayout, KnowsTheOffsetInABlocksOwnMemory) {
  LinearLayout memory({16});
  memory.columns(HwDim::Offset) = {1, 6, 4};
  EXPECT_EQ(memory.memoryOffsets(), std::nullopt);
  // Element 8 is the first one of the other block; with a column of 0 two blocks have the same.
  memory.columns(HwDim::Block) = {8, 0};
  EXPECT_EQ(memory.whyNotMemory(), "");
  EXPECT_EQ(memory.memoryOffsets(), (f2::Columns{1, 6, 4, 0}));
  for (uint64_t offset = 0; offset < 8; ++offset)
    for (uint64_t block = 0; block < 4; ++block)
      EXPECT_EQ(f2::apply(*memory.memoryOffsets(), memory.apply({0, 0, 0, block, offset})), offset);
}

} // namespace
