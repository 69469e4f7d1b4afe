// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTest.h"

#include "gmock/gmock.h"

#include <cmath>
#include <random>

using namespace tessera::test;

namespace {

using MatmulOpsTest = InterpreterTest;

std::vector<double> smallIntegers(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(static_cast<int>(engine() % 9) - 4);
  return values;
}

/// acc + a * b for row-major matrices.
std::vector<double> multiply(size_t m, size_t n, size_t k, const std::vector<double> &a,
                             const std::vector<double> &b, std::vector<double> acc) {
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t l = 0; l < k; ++l)
        acc[i * n + j] += a[i * k + l] * b[l * n + j];
  return acc;
}

TEST_F(MatmulOpsTest, ExactSumsInEveryFormat) {
  struct Case {
    const char *element, *sum;
  };
  const Case cases[] = {{"f8E5M2", "f32"}, {"f8E4M3FN", "f32"}, {"f16", "f32"}, {"f16", "f16"},
                        {"bf16", "f32"},   {"f32", "f32"},      {"f64", "f64"}};
  std::vector<double> a = smallIntegers(4 * 8, 1), b = smallIntegers(8 * 16, 2),
                      acc = smallIntegers(4 * 16, 3);
  for (const Case &c : cases) {
    Array r = evaluate(
        llvm::formatv("%r = tile.dot %a, %b, %c : tensor<4x8x{0}>, tensor<8x16x{0}> "
                      "-> tensor<4x16x{1}>",
                      c.element, c.sum)
            .str(),
        {c.sum, {4, 16}, {}},
        {floats(c.element, a, {4, 8}), floats(c.element, b, {8, 16}), floats(c.sum, acc, {4, 16})});
    EXPECT_EQ(asFloats(r), multiply(4, 16, 8, a, b, acc)) << c.element << " in " << c.sum;
  }
}

TEST_F(MatmulOpsTest, IntegersWrapIn32Bits) {
  Array a = ints("i8", {-128, 127}, {1, 2}), b = ints("i8", {-128, 127}, {2, 1});
  Array acc = ints("i32", {INT32_MAX}, {1, 1});
  Array r = evaluate("%r = tile.dot %a, %b, %c : tensor<1x2xi8>, tensor<2x1xi8> -> tensor<1x1xi32>",
                     {"i32", {1, 1}, {}}, {a, b, acc});
  EXPECT_EQ(asInts(r)[0], int32_t(uint32_t(INT32_MAX) + 128 * 128 + 127 * 127));
}

TEST_F(MatmulOpsTest, Batches) {
  std::vector<double> a = smallIntegers(2 * 4 * 2, 4), b = smallIntegers(2 * 2 * 4, 5),
                      acc(2 * 4 * 4, 0);
  Array r = evaluate(
      "%r = tile.dot %a, %b, %c : tensor<2x4x2xf32>, tensor<2x2x4xf32> -> "
      "tensor<2x4x4xf32>",
      {"f32", {2, 4, 4}, {}},
      {floats("f32", a, {2, 4, 2}), floats("f32", b, {2, 2, 4}), floats("f32", acc, {2, 4, 4})});
  std::vector<double> expected;
  for (size_t batch = 0; batch < 2; ++batch)
    for (double value :
         multiply(4, 4, 2, {a.begin() + batch * 8, a.begin() + batch * 8 + 8},
                  {b.begin() + batch * 8, b.begin() + batch * 8 + 8}, std::vector<double>(16, 0)))
      expected.push_back(value);
  EXPECT_EQ(asFloats(r), expected);
}

/// e2m1 holds 0, 0.5, 1, 1.5, 2, 3, 4, 6: two a byte, the low half first.
TEST_F(MatmulOpsTest, ScaledFourBitFloats) {
  const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<int64_t> packedA, packedB, scaleA = {127, 128}, scaleB = {126, 127, 129, 130};
  std::vector<double> a(2 * 32), b(32 * 4);
  for (int64_t m = 0; m < 2; ++m)
    for (int64_t k = 0; k < 32; k += 2) {
      int64_t low = (m + k) % 16, high = (3 * m + k + 5) % 16;
      packedA.push_back(high << 4 | low);
      for (auto [offset, nibble] : {std::pair(0, low), std::pair(1, high)})
        a[m * 32 + k + offset] =
            (nibble & 8 ? -1 : 1) * magnitudes[nibble & 7] * std::ldexp(1, int(scaleA[m]) - 127);
    }
  for (int64_t k = 0; k < 32; k += 2)
    for (int64_t n = 0; n < 4; ++n) {
      int64_t low = (5 * n + k) % 16, high = (n + 3 * k + 1) % 16;
      packedB.push_back(high << 4 | low);
      for (auto [offset, nibble] : {std::pair(0, low), std::pair(1, high)})
        b[(k + offset) * 4 + n] =
            (nibble & 8 ? -1 : 1) * magnitudes[nibble & 7] * std::ldexp(1, int(scaleB[n]) - 127);
    }
  Array r = evaluate("%r = tile.dot_scaled %a scale %b as e2m1, %c scale %d as e2m1, %e : "
                     "tensor<2x16xi8> scale tensor<2x1xi8>, tensor<16x4xi8> scale tensor<4x1xi8> "
                     "-> tensor<2x4xf32>",
                     {"f32", {2, 4}, {}},
                     {ints("i8", packedA, {2, 16}), ints("i8", scaleA, {2, 1}),
                      ints("i8", packedB, {16, 4}), ints("i8", scaleB, {4, 1}),
                      floats("f32", std::vector<double>(8, 0), {2, 4})});
  EXPECT_EQ(asFloats(r), multiply(2, 4, 32, a, b, std::vector<double>(8, 0)));
}

TEST_F(MatmulOpsTest, ScaleOf255IsNaN) {
  std::vector<int64_t> ones(32, 0x38); // 1.0 in e4m3
  Array r = evaluate("%r = tile.dot_scaled %a scale %b as e4m3, %c as e4m3, %d : "
                     "tensor<1x32xi8> scale tensor<1x1xi8>, tensor<32x1xi8> -> tensor<1x1xf32>",
                     {"f32", {1, 1}, {}},
                     {ints("i8", ones, {1, 32}), ints("i8", {255}, {1, 1}),
                      ints("i8", ones, {32, 1}), floats("f32", {0}, {1, 1})});
  EXPECT_TRUE(std::isnan(asFloats(r)[0]));
}

} // namespace
