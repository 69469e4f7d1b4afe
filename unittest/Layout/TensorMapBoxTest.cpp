// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes against where the elements of a tile really lie: what TMA does is done
// here byte by byte, as the manual describes it.

#include "tessera/Layout/TensorMapBox.h"

#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>

using namespace tessera;

namespace {

using Coordinates = std::vector<int64_t>;

/// Where each element of the tile lies, in bytes; repeats of an odd extent one after another.
std::map<Coordinates, int64_t> locate(const LinearLayout &memory, int64_t bytes) {
  auto offsets = *f2::inverse(memory.columns(HwDim::Offset), memory.elementBits());
  std::map<Coordinates, int64_t> places;
  llvm::SmallVector<int64_t> shape = memory.shape();
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  for (int64_t number = 0; number < count; ++number) {
    Coordinates at(shape.size());
    int64_t rest = number, repeat = 0;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
      at[dim] = rest % shape[dim];
    llvm::SmallVector<int64_t> inner;
    for (unsigned dim = 0; dim < memory.rank(); ++dim) {
      repeat = repeat * memory.oddFactor(dim) + (at[dim] >> memory.dimBits(dim));
      inner.push_back(at[dim] & ((int64_t(1) << memory.dimBits(dim)) - 1));
    }
    places[at] = ((repeat << memory.elementBits()) +
                  static_cast<int64_t>(f2::apply(offsets, memory.element(inner)))) *
                 bytes;
  }
  return places;
}

/// The offset in shared memory to which the copies of all boxes write each element.
std::map<Coordinates, int64_t> copy(const TensorMapBox &box, int64_t bytes) {
  std::map<Coordinates, int64_t> places;
  int64_t count =
      std::accumulate(box.extents.begin(), box.extents.end(), int64_t(1), std::multiplies<>());
  for (const TensorMapBox::Part &part : box.parts)
    for (int64_t number = 0; number < count; ++number) {
      Coordinates at(box.order.size());
      int64_t rest = number;
      for (size_t i = box.order.size(); i-- > 0; rest /= box.extents[i])
        at[box.order[i]] = part.coordinates[i] + rest % box.extents[i];
      int64_t address = part.offset + number * bytes;
      // The swizzle is a rule on addresses.
      if (box.swizzleBytes)
        address ^= address / 128 % (box.swizzleBytes / 16) * 16;
      EXPECT_TRUE(places.insert({at, address}).second) << "an element is copied twice";
    }
  return places;
}

TensorMapBox check(const LinearLayout &memory, unsigned bits) {
  std::optional<TensorMapBox> box = TensorMapBox::match(memory, bits);
  EXPECT_TRUE(box);
  if (!box)
    return {};
  EXPECT_EQ(copy(*box, bits / 8), locate(memory, bits / 8));
  for (const TensorMapBox::Part &part : box->parts)
    EXPECT_EQ(part.offset % (box->swizzleBytes ? 8 * box->swizzleBytes : 128), 0);
  for (int64_t extent : box->extents)
    EXPECT_LE(extent, kMaxBoxElements);
  return *box;
}

TEST(TensorMapBox, CoversOperandsOfProducts) {
  for (unsigned bits : {8, 16, 32})
    for (int64_t rows : {8, 64, 96, 256})
      for (int64_t columns : {16, 64, 96, 128, 192})
        for (unsigned fast : {0u, 1u}) {
          SCOPED_TRACE(testing::Message() << rows << "x" << columns << ", " << bits
                                          << " bits, dimension " << fast << " in rows");
          int64_t shape[2] = {rows, columns};
          LinearLayout memory = operandMemory(shape, fast, bits);
          int64_t inner = (bits / 8) << memory.dimBits(fast);
          if (inner < kBoxRowAlignment) {
            EXPECT_FALSE(TensorMapBox::match(memory, bits));
            continue;
          }
          TensorMapBox box = check(memory, bits);
          EXPECT_EQ(box.order.back(), fast);
        }
}

TEST(TensorMapBox, IsAsFewCopiesAsThereCanBe) {
  // 64 elements of 16 bits fill the widest swizzle.
  auto square = check(operandMemory({128, 64}, /*fast=*/1, 16), 16);
  EXPECT_EQ(square.extents, (llvm::SmallVector<int64_t>{128, 64}));
  EXPECT_EQ(square.swizzleBytes, 128u);
  EXPECT_EQ(square.parts.size(), 1u);
  auto wide = check(operandMemory({64, 256}, /*fast=*/1, 16), 16);
  ASSERT_EQ(wide.parts.size(), 4u);
  EXPECT_EQ(wide.parts[1].coordinates, (llvm::SmallVector<int64_t>{0, 64}));
  EXPECT_EQ(wide.parts[1].offset, 64 * 128);
  auto turned = check(operandMemory({64, 128}, /*fast=*/0, 16), 16);
  EXPECT_EQ(turned.order, (llvm::SmallVector<unsigned>{1, 0}));
  EXPECT_EQ(turned.extents, (llvm::SmallVector<int64_t>{128, 64}));
  // An odd number of rows goes on in the same box, one of panels does not.
  EXPECT_EQ(check(operandMemory({192, 64}, 1, 16), 16).parts.size(), 1u);
  EXPECT_EQ(check(operandMemory({64, 192}, 1, 16), 16).parts.size(), 3u);
  EXPECT_EQ(check(operandMemory({512, 64}, 1, 16), 16).parts.size(), 2u);
}

TEST(TensorMapBox, CanBeShorter) {
  LinearLayout memory = operandMemory({256, 128}, /*fast=*/1, 16);
  auto box = TensorMapBox::match(memory, 16, /*rows=*/64);
  ASSERT_TRUE(box);
  EXPECT_EQ(box->extents, (llvm::SmallVector<int64_t>{64, 64}));
  EXPECT_EQ(box->swizzleBytes, 128u);
  EXPECT_EQ(box->parts.size(), 8u);
  EXPECT_EQ(copy(*box, 2), locate(memory, 2));
  // With an odd number of them, too; and where there are not so many, nothing changes.
  auto odd = TensorMapBox::match(operandMemory({192, 64}, 1, 16), 16, 64);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->parts.size(), 3u);
  EXPECT_EQ(copy(*odd, 2), locate(operandMemory({192, 64}, 1, 16), 2));
  auto few = TensorMapBox::match(operandMemory({32, 64}, 1, 16), 16, 64);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->extents, (llvm::SmallVector<int64_t>{32, 64}));
}

TEST(TensorMapBox, CoversPlainMemoryOfAnyRank) {
  LinearLayout line({512}), cube({4, 8, 16});
  for (LinearLayout *layout : {&line, &cube})
    layout->columns(HwDim::Offset) = f2::unitVectors(layout->elementBits());
  EXPECT_EQ(check(line, 32).extents, (llvm::SmallVector<int64_t>{256}));
  EXPECT_EQ(check(line, 32).parts.size(), 2u);
  EXPECT_EQ(check(cube, 16).extents, (llvm::SmallVector<int64_t>{4, 8, 16}));
  EXPECT_EQ(check(cube, 16).swizzleBytes, 0u);
}

TEST(TensorMapBox, RefusesWhatIsInNoBoxes) {
  // The XOR of another width than rows have.
  int64_t shape[2] = {64, 64};
  EXPECT_FALSE(TensorMapBox::match(swizzledMemory(shape, 8, 2, 4), 16));
  // Neighbours that are apart.
  LinearLayout apart({8, 64});
  apart.columns(HwDim::Offset) = {64, 128, 256, 1, 2, 4, 8, 16, 32};
  EXPECT_TRUE(TensorMapBox::match(apart, 16));
  std::swap(apart.columns(HwDim::Offset)[0], apart.columns(HwDim::Offset)[4]);
  EXPECT_FALSE(TensorMapBox::match(apart, 16));
}

} // namespace
