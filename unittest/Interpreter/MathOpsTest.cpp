// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTest.h"

#include "gmock/gmock.h"

#include <cmath>

using namespace tessera::test;
using ::testing::ElementsAre;

namespace {

using MathOpsTest = InterpreterTest;

/// A correctly rounded f32 lies within half an ulp of the true value.
TEST_F(MathOpsTest, ElementaryFunctionsAreRounded) {
  struct Case {
    const char *op;
    double (*f)(double);
  };
  const Case cases[] = {{"exp", std::exp},     {"exp2", std::exp2},   {"log", std::log},
                        {"log2", std::log2},   {"log1p", std::log1p}, {"expm1", std::expm1},
                        {"sin", std::sin},     {"cos", std::cos},     {"tan", std::tan},
                        {"tanh", std::tanh},   {"sqrt", std::sqrt},   {"erf", std::erf},
                        {"floor", std::floor}, {"ceil", std::ceil},   {"absf", std::fabs}};
  std::vector<double> values;
  for (int i = 0; i < 256; ++i)
    values.push_back(std::ldexp(1 + i / 256.0, i % 8 - 4));
  Array x = floats("f32", values);
  for (const Case &c : cases) {
    Array r = evaluate(llvm::formatv("%r = math.{0} %a : tensor<256xf32>", c.op).str(),
                       {"f32", {256}, {}}, {x});
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(decode("f32", r.bits[i]), static_cast<float>(c.f(values[i])))
          << c.op << " of " << values[i];
  }
}

TEST_F(MathOpsTest, PreciseSquareRootAndRsqrt) {
  Array x = floats("f32", {2, 4, 0.25, 3});
  EXPECT_THAT(
      asFloats(evaluate("%r = tile.precise_sqrt %a : tensor<4xf32>", {"f32", {4}, {}}, {x})),
      ElementsAre(std::sqrt(2.0f), 2, 0.5, std::sqrt(3.0f)));
  EXPECT_THAT(asFloats(evaluate("%r = math.rsqrt %a : tensor<4xf32>", {"f32", {4}, {}}, {x}))[1],
              0.5);
}

/// a * b alone would round to 1; the fused sum keeps what lies below.
TEST_F(MathOpsTest, FusedMultiplyAddRoundsOnce) {
  for (const char *element : {"f16", "bf16", "f32", "f64"}) {
    int digits = element[0] == 'b' ? 8 : element[1] == '1' ? 11 : element[1] == '3' ? 24 : 53;
    double step = std::ldexp(1.0, 1 - digits);
    Array a = floats(element, {1 + step}), b = floats(element, {1 - step}),
          c = floats(element, {-1});
    Array r = evaluate(llvm::formatv("%r = math.fma %a, %b, %c : tensor<1x{0}>", element).str(),
                       {element, {1}, {}}, {a, b, c});
    EXPECT_EQ(asFloats(r)[0], -step * step) << element;
  }
}

TEST_F(MathOpsTest, IntegerFunctions) {
  Array x = ints("i8", {-128, -3, 0, 96});
  auto apply = [&](std::string op) {
    return asInts(evaluate("%r = math." + op + " %a : tensor<4xi8>", {"i8", {4}, {}}, {x}));
  };
  EXPECT_THAT(apply("absi"), ElementsAre(-128, 3, 0, 96));
  EXPECT_THAT(apply("ctpop"), ElementsAre(1, 7, 0, 2));
  EXPECT_THAT(apply("ctlz"), ElementsAre(0, 0, 8, 1));
  EXPECT_THAT(apply("cttz"), ElementsAre(7, 0, 8, 5));
}

TEST_F(MathOpsTest, RegionForEachElement) {
  Array x = ints("i32", {1, 6, 27, 0});
  // The square of an odd number, 0 for an even one.
  Array r = evaluate(R"(%r = tile.map_elementwise %a : (tensor<4xi32>) -> tensor<4xi32> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %low = arith.andi %v, %one : i32
    %odd = arith.cmpi eq, %low, %one : i32
    %y = scf.if %odd -> i32 {
      %t = arith.muli %v, %v : i32
      scf.yield %t : i32
    } else {
      scf.yield %zero : i32
    }
    tile.map_return %y : i32
  })",
                     {"i32", {4}, {}}, {x});
  EXPECT_THAT(asInts(r), ElementsAre(1, 0, 729, 0));
}

} // namespace
