// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix and stmatrix against a simulation of the instruction, lane by lane; and whether
// they fit against trying every register, which knows nothing of columns.

#include "tessera/Layout/MatrixAccess.h"

#include "RandomLayout.h"
#include "tessera/Layout/Fragments.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Layout/LayoutConversion.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace tessera;

namespace {

LinearLayout rowMajor(llvm::ArrayRef<int64_t> shape) {
  LinearLayout memory(shape);
  memory.columns(HwDim::Offset) = f2::unitVectors(memory.elementBits());
  return memory;
}

/// Runs the instructions. The lanes must receive the elements of the layout.
void expectRight(const MatrixAccess &access, const LinearLayout &layout, const LinearLayout &memory,
                 unsigned bits) {
  unsigned perWord = 32 / bits, perHalf = perWord / 2, perRow = 128 / bits;
  ASSERT_EQ(access.elementsPerWord(), perWord);
  ASSERT_EQ(access.laneOffsets.size(), 5u);
  unsigned registers = 1u << layout.columns(HwDim::Reg).size();
  unsigned warps = 1u << layout.columns(HwDim::Warp).size();
  std::set<unsigned> seen;
  for (unsigned instruction = 0; instruction < access.numInstructions(); ++instruction)
    for (unsigned matrix = 0; matrix < access.numMatrices(); ++matrix)
      for (unsigned element = 0; element < perWord; ++element) {
        unsigned number = access.getRegister(instruction, matrix, element);
        ASSERT_LT(number, registers);
        ASSERT_TRUE(seen.insert(number).second);
        for (unsigned warp = 0; warp < warps; ++warp)
          for (unsigned lane = 0; lane < 32; ++lane) {
            unsigned row = lane / 4, column = lane % 4 * perWord + element;
            if (access.isTransposed) {
              row = lane % 4 * 2 + element / perHalf;
              column = lane / 4 * perHalf + element % perHalf;
            }
            uint64_t address = f2::apply(access.laneOffsets, 8 * matrix + row) ^
                               f2::apply(access.warpOffsets, warp) ^ access.getOffset(instruction);
            ASSERT_EQ(address % perRow, 0u) << "a row starts at 16 bytes";
            Place place{};
            place[static_cast<unsigned>(HwDim::Offset)] = address + column;
            ASSERT_EQ(memory.apply(place), layout.apply({number, lane, warp, 0, 0}))
                << "register " << number << " lane " << lane << " warp " << warp;
          }
      }
  EXPECT_EQ(seen.size(), registers);
}

/// True if the instruction can load each register of each warp, by its definition, without algebra.
bool canBeMoved(const LinearLayout &layout, const LinearLayout &memory, unsigned bits,
                bool transposed) {
  std::map<uint64_t, uint64_t> offsets;
  forEachPlace(memory, [&](const Place &place) { offsets[memory.apply(place)] = place[4]; });
  uint64_t perWord = 32 / bits, perRow = 128 / bits;
  uint64_t together = transposed ? perWord / 2 : perWord;
  unsigned registers = 1u << layout.columns(HwDim::Reg).size();
  unsigned warps = 1u << layout.columns(HwDim::Warp).size();
  if (registers < perWord)
    return false;
  auto offset = [&](unsigned number, unsigned lane, unsigned warp) {
    return offsets[layout.apply({number, lane, warp, 0, 0})];
  };
  for (unsigned number = 0; number < registers; ++number) {
    // Its place in the word, and the registers that share the word.
    uint64_t element = offset(number, 0, 0) % perRow;
    if (element >= together)
      return false;
    std::set<uint64_t> partners;
    for (unsigned other = 0; other < registers; ++other)
      if (offset(other, 0, 0) / perRow == offset(number, 0, 0) / perRow)
        partners.insert(offset(other, 0, 0) % perRow);
    if (partners.size() != together)
      return false;
    for (unsigned warp = 0; warp < warps; ++warp)
      for (unsigned lane = 0; lane < 32; ++lane) {
        uint64_t at = offset(number, lane, warp);
        uint64_t column = (transposed ? lane / 4 : lane % 4) * together + element;
        unsigned holder = transposed ? lane % 4 : lane & ~3u;
        if (at % perRow != column || at / perRow != offset(number, holder, warp) / perRow)
          return false;
      }
  }
  return true;
}

/// A layout and a memory that are not unlikely to fit: the low bits go where the
/// instruction wants them, now and then with two of them swapped.
std::pair<LinearLayout, LinearLayout> randomCandidates(std::mt19937 &rng, unsigned bits) {
  unsigned total = 6 + rng() % 5, warps = rng() % 3;
  LinearLayout layout({int64_t(1) << total}), memory = layout;
  unsigned rowBits = llvm::Log2_32(128 / bits), wordBits = llvm::Log2_32(32 / bits);
  bool transposed = bits <= 16 && rng() % 2;

  llvm::SmallVector<uint64_t> high;
  for (unsigned bit = rowBits; bit < total; ++bit)
    high.push_back(uint64_t(1) << bit);
  high.resize(high.size() + rng() % 3, 0); // copies
  std::shuffle(high.begin(), high.end(), rng);
  auto takeHigh = [&]() { return high.empty() ? 0 : high.pop_back_val(); };
  f2::Columns &lanes = layout.columns(HwDim::Lane);
  if (transposed) {
    uint64_t half = uint64_t(1) << (wordBits - 1);
    if (half == 2)
      layout.columns(HwDim::Reg).push_back(1);
    lanes = {takeHigh(), takeHigh(), half, 2 * half, 4 * half};
  } else {
    for (unsigned bit = 0; bit < wordBits; ++bit)
      layout.columns(HwDim::Reg).push_back(uint64_t(1) << bit);
    lanes = {uint64_t(1) << wordBits, uint64_t(2) << wordBits, takeHigh(), takeHigh(), takeHigh()};
  }
  for (unsigned warp = 0; warp < warps; ++warp)
    layout.columns(HwDim::Warp).push_back(takeHigh());
  while (!high.empty())
    layout.columns(HwDim::Reg).push_back(takeHigh());
  if (rng() % 4 == 0)
    std::swap(lanes[rng() % 5], lanes[rng() % 5]);
  if (rng() % 8 == 0 && !layout.columns(HwDim::Reg).empty())
    std::swap(lanes[rng() % 5], layout.columns(HwDim::Reg)[0]);

  // A swizzle: a row's place among rows is any, and where a row starts may follow the row.
  f2::Columns &offsets = memory.columns(HwDim::Offset);
  offsets = f2::unitVectors(total);
  std::shuffle(offsets.begin() + rowBits, offsets.end(), rng);
  for (unsigned bit = rowBits + 1; bit < total; ++bit)
    if (rng() % 2)
      offsets[bit] ^= offsets[rowBits + rng() % (bit - rowBits)];
  // A row whose bytes are swapped, but not one of the two in a word of transposed ones.
  if (rng() % 16 == 0 && !(transposed && bits == 8))
    offsets[total - 1] ^= 1;
  return {layout.canonical(), memory};
}

TEST(MatrixAccess, FitsExactlyWhereTheInstructionDoes) {
  std::mt19937 rng(4);
  std::map<std::pair<unsigned, int>, int> seen;
  for (int i = 0; i < 6000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 8u << rng() % 3;
    auto [layout, memory] = randomCandidates(rng, bits);
    ASSERT_EQ(layout.whyNotDistributed(), "");
    ASSERT_EQ(memory.whyNotMemory(), "");
    auto access = matchMatrixAccess(layout, memory, bits, /*isOperand=*/i % 2 == 0);
    bool plain = canBeMoved(layout, memory, bits, /*transposed=*/false);
    bool transposed = bits <= 16 && canBeMoved(layout, memory, bits, /*transposed=*/true);
    std::string text;
    llvm::raw_string_ostream os(text);
    layout.print(os);
    memory.print(os << "; ");
    ASSERT_EQ(access.has_value(), plain || transposed) << bits << " bits, " << text;
    ++seen[{bits, access ? 1 + access->isTransposed : 0}];
    if (access)
      expectRight(*access, layout, memory, bits);
  }
  EXPECT_EQ(seen.size(), 8u) << "each width fits and does not, 8 and 16 bits in two ways";
}

/// Wavefronts of a matrix by looking at each row's banks.
unsigned countWavefronts(const MatrixAccess &access, unsigned bits) {
  unsigned total = 0;
  for (unsigned matrix = 0; matrix < access.numMatrices(); ++matrix) {
    std::map<uint64_t, std::set<uint64_t>> wordsOfBank;
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned word = 0; word < 4; ++word) {
        uint64_t at = f2::apply(access.laneOffsets, 8 * matrix + row) * bits / 32 + word;
        wordsOfBank[at % 32].insert(at);
      }
    size_t most = 1;
    for (auto &[bank, words] : wordsOfBank)
      most = std::max(most, words.size());
    total += most;
  }
  return total;
}

TEST(MatrixAccess, WavefrontsAreCountedExactly) {
  std::mt19937 rng(5);
  std::set<unsigned> seen;
  for (int i = 0; i < 20000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 8u << rng() % 3;
    MatrixAccess access;
    access.matrixBits.resize(rng() % 3);
    for (int lane = 0; lane < 5; ++lane)
      access.laneOffsets.push_back(uint64_t(rng() % 256) * (128 / bits));
    ASSERT_EQ(wavefronts(access, bits), countWavefronts(access, bits));
    seen.insert(wavefronts(access, bits));
  }
  EXPECT_GE(seen.size(), 4u);
}

struct Fragment {
  const char *name;
  LinearLayout layout;
  unsigned bits;
  bool isTransposed;
};

TEST(MatrixAccess, OperandsOfProductsUnderEverySwizzle) {
  const Fragment fragments[] = {
      {"a16", mmaOperandA({64, 64}, 16, 2, 2, 2), 16, false},
      {"a8", mmaOperandA({64, 128}, 8, 2, 4, 1), 8, false},
      {"a32", mmaOperandA({64, 32}, 32, 2, 2, 1), 32, false},
      {"wgmma a16", wgmmaOperandA({64, 64}, 16, 1, 1), 16, false},
      {"wgmma a8", wgmmaOperandA({64, 128}, 8, 1, 2), 8, false},
      {"b16", mmaOperandB({64, 64}, 16, 2, 2, 2), 16, true},
      {"accumulator of f16", wgmmaAccumulator({64, 64}, 1, 1), 16, false},
  };
  for (const Fragment &fragment : fragments)
    for (unsigned width : {0u, 32u, 64u, 128u}) {
      SCOPED_TRACE(std::string(fragment.name) + ", swizzle " + std::to_string(width));
      LinearLayout memory = nvidiaSwizzle(fragment.layout.shape(), width, fragment.bits);
      auto access = matchMatrixAccess(fragment.layout, memory, fragment.bits);
      ASSERT_TRUE(access);
      EXPECT_EQ(access->isTransposed, fragment.isTransposed);
      EXPECT_EQ(access->numMatrices(), 4u);
      expectRight(*access, fragment.layout, memory, fragment.bits);
      if (width == 128) {
        EXPECT_EQ(wavefronts(*access, fragment.bits), 4u) << "one a matrix";
      }
    }
  // b whose columns are contiguous is as a whose rows are.
  LinearLayout b = mmaOperandB({64, 64}, 16, 2, 1, 4);
  LinearLayout byColumns = nvidiaSwizzle({64, 64}, 128, 16).transpose({1, 0});
  auto access = matchMatrixAccess(b, byColumns, 16);
  ASSERT_TRUE(access && !access->isTransposed);
  expectRight(*access, b, byColumns, 16);
}

/// An operand's rows in the order in which transposed bytes come: the second element of a
/// pair 8 rows further.
LinearLayout withPairs(const LinearLayout &layout) {
  int64_t rows = layout.extent(0), k = layout.extent(1);
  return layout.reshape({rows / 16, 2, 8, k})->transpose({0, 2, 1, 3}).reshape({rows, k}).value();
}

TEST(MatrixAccess, BytesAcrossRowsInMemoryForFragments) {
  for (int64_t rows : {128, 256}) {
    LinearLayout layout = withPairs(wgmmaOperandA({rows, 128}, 8, 2, 1));
    LinearLayout memory = fragmentMemory({128, rows}, 1, 8).transpose({1, 0});
    auto access = matchMatrixAccess(layout, memory, 8);
    ASSERT_TRUE(access && access->isTransposed);
    EXPECT_EQ(access->numMatrices(), 4u);
    expectRight(*access, layout, memory, 8);
    EXPECT_EQ(wavefronts(*access, 8), 4u) << "one a matrix";
    // Rows of K have no conflicts there, either.
    auto along = matchMatrixAccess(wgmmaOperandA({rows, 128}, 8, 2, 1),
                                   fragmentMemory({rows, 128}, 1, 8), 8);
    ASSERT_TRUE(along && !along->isTransposed);
    EXPECT_EQ(wavefronts(*along, 8), 4u);
  }
}

/// How many banks a warp reads at once, of words.
size_t countBanks(const LinearLayout &layout, const LinearLayout &memory) {
  f2::Columns address = *f2::inverse(memory.columns(HwDim::Offset), memory.elementBits());
  std::set<uint64_t> banks;
  for (unsigned lane = 0; lane < 32; ++lane)
    banks.insert(f2::apply(address, f2::apply(layout.columns(HwDim::Lane), lane)) % 32);
  return banks.size();
}

TEST(MatrixAccess, WordsAcrossRowsInMemoryForFragments) {
  LinearLayout memory = fragmentMemory({32, 128}, 1, 32);
  ASSERT_EQ(memory.whyNotMemory(), "");
  LinearLayout fragment = wgmmaOperandA({128, 32}, 32, 2, 1).transpose({1, 0});
  EXPECT_EQ(countBanks(fragment, memory), 32u);
  EXPECT_EQ(countBanks(mmaOperandB({32, 128}, 32, 2, 2, 2), memory), 32u);
  // With rows ordered as AccelerateMatmul has them, also as a copy by a tensor map leaves them.
  LinearLayout ordered =
      fragment.reshape({32, 4, 4, 2, 4})->transpose({0, 1, 3, 2, 4}).reshape({32, 128}).value();
  EXPECT_EQ(countBanks(ordered, memory), 32u);
  EXPECT_EQ(countBanks(ordered, operandMemory({32, 128}, 1, 32)), 32u);
  EXPECT_EQ(countBanks(fragment, operandMemory({32, 128}, 1, 32)), 16u);
  // Along K there are none, either.
  LinearLayout along = fragmentMemory({128, 32}, 1, 32);
  EXPECT_EQ(countBanks(wgmmaOperandA({128, 32}, 32, 2, 1), along), 32u);
}

TEST(MatrixAccess, TakesRegistersInTheOrderOfTheMMA) {
  // Registers by number: k 1, k 8, k 16, m 8, m 16. An MMA takes m 8, then k 8.
  LinearLayout a = mmaOperandA({32, 32}, 16, 1, 1, 1);
  ASSERT_EQ(a.columns(HwDim::Reg), (llvm::ArrayRef<uint64_t>{1, 8, 16, 256, 512}));
  auto access = matchMatrixAccess(a, nvidiaSwizzle({32, 32}, 64, 16), 16, true);
  ASSERT_TRUE(access && !access->isTransposed);
  EXPECT_EQ(access->wordBits, (llvm::ArrayRef<unsigned>{0}));
  EXPECT_EQ(access->matrixBits, (llvm::ArrayRef<unsigned>{3, 1}));
  EXPECT_EQ(access->otherBits, (llvm::ArrayRef<unsigned>{2, 4}));

  // Registers by number: n 8, n 16, k 1, k 8, k 16. A word has neighbours along k, and an MMA takes
  // k 8 next. So it is whatever the memory's order.
  LinearLayout b = mmaOperandB({32, 32}, 16, 2, 1, 1), rows = nvidiaSwizzle({32, 32}, 64, 16);
  ASSERT_EQ(b.columns(HwDim::Reg), (llvm::ArrayRef<uint64_t>{8, 16, 32, 256, 512}));
  for (bool isTransposed : {true, false}) {
    SCOPED_TRACE(isTransposed);
    LinearLayout memory = isTransposed ? rows : rows.transpose({1, 0});
    access = matchMatrixAccess(b, memory, 16, /*isOperand=*/true);
    ASSERT_TRUE(access && access->isTransposed == isTransposed);
    EXPECT_EQ(access->wordBits, (llvm::ArrayRef<unsigned>{2}));
    EXPECT_EQ(access->matrixBits, (llvm::ArrayRef<unsigned>{3, 0}));
    EXPECT_EQ(access->otherBits, (llvm::ArrayRef<unsigned>{1, 4}));
    expectRight(*access, b, memory, 16);
  }

  // The step before the first one of 32 bits is none of k, but the last column.
  LinearLayout wide = mmaOperandB({8, 32}, 32, 1, 1, 1);
  ASSERT_EQ(wide.columns(HwDim::Reg), (llvm::ArrayRef<uint64_t>{8, 16, 128}));
  access = matchMatrixAccess(wide, nvidiaSwizzle({32, 8}, 32, 32).transpose({1, 0}), 32, true);
  ASSERT_TRUE(access && !access->isTransposed);
  EXPECT_EQ(access->matrixBits, (llvm::ArrayRef<unsigned>{2, 0}));
}

TEST(MatrixAccess, DoesNotFitOtherTiles) {
  LinearLayout rows = blocked({64, 64}, {1, 8}, {8, 4}, {4, 1}, {1, 0});
  EXPECT_FALSE(matchMatrixAccess(rows, rowMajor({64, 64}), 16)) << "8 elements a lane, not 2";
  LinearLayout accumulator = mmaAccumulator({64, 64}, 2, 2);
  EXPECT_TRUE(matchMatrixAccess(accumulator, rowMajor({64, 64}), 16));
  EXPECT_FALSE(matchMatrixAccess(accumulator, rowMajor({64, 64}), 32)) << "2 elements a lane";
  EXPECT_FALSE(matchMatrixAccess(accumulator, rowMajor({64, 64}), 64));
  // An accumulator of one column of tiles has few registers: one instruction of one matrix.
  auto small =
      matchMatrixAccess(mmaOperandB({8, 8}, 16, 1, 1, 1), rowMajor({8, 8}).transpose({1, 0}), 16);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->numMatrices(), 1u);
  EXPECT_EQ(small->numInstructions(), 1u);
}

} // namespace
