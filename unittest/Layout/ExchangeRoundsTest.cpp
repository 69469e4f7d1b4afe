// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges in rounds, simulated: memory of one slice, threads that store and load their
// shares of it, and what every place holds in the end.

#include "tessera/Layout/ExchangeRounds.h"

#include "RandomLayout.h"
#include "tessera/Layout/Fragments.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

#include <map>

using namespace tessera;

namespace {

unsigned at(HwDim dim) { return static_cast<unsigned>(dim); }

unsigned countRepeats(const LinearLayout &layout) {
  unsigned repeats = 1;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    repeats *= layout.oddFactor(dim);
  return repeats;
}

/// Moves every element from `source` to `destination` and looks where each arrives.
void expectArrives(const LinearLayout &source, const LinearLayout &destination,
                   const RoundedExchange &exchange) {
  unsigned warps = 1u << source.columns(HwDim::Warp).size();
  unsigned sourceBits = source.columns(HwDim::Reg).size();
  unsigned destinationBits = destination.columns(HwDim::Reg).size();
  uint64_t perRepeat = uint64_t(1) << source.elementBits();
  auto address =
      f2::inverse(exchange.plan.memory.columns(HwDim::Offset), exchange.plan.memory.elementBits());
  ASSERT_TRUE(address);
  uint64_t sliceElements = uint64_t(1) << exchange.source.elementBits();
  uint64_t sliceRepeats = countRepeats(exchange.source);
  ASSERT_EQ(sliceElements * sliceRepeats * exchange.slices.count(),
            perRepeat * countRepeats(source));

  // The position of a thread's register of the slice.
  auto place = [&](const LinearLayout &slice, uint64_t number, uint64_t lane, uint64_t warp) {
    unsigned bits = slice.columns(HwDim::Reg).size();
    uint64_t inRepeat = number & ((uint64_t(1) << bits) - 1);
    return (number >> bits) * sliceElements +
           f2::apply(*address, slice.apply({inRepeat, lane, warp, 0, 0}));
  };
  auto hasShare = [&](const SliceShare &share, uint64_t lane, uint64_t warp) {
    return (lane & share.mask[at(HwDim::Lane)]) == share.value[at(HwDim::Lane)] &&
           (warp & share.mask[at(HwDim::Warp)]) == share.value[at(HwDim::Warp)];
  };
  std::map<std::array<uint64_t, 3>, uint64_t> arrived;
  for (unsigned round = 0; round < exchange.slices.count(); ++round) {
    std::map<uint64_t, uint64_t> memory;
    SliceShare stored = exchange.slices.getShare(source, round);
    SliceShare loaded = exchange.slices.getShare(destination, round);
    for (uint64_t warp = 0; warp < warps; ++warp)
      for (uint64_t lane = 0; lane < 32; ++lane)
        for (auto [number, own] : llvm::enumerate(stored.registers)) {
          if (!hasShare(stored, lane, warp))
            continue;
          uint64_t inRepeat = own & ((uint64_t(1) << sourceBits) - 1);
          uint64_t element =
              (own >> sourceBits) * perRepeat + source.apply({inRepeat, lane, warp, 0, 0});
          auto [slot, isNew] =
              memory.try_emplace(place(exchange.source, number, lane, warp), element);
          ASSERT_TRUE(isNew || slot->second == element) << "two elements in one place";
        }
    ASSERT_EQ(memory.size(), sliceElements * sliceRepeats);
    ASSERT_LT(memory.rbegin()->first, sliceElements * sliceRepeats);
    for (uint64_t warp = 0; warp < warps; ++warp)
      for (uint64_t lane = 0; lane < 32; ++lane)
        for (auto [number, own] : llvm::enumerate(loaded.registers))
          if (hasShare(loaded, lane, warp)) {
            bool isNew =
                arrived
                    .try_emplace({own, lane, warp},
                                 memory.at(place(exchange.destination, number, lane, warp)))
                    .second;
            ASSERT_TRUE(isNew) << "a register is loaded in two rounds";
          }
  }
  ASSERT_EQ(arrived.size(), (countRepeats(destination) * warps * 32) << destinationBits);
  for (auto [to, element] : arrived) {
    uint64_t inRepeat = to[0] & ((uint64_t(1) << destinationBits) - 1);
    ASSERT_EQ(element, (to[0] >> destinationBits) * perRepeat +
                           destination.apply({inRepeat, to[1], to[2], 0, 0}));
  }
}

TEST(ExchangeRounds, EveryElementArrivesWhateverTheNumberOfRounds) {
  std::mt19937 rng(11);
  constexpr MatrixInstructions none, both{true, true};
  unsigned inWarps = 0, apart = 0;
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{8, 11, 5, 3, 0};
    auto shape = randomShape(rng, options);
    if (i % 3 == 0)
      shape.back() *= 3;
    unsigned warps = rng() % 4;
    LinearLayout source = randomLayout(rng, shape, options, warps, 0);
    LinearLayout destination = randomLayout(rng, shape, options, warps, 0);
    unsigned bits = 8u << rng() % 4;
    for (unsigned rounds : getPossibleRounds(source, destination)) {
      SCOPED_TRACE(rounds);
      RoundedExchange exchange = planRounds(source, destination, bits, i % 2 ? both : none, rounds);
      ASSERT_EQ(exchange.slices.count(), rounds);
      expectArrives(source, destination, exchange);
      inWarps += !exchange.slices.getShare(source, 0).isOfAllThreads() ||
                 !exchange.slices.getShare(destination, 0).isOfAllThreads();
      apart += rounds % 3 == 0;
      if (HasFatalFailure())
        return;
    }
  }
  EXPECT_GT(inWarps, 100u);
  EXPECT_GT(apart, 50u);
}

TEST(ExchangeRounds, OneRoundIsTheWholeExchange) {
  std::mt19937 rng(12);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{8, 11, 5, 3, 0};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 3, bits = 8u << rng() % 4;
    LinearLayout source = randomLayout(rng, shape, options, warps, 0);
    LinearLayout destination = randomLayout(rng, shape, options, warps, 0);
    EXPECT_EQ(planRounds(source, destination, bits, {}, 1).cost,
              planExchange(source, destination, bits, {}).getCost());
  }
}

/// The best that a side can do: vectors of that width, no conflicts.
double idealCost(const LinearLayout &layout, unsigned vectorBits, unsigned bits) {
  unsigned accesses = 1u << (layout.columns(HwDim::Reg).size() - vectorBits);
  return accesses * (std::max(1u, (bits << vectorBits) / 32) + 1 / 8.0);
}

TEST(ExchangeRounds, SlicesOfResultsGoAsFastAsTheWhole) {
  // Sums of products become lines. A slice is as free of conflicts as the whole tile, though its
  // vectors are narrower. If registers can distinguish the rounds, all threads take part in each
  // round.
  struct Case {
    int64_t rows, columns;
    unsigned warps, ofAllThreads;
  };
  for (auto [rows, columns, warps, ofAllThreads] :
       {Case{256, 256, 8, 8}, {128, 128, 4, 8}, {128, 256, 8, 8}, {256, 128, 16, 2}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
    LinearLayout result = mmaAccumulator({rows, columns}, warps, 1);
    LinearLayout lines = blocked({rows, columns}, {1, 4}, {1, 32}, {warps, 1}, {1, 0});
    double whole = planExchange(result, lines, 32, {}).getCost();
    for (unsigned rounds = 2; rounds <= 8; rounds *= 2) {
      SCOPED_TRACE(rounds);
      RoundedExchange exchange = planRounds(result, lines, 32, {}, rounds);
      EXPECT_LE(exchange.cost, whole * 1.125);
      EXPECT_EQ(exchange.slices.getShare(result, 0).isOfAllThreads() &&
                    exchange.slices.getShare(lines, 0).isOfAllThreads(),
                rounds <= ofAllThreads);
      EXPECT_EQ(exchange.plan.store.getCost(),
                idealCost(exchange.source, exchange.plan.store.vectorBits, 32));
      EXPECT_EQ(exchange.plan.load.getCost(),
                idealCost(exchange.destination, exchange.plan.load.vectorBits, 32));
    }
  }
}

TEST(ExchangeRounds, WarpsTakeTurnsWhereNoRegisterIsLeft) {
  // Rows of warps become columns of warps, with no bit in registers on both sides.
  LinearLayout rows({128, 8}), columns({128, 8});
  rows.columns(HwDim::Reg) = {1, 2, 4};
  rows.columns(HwDim::Lane) = {8, 16, 32, 64, 128};
  rows.columns(HwDim::Warp) = {256, 512};
  columns.columns(HwDim::Reg) = {128, 256, 512};
  columns.columns(HwDim::Lane) = {8, 16, 32, 64, 1};
  columns.columns(HwDim::Warp) = {2, 4};
  // 1 and 128 are a lane's.
  EXPECT_EQ(getPossibleRounds(rows, columns), (llvm::SmallVector<unsigned>{1, 2, 4, 8, 16}));
  RoundedExchange exchange = planRounds(rows, columns, 32, {}, 2);
  expectArrives(rows, columns, exchange);
  SliceShare stored = exchange.slices.getShare(rows, 1),
             loaded = exchange.slices.getShare(columns, 1);
  EXPECT_NE(stored.isOfAllThreads(), loaded.isOfAllThreads());
  // Each of the four warps takes part in 4 of the 16 rounds, on both sides.
  expectArrives(rows, columns, planRounds(rows, columns, 32, {}, 16));
}

} // namespace
