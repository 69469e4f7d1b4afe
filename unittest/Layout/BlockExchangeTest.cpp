// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulates exchanges between blocks. Each block has a memory for its part, and each thread loads
// from the blocks of the plan.

#include "tessera/Layout/BlockExchange.h"

#include "RandomLayout.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Layout/LayoutConversion.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <map>

using namespace tessera;

namespace {

/// A register's number as a place, and the repeat that it is of.
struct Register {
  Register(const LinearLayout &layout, uint64_t number)
      : repeat(number >> layout.columns(HwDim::Reg).size()),
        inRepeat(number & ((uint64_t(1) << layout.columns(HwDim::Reg).size()) - 1)) {}
  uint64_t repeat, inRepeat;
};

uint64_t countRegisters(const LinearLayout &layout) {
  uint64_t count = uint64_t(1) << layout.columns(HwDim::Reg).size();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    count *= layout.oddFactor(dim);
  return count;
}

/// Moves every element by way of the memories of blocks and looks where each arrives.
void expectArrives(const LinearLayout &source, const LinearLayout &destination) {
  BlockExchange exchange(source, destination);
  EXPECT_EQ(exchange.isAcrossBlocks(),
            classify(source, destination).kind == ConversionKind::Cluster);
  uint64_t blocks = uint64_t(1) << source.columns(HwDim::Block).size();
  uint64_t warps = uint64_t(1) << source.columns(HwDim::Warp).size();
  uint64_t lanes = uint64_t(1) << source.columns(HwDim::Lane).size();
  const LinearLayout &stored = exchange.getSource(), &loaded = exchange.getDestination();
  ASSERT_EQ(stored.shape(), loaded.shape());
  // For each block: the tile's element at each repeat and element of the part.
  using Key = std::pair<uint64_t, uint64_t>;
  std::vector<std::map<Key, Key>> memories(blocks);
  for (uint64_t block = 0; block < blocks; ++block)
    for (uint64_t warp = 0; warp < warps; ++warp)
      for (uint64_t lane = 0; lane < lanes; ++lane)
        for (uint64_t number = 0; number < countRegisters(source); ++number) {
          Register own(source, number), ofPart(stored, number);
          uint64_t where = stored.apply({ofPart.inRepeat, lane, warp, block, 0});
          Key element{own.repeat, source.apply({own.inRepeat, lane, warp, block, 0})};
          auto [slot, isNew] = memories[block].try_emplace({ofPart.repeat, where}, element);
          ASSERT_TRUE(isNew || slot->second == element) << "two elements in one place";
        }
  for (const auto &memory : memories)
    ASSERT_EQ(memory.size() * countBlockParts(source),
              (uint64_t(1) << source.elementBits()) * countRegisters(source) >>
                  source.columns(HwDim::Reg).size());

  for (uint64_t block = 0; block < blocks; ++block)
    for (uint64_t warp = 0; warp < warps; ++warp)
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        uint64_t from = f2::apply(exchange.getBlockColumns(HwDim::Lane), lane) ^
                        f2::apply(exchange.getBlockColumns(HwDim::Warp), warp) ^
                        f2::apply(exchange.getBlockColumns(HwDim::Block), block);
        std::vector<bool> has(countRegisters(destination));
        for (const BlockExchange::Group &group : exchange.getGroups()) {
          ASSERT_LT(from ^ group.block, blocks);
          if (!exchange.isAcrossBlocks()) {
            ASSERT_EQ(from ^ group.block, block);
          }
          for (auto [number, own] : llvm::enumerate(group.registers)) {
            Register ofTile(destination, own), ofPart(loaded, number);
            uint64_t where = loaded.apply({ofPart.inRepeat, lane, warp, block, 0});
            Key element = memories[from ^ group.block].at({ofPart.repeat, where});
            ASSERT_EQ(element.first, ofTile.repeat);
            ASSERT_EQ(element.second, destination.apply({ofTile.inRepeat, lane, warp, block, 0}));
            ASSERT_FALSE(has[own]);
            has[own] = true;
          }
        }
        ASSERT_TRUE(llvm::all_of(has, [](bool each) { return each; }));
      }
}

TEST(BlockExchange, EveryElementArrives) {
  std::mt19937 rng(21);
  int across = 0, within = 0;
  for (int i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{0, 7, 2, 2, 3, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 3, blocks = rng() % 4;
    LinearLayout source = randomLayout(rng, shape, options, warps, blocks);
    LinearLayout destination = randomLayout(rng, shape, options, warps, blocks);
    // Pairs that agree on blocks, or of which one has the whole tile in each.
    if (rng() % 4 == 0)
      source = source.inEachBlock();
    if (rng() % 4 == 0)
      destination = source.inEachBlock();
    expectArrives(source, destination);
    (BlockExchange(source, destination).isAcrossBlocks() ? across : within)++;
  }
  EXPECT_GT(across, 500);
  EXPECT_GT(within, 500);
}

TEST(BlockExchange, TheHeadersExample) {
  LinearLayout source({16}), destination({16});
  source.columns(HwDim::Reg) = {1};
  source.columns(HwDim::Lane) = {2, 4};
  source.columns(HwDim::Block) = {8};
  destination.columns(HwDim::Reg) = {8};
  destination.columns(HwDim::Lane) = {1, 2};
  destination.columns(HwDim::Block) = {4};
  BlockExchange exchange(source, destination);
  EXPECT_TRUE(exchange.isAcrossBlocks());
  EXPECT_EQ(countBlockParts(source), 2u);
  EXPECT_EQ(exchange.getSource().shape(), (llvm::SmallVector<int64_t>{8}));
  EXPECT_EQ(exchange.getDestination().columns(HwDim::Lane), (llvm::ArrayRef<uint64_t>{1, 2}));
  EXPECT_EQ(exchange.getDestination().columns(HwDim::Block), (llvm::ArrayRef<uint64_t>{4}));
  ASSERT_EQ(exchange.getGroups().size(), 2u);
  EXPECT_EQ(exchange.getGroups()[0].block, 0u);
  EXPECT_EQ(exchange.getGroups()[1].block, 1u);
  EXPECT_EQ(exchange.getGroups()[1].registers, (llvm::ArrayRef<uint64_t>{1}));
}

TEST(BlockExchange, NothingLeavesABlockThatHasTheWholeTile) {
  std::mt19937 rng(22);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{0, 8, 3, 2, 3, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    LinearLayout layout = randomLayout(rng, shape, options, 2, 3);
    LinearLayout whole = layout.inEachBlock();
    EXPECT_EQ(whole.whyNotDistributed(), "");
    EXPECT_EQ(countBlockParts(whole), 1u);
    EXPECT_EQ(whole.columns(HwDim::Block).size(), 3u);
    BlockExchange exchange(whole, layout);
    EXPECT_FALSE(exchange.hasParts());
    EXPECT_FALSE(exchange.isAcrossBlocks());
    EXPECT_EQ(BlockExchange(layout, whole).isAcrossBlocks(), countBlockParts(layout) > 1);
  }
}

TEST(BlockExchange, PartsOfBlocksCoverTheTile) {
  LinearLayout part = blocked({16, 32}, {1, 4}, {4, 8}, {4, 1}, {1, 0});
  LinearLayout whole = overBlocks(part, {2, 4});
  EXPECT_EQ(whole.whyNotDistributed(), "");
  EXPECT_EQ(whole.shape(), (llvm::SmallVector<int64_t>{32, 128}));
  ASSERT_EQ(whole.columns(HwDim::Block).size(), 3u);
  // The last dimension's blocks count fastest.
  EXPECT_EQ(whole.coordinates(whole.columns(HwDim::Block)[0]), (llvm::SmallVector<int64_t>{0, 32}));
  EXPECT_EQ(whole.coordinates(whole.columns(HwDim::Block)[1]), (llvm::SmallVector<int64_t>{0, 64}));
  EXPECT_EQ(whole.coordinates(whole.columns(HwDim::Block)[2]), (llvm::SmallVector<int64_t>{16, 0}));
  EXPECT_EQ(BlockExchange(whole, whole).getSource().elementBits(), part.elementBits());
}

TEST(BlockExchange, BlocksDivideTheSlowestDimensions) {
  EXPECT_EQ(divideOverBlocks({64, 64}, 2), (llvm::SmallVector<unsigned>{4, 1}));
  EXPECT_EQ(divideOverBlocks({2, 64}, 3), (llvm::SmallVector<unsigned>{2, 4}));
  EXPECT_EQ(divideOverBlocks({6, 64}, 2), (llvm::SmallVector<unsigned>{2, 2}));
  EXPECT_EQ(divideOverBlocks({1, 2}, 3), (llvm::SmallVector<unsigned>{1, 2}));
  EXPECT_EQ(divideOverBlocks({}, 1), (llvm::SmallVector<unsigned>{}));
}

} // namespace
