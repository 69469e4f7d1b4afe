// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic, checked against wider arithmetic: over all pairs of 8-bit integers,
// over all values of the 8- and 16-bit floats.

#include "InterpreterTest.h"

#include "gmock/gmock.h"

#include <cmath>
#include <limits>

using namespace tessera::test;
using ::testing::ElementsAre;

namespace {

using ArithOpsTest = InterpreterTest;

/// All pairs of bytes.
std::pair<std::vector<int64_t>, std::vector<int64_t>> bytePairs() {
  std::vector<int64_t> lhs, rhs;
  for (int64_t a = 0; a < 256; ++a)
    for (int64_t b = 0; b < 256; ++b) {
      lhs.push_back(a);
      rhs.push_back(b);
    }
  return {lhs, rhs};
}

TEST_F(ArithOpsTest, EveryPairOfBytes) {
  struct Case {
    const char *op;
    bool isSigned;
    int64_t (*expected)(int64_t a, int64_t b); ///< any value with the right low byte
  };
  const Case cases[] = {
      {"arith.addi", true, [](int64_t a, int64_t b) { return a + b; }},
      {"arith.muli", true, [](int64_t a, int64_t b) { return a * b; }},
      {"arith.maxsi", true, [](int64_t a, int64_t b) { return std::max(a, b); }},
      {"arith.minui", false, [](int64_t a, int64_t b) { return std::min(a, b); }},
      {"tile.div_int signed", true, [](int64_t a, int64_t b) { return b == 0 ? -1 : a / b; }},
      {"tile.div_int unsigned", false, [](int64_t a, int64_t b) { return b == 0 ? 255 : a / b; }},
      {"tile.rem_int signed", true, [](int64_t a, int64_t b) { return b == 0 ? a : a % b; }},
      {"tile.rem_int unsigned", false, [](int64_t a, int64_t b) { return b == 0 ? a : a % b; }},
      {"tile.shift left", false, [](int64_t a, int64_t b) { return b >= 8 ? 0 : a << b; }},
      {"tile.shift right_logical", false, [](int64_t a, int64_t b) { return b >= 8 ? 0 : a >> b; }},
  };
  auto [lhs, rhs] = bytePairs();
  for (const Case &c : cases) {
    Array r = evaluate(std::string("%r = ") + c.op + " %a, %b : tensor<65536xi8>",
                       {"i8", {65536}, {}}, {ints("i8", lhs), ints("i8", rhs)});
    for (size_t i = 0; i < lhs.size(); ++i) {
      int64_t a = c.isSigned ? int8_t(lhs[i]) : lhs[i], b = c.isSigned ? int8_t(rhs[i]) : rhs[i];
      ASSERT_EQ(r.bits[i], uint64_t(c.expected(a, b)) & 255) << c.op << " " << a << ", " << b;
    }
  }
}

TEST_F(ArithOpsTest, ArithmeticShiftReadsItsAmountAsUnsigned) {
  Array r = evaluate("%r = tile.shift right_arithmetic %a, %b : tensor<4xi32>", {"i32", {4}, {}},
                     {ints("i32", {-8, -8, 8, -8}), ints("i32", {1, 32, 40, -1})});
  EXPECT_THAT(asInts(r), ElementsAre(-4, -1, 0, -1));
}

TEST_F(ArithOpsTest, SmallestIntegerDividedByMinusOne) {
  int64_t least = std::numeric_limits<int64_t>::min();
  Array a = ints("i64", {least, least}), b = ints("i64", {-1, 0});
  EXPECT_THAT(
      asInts(evaluate("%r = tile.div_int signed %a, %b : tensor<2xi64>", {"i64", {2}, {}}, {a, b})),
      ElementsAre(least, -1));
  EXPECT_THAT(
      asInts(evaluate("%r = tile.rem_int signed %a, %b : tensor<2xi64>", {"i64", {2}, {}}, {a, b})),
      ElementsAre(0, least));
}

TEST_F(ArithOpsTest, UpperHalfOfAProduct) {
  Array a = ints("i64", {-1, 1}), b = ints("i64", {-1, 5});
  Array r = evaluate("%r = tile.mulhi %a, %b : tensor<2xi64>", {"i64", {2}, {}}, {a, b});
  EXPECT_THAT(r.bits, ElementsAre(~uint64_t(0) - 1, 0));
}

TEST_F(ArithOpsTest, BoolIsMinusOneWhenSigned) {
  Array a = ints("i1", {0, 1});
  EXPECT_THAT(asInts(evaluate("%r = arith.extsi %a : tensor<2xi1> to tensor<2xi32>",
                              {"i32", {2}, {}}, {a})),
              ElementsAre(0, -1));
  EXPECT_THAT(asFloats(evaluate("%r = arith.uitofp %a : tensor<2xi1> to tensor<2xf32>",
                                {"f32", {2}, {}}, {a})),
              ElementsAre(0, 1));
}

TEST_F(ArithOpsTest, ComparisonsWithNaN) {
  double nan = std::nan("");
  Array a = floats("f32", {1, 2, nan, nan}), b = floats("f32", {2, 2, 1, nan});
  auto compare = [&](std::string predicate) {
    return asInts(evaluate("%r = arith.cmpf " + predicate + ", %a, %b : tensor<4xf32>",
                           {"i1", {4}, {}}, {a, b}));
  };
  EXPECT_THAT(compare("olt"), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(compare("ole"), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(compare("oeq"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(compare("one"), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(compare("une"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(compare("ugt"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(compare("uno"), ElementsAre(0, 0, 1, 1));
}

TEST_F(ArithOpsTest, MaximumAndMinimum) {
  double nan = std::nan("");
  Array a = floats("f32", {1, nan, 2, -0.0}), b = floats("f32", {2, 3, nan, 0.0});
  auto bits = [&](std::string op) {
    return evaluate("%r = arith." + op + " %a, %b : tensor<4xf32>", {"f32", {4}, {}}, {a, b}).bits;
  };
  EXPECT_THAT(bits("maxnumf"), ElementsAre(0x40000000, 0x40400000, 0x40000000, 0));
  EXPECT_THAT(bits("minnumf"), ElementsAre(0x3f800000, 0x40400000, 0x40000000, 0x80000000));
  EXPECT_TRUE(std::isnan(decode("f32", bits("maximumf")[1])));
  EXPECT_TRUE(std::isnan(decode("f32", bits("minimumf")[2])));
}

TEST_F(ArithOpsTest, Clamp) {
  Array x = floats("f32", {-5, 0.5, 5, std::nan("")});
  Array low = floats("f32", {0, 0, 0, 0}), high = floats("f32", {1, 1, 1, 1});
  EXPECT_THAT(asFloats(evaluate("%r = tile.clamp %a, %b, %c : tensor<4xf32>", {"f32", {4}, {}},
                                {x, low, high})),
              ElementsAre(0, 0.5, 1, 0));
  Array kept = evaluate("%r = tile.clamp %a, %b, %c {propagate_nan} : tensor<4xf32>",
                        {"f32", {4}, {}}, {x, low, high});
  EXPECT_TRUE(std::isnan(asFloats(kept)[3]));
}

TEST_F(ArithOpsTest, FloatToIntSaturates) {
  double inf = std::numeric_limits<double>::infinity();
  Array x = floats("f64", {-1e30, -129, -1.9, 255.9, 1e30, inf, -inf, std::nan("")});
  auto cast = [&](std::string signedness, std::string element) {
    return asInts(evaluate("%r = tile.fp_to_int " + signedness +
                               " %a : tensor<8xf64> -> tensor<8x" + element + ">",
                           {element, {8}, {}}, {x}));
  };
  EXPECT_THAT(cast("signed", "i8"), ElementsAre(-128, -128, -1, 127, 127, 127, -128, 0));
  EXPECT_THAT(cast("unsigned", "i8"), ElementsAre(0, 0, 0, -1, -1, -1, 0, 0));
  EXPECT_THAT(cast("signed", "i64"),
              ElementsAre(INT64_MIN, -129, -1, 255, INT64_MAX, INT64_MAX, INT64_MIN, 0));
  EXPECT_THAT(cast("unsigned", "i64"), ElementsAre(0, 0, 0, 255, -1, -1, 0, 0));
}

/// Narrow arithmetic is one rounding of the exact result.
TEST_F(ArithOpsTest, NarrowFloatsRoundOnce) {
  for (const char *element : {"f16", "bf16"}) {
    Array a = every(element);
    Array b = a;
    // Every value meets some other one; 0x3555 spreads the partners over all exponents.
    for (uint64_t &bits : b.bits)
      bits = (bits * 0x3555 + 0x1234) & 0xffff;
    struct Case {
      const char *op;
      llvm::APFloat (*expected)(llvm::APFloat a, llvm::APFloat b);
    };
    const Case cases[] = {
        {"addf", [](llvm::APFloat a, llvm::APFloat b) { return a + b; }},
        {"mulf", [](llvm::APFloat a, llvm::APFloat b) { return a * b; }},
        {"divf", [](llvm::APFloat a, llvm::APFloat b) { return a / b; }},
    };
    const llvm::fltSemantics &format =
        element[0] == 'f' ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
    for (const Case &c : cases) {
      Array r =
          evaluate(llvm::formatv("%r = arith.{0} %a, %b : tensor<65536x{1}>", c.op, element).str(),
                   {element, {65536}, {}}, {a, b});
      for (size_t i = 0; i < r.bits.size(); ++i) {
        llvm::APFloat expected = c.expected(llvm::APFloat(format, llvm::APInt(16, a.bits[i])),
                                            llvm::APFloat(format, llvm::APInt(16, b.bits[i])));
        llvm::APFloat got(format, llvm::APInt(16, r.bits[i]));
        if (expected.isNaN())
          ASSERT_TRUE(got.isNaN()) << c.op << " " << i;
        else
          ASSERT_TRUE(got.bitwiseIsEqual(expected)) << element << " " << c.op << " " << i;
      }
    }
  }
}

/// Widening is exact, so going there and back changes nothing but infinities of 8 bits, which
/// narrowing holds at the largest number.
TEST_F(ArithOpsTest, EveryNarrowFloatSurvivesWidening) {
  for (std::string element :
       {"f8E5M2", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f16", "bf16"}) {
    Array a = every(element);
    Array r = evaluate(llvm::formatv("%w = tile.fp_to_fp %a : tensor<{0}x{1}> -> tensor<{0}xf32>\n"
                                     "%r = tile.fp_to_fp %w : tensor<{0}xf32> -> tensor<{0}x{1}>",
                                     a.size(), element)
                           .str(),
                       a, {a});
    for (size_t i = 0; i < a.bits.size(); ++i) {
      if (std::isnan(decode(element, a.bits[i])))
        ASSERT_TRUE(std::isnan(decode(element, r.bits[i]))) << element << " " << i;
      else if (std::isinf(decode(element, a.bits[i])) && element[1] == '8')
        ASSERT_EQ(r.bits[i], a.bits[i] - 1) << element;
      else
        ASSERT_EQ(r.bits[i], a.bits[i]) << element;
    }
  }
}

/// 0x10100001 lies just above the middle of two bf16: by way of f32 it would be a tie.
TEST_F(ArithOpsTest, IntegersRoundOnce) {
  Array x = ints("i32", {0x10100001, -0x10100001, 0x10100000, 3});
  Array r =
      evaluate("%r = arith.sitofp %a : tensor<4xi32> to tensor<4xbf16>", {"bf16", {4}, {}}, {x});
  EXPECT_THAT(asFloats(r), ElementsAre(0x10200000, -0x10200000, 0x10000000, 3));
  Array y = ints("i64", {(int64_t(1) << 62) + (int64_t(1) << 38) + 1, -1});
  EXPECT_EQ(asFloats(evaluate("%r = arith.sitofp %a : tensor<2xi64> to tensor<2xf32>",
                              {"f32", {2}, {}}, {y}))[0],
            0x1.000002p62);
  EXPECT_EQ(asFloats(evaluate("%r = arith.uitofp %a : tensor<2xi64> to tensor<2xf64>",
                              {"f64", {2}, {}}, {y}))[1],
            0x1p64);
}

TEST_F(ArithOpsTest, RoundingTowardsZero) {
  Array x = floats("f32", {1.00390625, 1.01171875, -1.01171875, 3.4e38});
  Array nearest =
      evaluate("%r = tile.fp_to_fp %a : tensor<4xf32> -> tensor<4xbf16>", {"bf16", {4}, {}}, {x});
  EXPECT_THAT(nearest.bits, ElementsAre(0x3f80, 0x3f82, 0xbf82, 0x7f80));
  Array towardsZero =
      evaluate("%r = tile.fp_to_fp %a {rounding = 1 : i32} : tensor<4xf32> -> tensor<4xbf16>",
               {"bf16", {4}, {}}, {x});
  EXPECT_THAT(towardsZero.bits, ElementsAre(0x3f80, 0x3f81, 0xbf81, 0x7f7f));
}

TEST_F(ArithOpsTest, ConstantsAndChoice) {
  Array r = evaluate("%x = arith.constant dense<[1, -2, 3, -4]> : tensor<4xi32>\n"
                     "%y = arith.constant dense<7> : tensor<4xi32>\n"
                     "%m = arith.constant dense<[true, false, false, true]> : tensor<4xi1>\n"
                     "%yes = arith.constant true\n"
                     "%s = arith.select %m, %x, %y : tensor<4xi1>, tensor<4xi32>\n"
                     "%r = arith.select %yes, %s, %a : tensor<4xi32>",
                     {"i32", {4}, {}}, {ints("i32", {0, 0, 0, 0})});
  EXPECT_THAT(asInts(r), ElementsAre(1, 7, 7, -4));
}

} // namespace
