// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions against brute force: is the element available in the same thread, warp,
// block?

#include "tessera/Layout/LayoutConversion.h"

#include "RandomLayout.h"
#include "tessera/Layout/Fragments.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace tessera;

namespace {

/// The cheapest kind, by looking everywhere for each element.
ConversionKind bruteForce(const LinearLayout &source, const LinearLayout &destination) {
  std::map<uint64_t, std::vector<Place>> holders;
  forEachPlace(source, [&](const Place &place) { holders[source.apply(place)].push_back(place); });
  bool rename = true, select = true, warp = true, block = true;
  // Renaming: one source register for a destination register, the same in all threads.
  std::map<uint64_t, std::set<uint64_t>> names;
  forEachPlace(destination, [&](const Place &place) {
    std::set<uint64_t> own;
    bool inWarp = false, inBlock = false;
    for (const Place &holder : holders[destination.apply(place)]) {
      if (holder[3] != place[3])
        continue;
      inBlock = true;
      if (holder[2] != place[2])
        continue;
      inWarp = true;
      if (holder[1] == place[1])
        own.insert(holder[0]);
    }
    select &= !own.empty();
    warp &= inWarp;
    block &= inBlock;
    auto [it, isFirst] = names.try_emplace(place[0], own);
    if (!isFirst) {
      std::set<uint64_t> common;
      for (uint64_t name : it->second)
        if (own.count(name))
          common.insert(name);
      it->second = common;
    }
  });
  for (auto &[reg, common] : names)
    rename &= !common.empty();
  return rename   ? ConversionKind::Rename
         : select ? ConversionKind::Select
         : warp   ? ConversionKind::Warp
         : block  ? ConversionKind::Block
                  : ConversionKind::Cluster;
}

void expectExact(const LinearLayout &source, const LinearLayout &destination) {
  ASSERT_EQ(source.shape(), destination.shape());
  Conversion conversion = classify(source, destination);
  EXPECT_EQ(conversion.kind, bruteForce(source, destination));
  forEachPlace(destination, [&](const Place &place) {
    Place from = conversion.map.apply(place);
    ASSERT_EQ(source.apply(from), destination.apply(place));
    if (conversion.kind <= ConversionKind::Select) {
      ASSERT_EQ(from[1], place[1]);
    }
    if (conversion.kind <= ConversionKind::Warp) {
      ASSERT_EQ(from[2], place[2]);
    }
    if (conversion.kind <= ConversionKind::Block) {
      ASSERT_EQ(from[3], place[3]);
    }
  });
}

TEST(LayoutConversion, RandomPairsAreClassifiedExactly) {
  std::mt19937 rng(1);
  std::map<ConversionKind, int> seen;
  for (int i = 0; i < 100000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{0, 6, 2, 2, 1, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 3, blocks = rng() % 2;
    LinearLayout source = randomLayout(rng, shape, options, warps, blocks);
    LinearLayout destination = randomLayout(rng, shape, options, warps, blocks);
    // Almost equal pairs are where the kinds below Block live.
    if (rng() % 2) {
      destination = source;
      auto &lanes = destination.columns(HwDim::Lane);
      auto &registers = destination.columns(HwDim::Reg);
      if (!registers.empty() && rng() % 2)
        std::swap(lanes[rng() % lanes.size()], registers[rng() % registers.size()]);
      else
        std::swap(lanes[0], lanes[1]);
      destination = destination.canonical();
      if (!destination.whyNotDistributed().empty())
        continue;
    }
    expectExact(source, destination);
    ++seen[classify(source, destination).kind];
  }
  EXPECT_EQ(seen.size(), 5u) << "the cases are to cover every kind";
}

/// All distributed layouts of factor * 2^bits elements with the given numbers of columns.
std::vector<LinearLayout> allLayouts(int64_t factor, unsigned bits, unsigned lanes,
                                     unsigned warps) {
  std::vector<LinearLayout> result;
  // Where does each bit go? A slot is a lane, a warp, or the registers (all alike).
  unsigned slots = lanes + warps + 1;
  uint64_t total = 1;
  for (unsigned bit = 0; bit < bits; ++bit)
    total *= slots;
  for (uint64_t code = 0; code < total; ++code) {
    LinearLayout layout({factor << bits});
    layout.columns(HwDim::Lane).resize(lanes, 0);
    layout.columns(HwDim::Warp).resize(warps, 0);
    uint64_t rest = code;
    bool legal = true;
    for (unsigned bit = 0; bit < bits; ++bit, rest /= slots) {
      unsigned slot = rest % slots;
      uint64_t column = uint64_t(1) << bit;
      if (slot == lanes + warps) {
        layout.columns(HwDim::Reg).push_back(column);
        continue;
      }
      uint64_t &place = slot < lanes ? layout.columns(HwDim::Lane)[slot]
                                     : layout.columns(HwDim::Warp)[slot - lanes];
      legal &= place == 0;
      place = column;
    }
    if (legal)
      result.push_back(layout);
  }
  return result;
}

TEST(LayoutConversion, AllSmallPairsAreClassifiedExactly) {
  for (int64_t factor : {1, 3})
    for (unsigned bits = 0; bits <= 4; ++bits) {
      std::vector<LinearLayout> layouts = allLayouts(factor, bits, 2, 1);
      for (const LinearLayout &source : layouts)
        for (const LinearLayout &destination : layouts)
          expectExact(source, destination);
    }
}

TEST(LayoutConversion, AccumulatorToOperandIsFree) {
  LinearLayout accumulator = mmaAccumulator({64, 64}, 4, 1);
  EXPECT_EQ(classify(accumulator, mmaOperandA({64, 64}, 16, 2, 4, 1)).kind, ConversionKind::Rename);
  EXPECT_EQ(classify(accumulator, mmaOperandA({64, 64}, 8, 2, 4, 1)).kind, ConversionKind::Warp);
  EXPECT_EQ(classify(mmaAccumulator({64, 64}, 2, 2), mmaOperandA({64, 64}, 16, 2, 2, 2)).kind,
            ConversionKind::Block);
}

} // namespace
