// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptors against where the elements of an operand really lie: the instruction is
// walked through as the PTX manual describes it, address by address.

#include "tessera/Layout/MatrixDescriptor.h"

#include "tessera/Layout/LayoutConstructors.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// The byte that an instruction with this descriptor and start address takes for row `mn`
/// and step `k` of its operand.
int64_t walk(const MatrixDescriptor &descriptor, int64_t start, int64_t mn, int64_t k,
             int64_t bytes) {
  uint64_t bits = descriptor.getBits();
  int64_t leading = (bits >> 16 & 0x3fff) << 4, stride = (bits >> 32 & 0x3fff) << 4;
  int64_t width = descriptor.getSwizzleBytes(), address;
  if (descriptor.isKMajor()) {
    address = start + mn / 8 * stride + mn % 8 * width + k * bytes;
  } else {
    int64_t perPanel = width / bytes;
    address =
        start + mn / perPanel * leading + mn % perPanel * bytes + k / 8 * stride + k % 8 * width;
  }
  // The swizzle is a rule on addresses.
  int64_t chunks = width / 16;
  return address ^ (address / 128 % chunks * 16);
}

/// Where an element lies, repeats of an odd extent one after the other.
int64_t locate(const LinearLayout &memory, int64_t row, int64_t column, int64_t bytes) {
  auto offsets = *f2::inverse(memory.columns(HwDim::Offset), memory.elementBits());
  int64_t repeat = (row >> memory.dimBits(0)) * memory.oddFactor(1) + (column >> memory.dimBits(1));
  int64_t inner[2] = {row & ((int64_t(1) << memory.dimBits(0)) - 1),
                      column & ((int64_t(1) << memory.dimBits(1)) - 1)};
  return ((repeat << memory.elementBits()) +
          static_cast<int64_t>(f2::apply(offsets, memory.element(inner)))) *
         bytes;
}

void expectReads(int64_t mn, int64_t k, bool isA, bool kMajor, unsigned bits, int64_t extent) {
  SCOPED_TRACE(testing::Message() << mn << "x" << k << (isA ? " a" : " b")
                                  << (kMajor ? " K-major " : " M-major ") << bits << " bits, "
                                  << extent << " at once");
  int64_t shape[2] = {isA ? mn : k, isA ? k : mn};
  unsigned kDim = isA ? 1 : 0;
  LinearLayout memory = operandMemory(shape, kMajor ? kDim : 1 - kDim, bits);
  auto descriptor = MatrixDescriptor::match(memory, kDim, bits);
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(descriptor->isKMajor(), kMajor);
  ASSERT_TRUE(descriptor->covers(extent));
  int64_t bytes = bits / 8, stepK = 32 / bytes;
  for (int64_t row = 0; row < mn; row += extent)
    for (int64_t step = 0; step < k; step += stepK) {
      int64_t start = descriptor->getOffset(row, step);
      for (int64_t i = 0; i < extent; ++i)
        for (int64_t j = 0; j < stepK; ++j) {
          int64_t at[2] = {isA ? row + i : step + j, isA ? step + j : row + i};
          ASSERT_EQ(walk(*descriptor, start, i, j, bytes), locate(memory, at[0], at[1], bytes))
              << "row " << row + i << ", k " << step + j;
        }
    }
}

TEST(MatrixDescriptor, ReadsEveryElementOfAnOperand) {
  for (bool isA : {true, false})
    for (bool kMajor : {true, false})
      for (int64_t mn : {64, 128, 256})
        for (int64_t k : {16, 32, 64, 128}) {
          expectReads(mn, k, isA, kMajor, 16, 64);
          if (!isA)
            expectReads(mn, k, isA, kMajor, 16, mn);
        }
}

TEST(MatrixDescriptor, ReadsOtherWidths) {
  for (unsigned bits : {8u, 32u})
    for (int64_t steps : {1, 2, 4, 8})
      expectReads(64, steps * 256 / bits, true, true, bits, 64);
}

TEST(MatrixDescriptor, ReadsNarrowPanels) {
  for (int64_t mn : {16, 32, 64})
    expectReads(mn, 32, false, false, 16, mn);
  // Half of a panel at a time.
  expectReads(128, 32, false, false, 16, 32);
}

TEST(MatrixDescriptor, TakesOddExtentsAtOnce) {
  expectReads(192, 64, false, true, 16, 192);
  expectReads(192, 64, false, false, 16, 192);
  expectReads(96, 64, false, true, 16, 96);
  expectReads(96, 64, false, false, 16, 96);
  expectReads(192, 64, true, true, 16, 64);
}

TEST(MatrixDescriptor, KnowsWhereStridesChange) {
  // Three tiles of 64 x 128, each in two panels: no stride leads from one to the next.
  int64_t shape[2] = {128, 192};
  LinearLayout memory = operandMemory(shape, 0, 16);
  auto descriptor = MatrixDescriptor::match(memory, 0, 16);
  ASSERT_TRUE(descriptor);
  EXPECT_FALSE(descriptor->covers(192));
  EXPECT_TRUE(descriptor->covers(64));
}

TEST(MatrixDescriptor, RefusesOtherMemory) {
  int64_t shape[2] = {64, 64};
  EXPECT_FALSE(MatrixDescriptor::match(swizzledMemory(shape, 1, 1, 1), 1, 16));
  EXPECT_FALSE(MatrixDescriptor::match(swizzledMemory(shape, 8, 2, 4), 1, 16));
  int64_t narrow[2] = {64, 8};
  EXPECT_FALSE(MatrixDescriptor::match(operandMemory(narrow, 1, 16), 1, 16));
}

} // namespace
