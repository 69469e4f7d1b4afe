// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates recipes with arguments. python/test/runtime/test_fake_gpu.py tests with a fake driver
// that the driver receives the result.

#include "tessera/Runtime/CUDA/TensorMap.h"

#include "gtest/gtest.h"

using namespace tessera::cuda;

namespace {

LaunchExpression constant(int64_t value) { return {{{value, {}}}}; }
LaunchExpression argument(int number, bool isWide = false) { return {{{1, {{number, isWide}}}}}; }

TEST(LaunchExpression, SumsProducts) {
  // 3 * a0 * a1 - 2 * a2 + 7
  LaunchExpression expression{{{3, {{0, false}, {1, true}}}, {-2, {{2, false}}}, {7, {}}}};
  uint64_t slots[] = {5, uint64_t(1) << 33, static_cast<uint64_t>(int64_t(-4))};
  EXPECT_EQ(expression.evaluate(slots), 15 * (int64_t(1) << 33) + 8 + 7);
  EXPECT_EQ(LaunchExpression().evaluate(slots), 0);
}

TEST(LaunchExpression, LooksAtAsManyBitsAsThereAre) {
  uint64_t slots[] = {0xdeadbeef00000005, 0xfffffffe};
  EXPECT_EQ(argument(0).evaluate(slots), 5);
  EXPECT_EQ(argument(1).evaluate(slots), -2);
  EXPECT_EQ(argument(1, /*isWide=*/true).evaluate(slots), 0xfffffffe);
}

TEST(LaunchExpression, GivesUpBeyond64Bits) {
  uint64_t slots[] = {uint64_t(1) << 62};
  LaunchExpression product{{{4, {{0, true}}}}};
  EXPECT_EQ(product.evaluate(slots), std::nullopt);
  LaunchExpression sum{{{1, {{0, true}}}, {1, {{0, true}}}}};
  EXPECT_EQ(sum.evaluate(slots), std::nullopt);
}

/// rows (argument 2) of 8 columns, `argument 3` apart, of floats.
ArrayRange rowsOf(int array) {
  return {array, 4, {{argument(2), argument(3), {}}, {constant(8), constant(1), {}}}};
}

constexpr int32_t kGrid[3] = {4, 1, 1};

TEST(ArrayRange, ReachesFromTheFirstToTheLastElement) {
  uint64_t slots[] = {0x1000, 0, 3, 10};
  EXPECT_EQ(rowsOf(0).evaluate(slots, kGrid),
            std::pair(uint64_t(0x1000), uint64_t(0x1000 + 4 * 28)));
  // Rows one above the other.
  slots[3] = static_cast<uint32_t>(-10);
  EXPECT_EQ(rowsOf(0).evaluate(slots, kGrid),
            std::pair(uint64_t(0x1000 - 4 * 20), uint64_t(0x1000 + 4 * 8)));
  slots[2] = 0;
  EXPECT_EQ(rowsOf(0).evaluate(slots, kGrid), std::pair(uint64_t(0x1000), uint64_t(0x1000)));
}

/// Blocks of 16 elements, one or more a program, of floats.
ArrayRange blocksFrom(const char *first, int stride = 1) {
  return {0, 4, {{constant(16), constant(stride), *ProgramBound::parse(first, 4)}}};
}

TEST(ArrayRange, ReachesAllThatProgramsAndIterationsDo) {
  uint64_t slots[] = {0x1000, 0, 3, 100};
  auto range = [](int64_t begin, int64_t end) {
    return std::pair(uint64_t(0x1000 + 4 * begin), uint64_t(0x1000 + 4 * end));
  };
  EXPECT_EQ(blocksFrom("(mul32 program:0 16)").evaluate(slots, kGrid), range(0, 64));
  EXPECT_EQ(blocksFrom("(mul32 program:0 16)", -1).evaluate(slots, kGrid), range(-63, 1));
  EXPECT_EQ(blocksFrom("(sub32 0 (mul32 program:0 16))").evaluate(slots, kGrid), range(-48, 16));
  // From 0 to 96; and from 48 to 96, or to nowhere.
  EXPECT_EQ(blocksFrom("(loop16 0 i32:3)").evaluate(slots, kGrid), range(0, 112));
  EXPECT_EQ(blocksFrom("(loop16 48 i32:3)").evaluate(slots, kGrid), range(48, 112));
  EXPECT_EQ(blocksFrom("(loop16 48 i32:2)").evaluate(slots, kGrid), range(48, 64));
  EXPECT_EQ(blocksFrom("(div32 1 i32:1)").evaluate(slots, kGrid), std::nullopt);
}

TEST(ArraysApart, TellsViewsFromArrays) {
  ArraysApart pair{rowsOf(0), rowsOf(1)};
  uint64_t slots[] = {0x1000, 0x1000 + 4 * 28, 3, 10};
  EXPECT_TRUE(pair.holds(slots, kGrid));
  std::swap(slots[0], slots[1]);
  EXPECT_TRUE(pair.holds(slots, kGrid));
  slots[1] = slots[0];
  EXPECT_FALSE(pair.holds(slots, kGrid)) << "one array";
  slots[1] = slots[0] - 4 * 27;
  EXPECT_FALSE(pair.holds(slots, kGrid)) << "the last element is the first one of the other";
  slots[2] = 0;
  EXPECT_TRUE(pair.holds(slots, kGrid)) << "arrays of nothing";
}

TEST(ArraysApart, DoesNotHoldWhereItCannotBeTold) {
  ArrayRange wide{0, 8, {{argument(2, true), constant(int64_t(1) << 40), {}}}};
  uint64_t slots[] = {0x1000, 0x2000, uint64_t(1) << 40};
  EXPECT_EQ(wide.evaluate(slots, kGrid), std::nullopt);
  EXPECT_FALSE((ArraysApart{wide, {1, 8, {}}}).holds(slots, kGrid));
  // Beyond the end of memory.
  slots[0] = ~uint64_t(0) - 3;
  EXPECT_EQ((ArrayRange{0, 8, {}}).evaluate(slots, kGrid), std::nullopt);
}

/// rows (argument 1) of columns (argument 2), `argument 3` apart, in boxes of 128x64 halves.
TensorMapRecipe makeMatrix() {
  TensorMapRecipe recipe;
  recipe.element = TensorMapElement::Float16;
  recipe.elementBytes = 2;
  recipe.swizzleBytes = 128;
  recipe.dims = {{argument(1), argument(3), 128}, {argument(2), constant(1), 64}};
  return recipe;
}

TEST(TensorMapRecipe, IsFilledInInnermostFirst) {
  uint64_t slots[] = {0x1000, 100, 200, 256};
  TensorMapShape shape;
  ASSERT_TRUE(evaluate(makeMatrix(), slots, shape));
  EXPECT_EQ(shape.base, 0x1000u);
  EXPECT_EQ(shape.rank, 2);
  EXPECT_EQ(shape.extents[0], 200u);
  EXPECT_EQ(shape.extents[1], 100u);
  EXPECT_EQ(shape.strides[1], 512u);
  EXPECT_EQ(shape.box[0], 64u);
  EXPECT_EQ(shape.box[1], 128u);
}

TEST(TensorMapRecipe, RefusesWhatTMACannotDo) {
  struct Case {
    uint64_t slots[4];
    bool isFine;
  } cases[] = {
      {{0x1000, 100, 200, 256}, true},
      {{0x1008, 100, 200, 256}, false},                         // misaligned
      {{0, 100, 200, 256}, false},                              // no array
      {{0x1000, 0, 200, 256}, false},                           // empty
      {{0x1000, 100, static_cast<uint64_t>(-1), 256}, false},   // fewer than none
      {{0x1000, 100, 200, 252}, false},                         // a stride of 504 bytes
      {{0x1000, 100, 200, static_cast<uint64_t>(-256)}, false}, // backwards
      {{0x1000, 0x7fffffff, 0x7fffffff, 0x7ffffff8}, true},     // as large as 32 bits say
  };
  for (const Case &test : cases) {
    TensorMapShape shape;
    EXPECT_EQ(evaluate(makeMatrix(), test.slots, shape), test.isFine)
        << test.slots[0] << " " << test.slots[1] << " " << test.slots[2] << " " << test.slots[3];
  }
}

TEST(TensorMapRecipe, HasLimits) {
  TensorMapRecipe recipe = makeMatrix();
  recipe.dims[0].extent = argument(1, /*isWide=*/true);
  recipe.dims[0].stride = argument(3, /*isWide=*/true);
  TensorMapShape shape;
  uint64_t large[] = {0x1000, uint64_t(1) << 31, 200, (uint64_t(1) << 39) - 8};
  EXPECT_TRUE(evaluate(recipe, large, shape));
  uint64_t manyRows[] = {0x1000, (uint64_t(1) << 31) + 1, 200, 256};
  EXPECT_FALSE(evaluate(recipe, manyRows, shape));
  uint64_t farApart[] = {0x1000, 100, 200, uint64_t(1) << 39};
  EXPECT_FALSE(evaluate(recipe, farApart, shape));
}

} // namespace
