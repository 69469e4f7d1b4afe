// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which launches are within limits. That a program in C says the same is tested in
// python/test/aot/test_limits.py.

#include "tessera/Runtime/CUDA/LaunchLimits.h"

#include "gtest/gtest.h"

#include <climits>
#include <initializer_list>

using namespace tessera::cuda;

namespace {

LaunchExpression argument(int number) { return {{{1, {{number, false}}}}}; }

bool accepts(const LaunchLimits &limits, std::initializer_list<int32_t> grid,
             std::initializer_list<uint64_t> slots, tessera_shape *shapes = nullptr) {
  tessera_limits tables = limits.get();
  return tessera_accepts(&tables, grid.begin(), slots.begin(), shapes) != 0;
}

TEST(LaunchLimitsTest, NothingIsTakenForGranted) {
  LaunchLimits limits;
  EXPECT_TRUE(limits.isEmpty());
  EXPECT_TRUE(accepts(limits, {INT32_MAX, INT32_MAX, INT32_MAX}, {}));
}

TEST(LaunchLimitsTest, CountsProgramsAlongAnAxis) {
  LaunchLimits limits;
  limits.mostPrograms = 10;
  EXPECT_FALSE(limits.isEmpty());
  EXPECT_TRUE(accepts(limits, {10, 10, 10}, {}));
  EXPECT_FALSE(accepts(limits, {1, 11, 1}, {}));
  EXPECT_TRUE(accepts(limits, {0, 11, 1}, {})) << "there is no program";
}

TEST(LaunchLimitsTest, CountsAllPrograms) {
  LaunchLimits limits;
  limits.countsPrograms = true;
  EXPECT_TRUE(accepts(limits, {1 << 15, 1 << 14, 2}, {}));
  EXPECT_FALSE(accepts(limits, {1 << 15, 1 << 14, 3}, {}));
  EXPECT_FALSE(accepts(limits, {INT32_MAX, INT32_MAX, INT32_MAX}, {}));
}

TEST(LaunchLimitsTest, EvaluatesConditions) {
  LaunchLimits limits;
  limits.addCondition(argument(0));
  limits.addCondition(*ProgramBound::parse("(sub32 i32:1 program:0)", 2));
  EXPECT_TRUE(accepts(limits, {4, 1, 1}, {0, 3}));
  EXPECT_FALSE(accepts(limits, {5, 1, 1}, {0, 3}));
  EXPECT_FALSE(accepts(limits, {4, 1, 1}, {static_cast<uint64_t>(-1), 3}));
}

TEST(LaunchLimitsTest, StaysWholeWhenItIsMoved) {
  LaunchLimits made;
  for (int i = 0; i < 100; ++i)
    made.addCondition(argument(0));
  LaunchLimits limits = std::move(made);
  EXPECT_TRUE(accepts(limits, {1, 1, 1}, {7}));
  EXPECT_FALSE(accepts(limits, {1, 1, 1}, {static_cast<uint64_t>(-7)}));
}

TEST(LaunchLimitsTest, FillsInTheShapesOfTensorMaps) {
  TensorMapRecipe recipe;
  recipe.base = 0;
  recipe.elementBytes = 2;
  recipe.swizzleBytes = 64;
  recipe.dims = {{argument(1), argument(2), 128}, {argument(2), {{{1, {}}}}, 64}};
  LaunchLimits limits;
  limits.addTensorMap(recipe);
  limits.addApart({{0, 2, {{argument(1), argument(2), {}}}}, {3, 2, {}}});
  tessera_shape shapes[1];
  ASSERT_TRUE(accepts(limits, {1, 1, 1}, {0x1000, 10, 32, 0x2000}, shapes));
  EXPECT_EQ(shapes[0].base, 0x1000u);
  EXPECT_EQ(shapes[0].extents[0], 32u);
  EXPECT_EQ(shapes[0].extents[1], 10u);
  EXPECT_EQ(shapes[0].strides[1], 64u);
  EXPECT_EQ(shapes[0].box[1], 128u);
  EXPECT_EQ(limits.get().maps[0].swizzle_bytes, 64);
  EXPECT_FALSE(accepts(limits, {1, 1, 1}, {0x1008, 10, 32, 0x2000}, shapes)) << "misaligned";
  EXPECT_FALSE(accepts(limits, {1, 1, 1}, {0x1000, 10, 32, 0x1100}, shapes)) << "they overlap";
}

TEST(LaunchLimitsTest, NumbersAtTheEndsOf64Bits) {
  uint64_t least = uint64_t(1) << 63, most = least - 1;
  auto range = [](const char *text, std::initializer_list<uint64_t> slots) {
    int32_t grid[] = {1, 1, 1};
    std::optional<ProgramBound::Range> found =
        ProgramBound::parse(text, slots.size())->getRange(slots.begin(), grid);
    return found ? std::optional(found->least) : std::nullopt;
  };
  EXPECT_EQ(range("(div64 i64:0 -1)", {least}), std::nullopt);
  EXPECT_EQ(range("(div64 i64:0 1)", {least}), INT64_MIN);
  EXPECT_EQ(range("(mul64 i64:0 -1)", {least}), std::nullopt);
  EXPECT_EQ(range("(mul64 i64:0 -1)", {most}), -INT64_MAX);
  EXPECT_EQ(range("(sub64 i64:0 i64:1)", {least, 1}), std::nullopt);
  EXPECT_EQ(range("(min64 i64:0 i64:1)", {least, most}), INT64_MIN);
  EXPECT_EQ(range("(max64 i64:0 i64:1)", {least, most}), INT64_MAX);
  EXPECT_EQ(range("(loop4 i64:0 i64:1)", {least, most}), INT64_MIN);
  EXPECT_EQ(range("(loop4 i64:0 i64:1)", {most, least}), INT64_MAX);
}

} // namespace
