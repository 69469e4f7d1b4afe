// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds against what programs compute: a bound that holds holds in each program.

#include "tessera/Runtime/CUDA/ProgramBound.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <climits>

using namespace tessera::cuda;

namespace {

bool holds(const char *text, std::vector<uint64_t> slots, std::vector<int32_t> grid = {1, 1, 1}) {
  std::optional<ProgramBound> bound = ProgramBound::parse(text, slots.size());
  EXPECT_TRUE(bound) << text;
  return bound && bound->holds(slots.data(), grid.data());
}

uint64_t slot(int64_t number) { return static_cast<uint64_t>(number); }

/// The height of a program's group of up to 8 rows of tiles, of a grid of arguments 0 x 1 tiles.
constexpr const char *kGroup =
    "(min32 (sub32 i32:0 (mul32 (div32 program:0 (mul32 i32:1 8)) 8)) 8)";

TEST(ProgramBound, HoldsInEachProgram) {
  for (int64_t rows = 0; rows < 20; ++rows)
    for (int64_t columns = 1; columns < 6; ++columns)
      for (int64_t programs : {rows * columns - 1, rows * columns, rows * columns + 1,
                               rows * columns + 8 * columns, 3 * rows * columns}) {
        if (programs < 1)
          continue;
        bool isEvery = true;
        for (int64_t program = 0; program < programs; ++program)
          isEvery &= std::min(rows - program / (columns * 8) * 8, int64_t(8)) >= 0;
        EXPECT_EQ(holds(kGroup, {slot(rows), slot(columns)}, {int32_t(programs), 1, 1}), isEvery)
            << rows << " x " << columns << ", " << programs << " programs";
      }
}

TEST(ProgramBound, LooksAtSignsAndZeros) {
  EXPECT_TRUE(holds(kGroup, {4, slot(-1)}, {64, 1, 1})) << "what is subtracted is negative";
  EXPECT_FALSE(holds(kGroup, {4, 0}));
  EXPECT_FALSE(holds("i32:0", {slot(-1)}));
  // Nothing but the low half of a slot is an argument of 32 bits.
  EXPECT_TRUE(holds("i32:0", {0xdeadbeef00000007}));
  EXPECT_FALSE(holds("i64:0", {0xdeadbeef00000007}));
  EXPECT_TRUE(holds("(div32 -7 i32:0)", {slot(-2)}));
  EXPECT_FALSE(holds("(div32 -7 i32:0)", {2}));
  EXPECT_TRUE(holds("(div32 -1 i32:0)", {2})) << "rounded towards 0";
  EXPECT_FALSE(holds("(rem32 i32:0 8)", {slot(-3)}));
  EXPECT_FALSE(holds("(sub32 (rem32 program:0 8) 3)", {}, {100, 1, 1}));
  EXPECT_TRUE(holds("(sub32 (rem32 program:0 8) 0)", {}, {100, 1, 1}));
  // Multiples of the divisor apart, all have one remainder.
  EXPECT_TRUE(holds("(sub32 0 (rem32 (mul32 program:0 64) 32))", {}, {100, 1, 1}));
  EXPECT_FALSE(holds("(sub32 0 (rem32 (add32 (mul32 program:0 64) 16) 32))", {}, {100, 1, 1}));
  EXPECT_FALSE(holds("(sub32 0 (rem32 (mul32 program:0 48) 32))", {}, {100, 1, 1}));
  const char *even = "(sub64 0 (rem64 (sub32 i32:0 (add32 (mul32 program:0 128) 128)) 64))";
  EXPECT_TRUE(holds(even, {4096}, {32, 1, 1}));
  EXPECT_FALSE(holds(even, {4128}, {32, 1, 1}));
  EXPECT_TRUE(holds("(max32 (sub32 0 program:0) 0)", {}, {100, 1, 1}));
  EXPECT_FALSE(holds("(max64 (unsigned i32:0) 0)", {slot(-3)}));
}

TEST(ProgramBound, GivesUpWhereNumbersWrap) {
  EXPECT_TRUE(holds("(add32 i32:0 1)", {INT32_MAX - 1}));
  EXPECT_FALSE(holds("(add32 i32:0 1)", {INT32_MAX}));
  EXPECT_TRUE(holds("(add64 i32:0 1)", {INT32_MAX}));
  EXPECT_FALSE(holds("(mul64 i64:0 i64:0)", {uint64_t(1) << 32}));
  EXPECT_FALSE(holds("(sub64 0 i64:0)", {slot(INT64_MIN)}));
  EXPECT_FALSE(holds("(div32 i32:0 -1)", {slot(INT32_MIN)}));
}

TEST(ProgramBound, KnowsLoopsOverPrograms) {
  // Program p of 4 does what those of numbers p, p + 4, ... of a grid of 6 x 5 would.
  const char *inGrid = "(sub32 29 (loop program:0 (mul32 extent:0 extent:1)))";
  EXPECT_TRUE(holds(inGrid, {}, {6, 5, 1}));
  EXPECT_FALSE(holds(inGrid, {}, {6, 6, 1}));
  EXPECT_TRUE(holds("(sub32 5 (rem32 (unsigned (loop program:0 extent:1)) (unsigned extent:0)))",
                    {}, {6, 500, 1}));
}

TEST(ProgramBound, KnowsWhereLoopsEnd) {
  // Blocks of 64 up to the end of the program's own 128: to 128 p, 128 p + 64 (and no further).
  const char *causal = "(sub32 448 (loop64 0 (mul32 (add32 program:0 1) 128)))";
  EXPECT_TRUE(holds(causal, {}, {4, 1, 1}));
  EXPECT_FALSE(holds(causal, {}, {5, 1, 1}));
  // From where the program begins.
  const char *diagonal =
      "(sub32 448 (loop64 (mul32 program:0 128) (mul32 (add32 program:0 1) 128)))";
  EXPECT_TRUE(holds(diagonal, {}, {4, 1, 1}));
  EXPECT_FALSE(holds(diagonal, {}, {5, 1, 1}));
  EXPECT_TRUE(holds("(sub32 448 (loop (mul32 program:0 128) 449))", {}, {8, 1, 1}));
  EXPECT_TRUE(holds("(sub32 96 (loop32 (min32 64 i32:0) 97))", {32}));
  EXPECT_FALSE(holds("(sub32 96 (loop32 (min32 64 i32:0) 130))", {32}));
  // Multiples of 6 and of 4.
  EXPECT_TRUE(holds("(sub32 98 (loop6 (mul32 program:0 4) 100))", {}, {9, 1, 1}));
  EXPECT_FALSE(holds("(sub32 97 (loop6 (mul32 program:0 4) 100))", {}, {9, 1, 1}));
}

TEST(ProgramBound, IsReadOrRefused) {
  for (const char *text : {"",
                           "x",
                           "()",
                           "(",
                           "(add32 1)",
                           "(add32 1 2",
                           "(add16 1 2)",
                           "(neg32 1 2)",
                           "(add32 1 2) ",
                           "1 2",
                           "i32:2",
                           "i32:-1",
                           "i32:",
                           "program:3",
                           "i8:0",
                           "99999999999999999999",
                           "(unsigned 1 2)",
                           "(add32  1 2)",
                           "(loop0 1 2)",
                           "(loop-1 1 2)",
                           "(loopx 1 2)",
                           "(loop4 1)"})
    EXPECT_FALSE(ProgramBound::parse(text, 2)) << text;
  std::string deep;
  for (int level = 0; level < 100000; ++level)
    deep += "(add32 ";
  EXPECT_FALSE(ProgramBound::parse(deep, 2));
}

TEST(ProgramBound, EvaluatesWhatIsTheSameInAllPrograms) {
  auto evaluate = [](const char *text, std::vector<uint64_t> slots) -> std::optional<int64_t> {
    int32_t grid[] = {4, 1, 1};
    std::optional<ProgramBound> bound = ProgramBound::parse(text, slots.size());
    EXPECT_TRUE(bound) << text;
    return bound ? bound->evaluate(slots.data(), grid) : std::nullopt;
  };
  EXPECT_EQ(evaluate("(div32 (add32 i32:0 63) 64)", {100}), 2);
  EXPECT_EQ(evaluate("(sub32 i32:0 extent:0)", {1}), -3);
  EXPECT_EQ(evaluate("program:0", {}), std::nullopt);
  EXPECT_EQ(evaluate("program:1", {}), 0);
  EXPECT_EQ(evaluate("(div32 1 i32:0)", {0}), std::nullopt);
}

TEST(ProgramBound, EvaluatesOneProgram) {
  constexpr int32_t kGrid[] = {10, 3, 1};
  for (int32_t first = 0; first < kGrid[0]; ++first)
    for (int32_t second = 0; second < kGrid[1]; ++second) {
      int32_t program[] = {first, second, 0};
      auto evaluate = [&](const char *text) {
        std::optional<ProgramBound> bound = ProgramBound::parse(text, 0);
        EXPECT_TRUE(bound) << text;
        return bound ? bound->evaluate(nullptr, kGrid, program) : std::nullopt;
      };
      EXPECT_EQ(evaluate("(sub32 (mul32 program:0 7) program:1)"), first * 7 - second);
      EXPECT_EQ(evaluate("(rem32 program:0 4)"), first % 4);
      EXPECT_EQ(evaluate("(min32 (div32 program:0 3) (sub32 extent:1 1))"), std::min(first / 3, 2));
    }
  int32_t program[] = {0, 0, 0};
  EXPECT_EQ(ProgramBound::parse("(loop 0 5)", 0)->evaluate(nullptr, kGrid, program), std::nullopt);
}

} // namespace
