// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges through shared memory, simulated element by element; bank conflicts against
// counting them lane by lane.

#include "tessera/Layout/MemoryExchange.h"

#include "RandomLayout.h"
#include "tessera/Layout/Fragments.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Layout/LayoutConversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace tessera;

namespace {

/// Wavefronts of one warp-wide access by looking at each lane's words.
unsigned countWavefronts(llvm::ArrayRef<uint64_t> lanes, unsigned vectorBits, unsigned bits) {
  unsigned bytes = std::max(4u, (bits << vectorBits) / 8);
  unsigned lanesOfAPhase = std::max(8u, 32 * 4 / bytes), total = 0;
  for (unsigned first = 0; first < 32; first += lanesOfAPhase) {
    std::map<uint64_t, std::set<uint64_t>> wordsOfBank;
    for (unsigned lane = first; lane < first + lanesOfAPhase; ++lane)
      for (unsigned element = 0; element < 1u << vectorBits; ++element) {
        uint64_t byte = (f2::apply(lanes, lane) + element) * bits / 8;
        for (uint64_t word = byte / 4; word <= (byte + bits / 8 - 1) / 4; ++word)
          wordsOfBank[word % 32].insert(word);
      }
    size_t most = 1;
    for (auto &[bank, words] : wordsOfBank)
      most = std::max(most, words.size());
    total += most;
  }
  return total;
}

TEST(MemoryExchange, WavefrontFormulaCountsExactly) {
  std::mt19937 rng(2);
  for (int i = 0; i < 100000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 8u << rng() % 4, vectorBits = rng() % 3;
    if (bits << vectorBits > 128)
      continue;
    f2::Columns lanes;
    for (int lane = 0; lane < 5; ++lane)
      lanes.push_back(uint64_t(rng() % 256) << vectorBits);
    EXPECT_EQ(wavefronts(lanes, vectorBits, bits), countWavefronts(lanes, vectorBits, bits));
  }
}

TEST(MemoryExchange, SwizzlesHaveNoConflictsOnEitherSide) {
  std::mt19937 rng(3);
  for (int i = 0; i < 100000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{8, 12, 5, 3, 0, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 4;
    LinearLayout source = randomLayout(rng, shape, options, warps, 0);
    LinearLayout destination = randomLayout(rng, shape, options, warps, 0);
    unsigned bits = 8u << rng() % 4;
    SwizzlePlan plan = planSwizzle(source, destination, bits);
    LinearLayout memory = plan.layout(source);
    ASSERT_EQ(memory.whyNotMemory(), "");
    auto address = f2::inverse(memory.columns(HwDim::Offset), memory.elementBits());
    ASSERT_TRUE(address);
    if ((bits << plan.vector.size()) < 32)
      continue;
    for (const LinearLayout *side : {&source, &destination}) {
      f2::Columns lanes, registers, others;
      for (uint64_t column : side->columns(HwDim::Lane))
        lanes.push_back(f2::apply(*address, column));
      for (uint64_t column : side->columns(HwDim::Reg))
        registers.push_back(f2::apply(*address, column));
      for (HwDim dim : {HwDim::Lane, HwDim::Warp})
        for (uint64_t column : side->columns(dim))
          others.push_back(f2::apply(*address, column));
      unsigned vectorBits = vectorizableBits(registers, others, plan.vector.size());
      // If the vector's bits are not registers of this side, it moves fewer elements at a time, and
      // the guarantee is only for the full vector.
      if (vectorBits != plan.vector.size())
        continue;
      unsigned phases = std::max(1u, (bits << vectorBits) / 32);
      EXPECT_EQ(wavefronts(lanes, vectorBits, bits), phases) << "bits " << bits;
    }
  }
}

TEST(MemoryExchange, VectorsAreOfWhatRegistersReach) {
  EXPECT_EQ(vectorizableBits({1, 2, 4}, {8, 16}, 4), 3u);
  EXPECT_EQ(vectorizableBits({1, 4}, {8}, 4), 1u);
  EXPECT_EQ(vectorizableBits({1, 2}, {3}, 4), 0u);
  // A swizzle may mix high bits in, as long as the low ones take every value.
  EXPECT_EQ(vectorizableBits({1 | 64, 2 | 128}, {4}, 4), 2u);
}

/// Checks the plan of one side, lane by lane.
void expectCounted(const MemoryAccess &access, const LinearLayout &layout,
                   const LinearLayout &memory, unsigned bits) {
  unsigned registers = 1u << layout.columns(HwDim::Reg).size();
  if (access.matrix) {
    EXPECT_EQ(access.instructions, access.matrix->numInstructions());
    EXPECT_EQ(access.instructions * access.matrix->numMatrices() * access.matrix->elementsPerWord(),
              registers);
    EXPECT_EQ(access.wavefronts, access.instructions * wavefronts(*access.matrix, bits));
    return;
  }
  auto address = f2::inverse(memory.columns(HwDim::Offset), memory.elementBits());
  ASSERT_TRUE(address);
  auto offset = [&](unsigned reg, unsigned lane, unsigned warp) {
    return f2::apply(*address, layout.apply({reg, lane, warp, 0, 0}));
  };
  // Registers that go together: the same piece of memory in every thread, whole.
  uint64_t length = uint64_t(1) << access.vectorBits;
  unsigned warps = 1u << layout.columns(HwDim::Warp).size();
  std::map<uint64_t, std::set<unsigned>> groups;
  for (unsigned reg = 0; reg < registers; ++reg)
    groups[offset(reg, 0, 0) / length].insert(reg);
  EXPECT_EQ(groups.size(), access.instructions);
  unsigned total = 0;
  for (auto &[start, group] : groups) {
    ASSERT_EQ(group.size(), length);
    for (unsigned reg : group)
      for (unsigned warp = 0; warp < warps; ++warp)
        for (unsigned lane = 0; lane < 32; ++lane)
          ASSERT_EQ(offset(reg, lane, warp) % length, offset(reg, 0, 0) % length);
    f2::Columns lanes;
    for (unsigned lane = 0; lane < 5; ++lane)
      lanes.push_back(offset(0, 1u << lane, 0));
    total += countWavefronts(lanes, access.vectorBits, bits);
  }
  EXPECT_EQ(access.wavefronts, total);
}

TEST(MemoryExchange, PlansAreWhatTheyCountAndNoWorseThanSymmetricOnes) {
  std::mt19937 rng(6);
  constexpr MatrixInstructions none, loads{true, false}, both{true, true};
  unsigned better = 0, asymmetric = 0, byMatrices = 0;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{8, 11, 5, 3, 0, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 3;
    LinearLayout source = randomLayout(rng, shape, options, warps, 0);
    LinearLayout destination = randomLayout(rng, shape, options, warps, 0);
    unsigned bits = 8u << rng() % 4;
    LinearLayout swizzled = planSwizzle(source, destination, bits).layout(source);
    double symmetric = planAccess(source, swizzled, bits, false).getCost() +
                       planAccess(destination, swizzled, bits, false).getCost();
    double before = symmetric;
    for (MatrixInstructions matrices : {none, loads, both}) {
      ExchangePlan plan = planExchange(source, destination, bits, matrices);
      ASSERT_EQ(plan.memory.whyNotMemory(), "");
      expectCounted(plan.store, source, plan.memory, bits);
      expectCounted(plan.load, destination, plan.memory, bits);
      EXPECT_LE(plan.getCost(), before) << "more instructions cannot make it worse";
      EXPECT_TRUE(matrices.forStores || !plan.store.matrix);
      EXPECT_TRUE(matrices.forLoads || !plan.load.matrix);
      before = plan.getCost();
      // Repeats lie one behind the other, each as if it were alone.
      EXPECT_EQ(plan.memory.shape(), source.shape());
      ExchangePlan alone = planExchange(getRepeat(source), getRepeat(destination), bits, matrices);
      EXPECT_EQ(alone.memory, getRepeat(plan.memory));
      EXPECT_EQ(alone.getCost(), plan.getCost());
      byMatrices += plan.store.matrix || plan.load.matrix;
      asymmetric += plan.store.vectorBits != plan.load.vectorBits;
    }
    better += before < symmetric;
  }
  // Most random pairs have few registers in common.
  EXPECT_GT(better, 300u);
  EXPECT_GT(asymmetric, 300u);
  EXPECT_GE(byMatrices, 1u);
}

/// The best that a side can do: the widest vectors that its registers allow, no conflicts.
unsigned idealWavefronts(const LinearLayout &layout, unsigned vectorBits, unsigned bits) {
  unsigned accesses = 1u << (layout.columns(HwDim::Reg).size() - vectorBits);
  return accesses * std::max(1u, (bits << vectorBits) / 32);
}

TEST(MemoryExchange, WiderOnOneSideIsFreeOfConflictsOnBoth) {
  std::mt19937 rng(7);
  unsigned seen = 0;
  for (int i = 0; i < 40000; ++i) {
    SCOPED_TRACE(i);
    RandomShape options{9, 12, 5, 2, 0, /*hasOddFactors=*/true};
    auto shape = randomShape(rng, options);
    unsigned warps = rng() % 3;
    LinearLayout source = randomLayout(rng, shape, options, warps, 0);
    LinearLayout destination = randomLayout(rng, shape, options, warps, 0);
    unsigned bits = 32u << rng() % 2;
    ExchangePlan plan = planExchange(source, destination, bits, {});
    if (plan.store.vectorBits == plan.load.vectorBits)
      continue;
    ++seen;
    EXPECT_EQ(plan.store.wavefronts, idealWavefronts(source, plan.store.vectorBits, bits));
    EXPECT_EQ(plan.load.wavefronts, idealWavefronts(destination, plan.load.vectorBits, bits));
  }
  EXPECT_GT(seen, 5000u);
}

struct Expected {
  const char *name;
  LinearLayout source, destination;
  unsigned bits;
  MatrixInstructions matrices;
  unsigned instructions, wavefronts;
};

TEST(MemoryExchange, WorkedExamples) {
  LinearLayout accumulator = mmaAccumulator({64, 64}, 4, 1);
  LinearLayout rowsOf8 = blocked({64, 64}, {1, 8}, {4, 8}, {4, 1}, {1, 0});
  LinearLayout rowsOf4 = blocked({64, 64}, {1, 4}, {2, 16}, {4, 1}, {1, 0});
  LinearLayout columnsOf4 = blocked({64, 64}, {4, 1}, {16, 2}, {1, 4}, {0, 1});
  LinearLayout squares = blocked({128, 128}, {8, 8}, {2, 16}, {8, 1}, {1, 0});
  LinearLayout squaresTurned = blocked({128, 128}, {8, 8}, {16, 2}, {1, 8}, {0, 1});
  constexpr MatrixInstructions none, all{true, true};
  const Expected cases[] = {
      {"accumulator to rows, f16: 32 bits there, 128 here", accumulator, rowsOf8, 16, none, 16 + 4,
       16 + 16},
      {"with stmatrix", accumulator, rowsOf8, 16, all, 4 + 4, 16 + 16},
      {"rows to accumulator with ldmatrix", rowsOf8, accumulator, 16, all, 4 + 4, 16 + 16},
      {"accumulator to rows, f32", accumulator, rowsOf4, 32, none, 8 + 8, 32 + 32},
      {"transposing f32: 128 bits there, 32 here", rowsOf4, columnsOf4, 32, none, 8 + 32, 32 + 32},
      {"squares of 8x8 f16 turn in registers", squares, squaresTurned, 16, none, 8 + 8, 32 + 32},
  };
  for (const Expected &expected : cases) {
    SCOPED_TRACE(expected.name);
    ExchangePlan plan =
        planExchange(expected.source, expected.destination, expected.bits, expected.matrices);
    EXPECT_EQ(plan.store.instructions + plan.load.instructions, expected.instructions);
    EXPECT_EQ(plan.store.wavefronts + plan.load.wavefronts, expected.wavefronts);
    EXPECT_EQ(plan.store.matrix.has_value() || plan.load.matrix.has_value(),
              expected.matrices.forStores);
  }
}

} // namespace
