// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTest.h"

#include "gmock/gmock.h"

using namespace tessera::test;
using ::testing::ElementsAre;

namespace {

using ReductionOpsTest = InterpreterTest;

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(i);
  return values;
}

TEST_F(ReductionOpsTest, SumAlongEachAxis) {
  Array x = ints("i32", iota(8), {2, 4});
  auto sum = [&](int axis, int64_t length) {
    return asInts(evaluate(
        llvm::formatv(
            R"(%r = tile.reduce (%a) {{axis = {0} : i32} : (tensor<2x4xi32>) -> tensor<{1}xi32> {{
      ^bb0(%x: i32, %y: i32):
        %z = arith.addi %x, %y : i32
        tile.reduce_return %z : i32
      })",
            axis, length)
            .str(),
        {"i32", {length}, {}}, {x}));
  };
  EXPECT_THAT(sum(0, 4), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(sum(1, 2), ElementsAre(6, 22));
}

/// A line is folded in half while it can be, then from the left.
TEST_F(ReductionOpsTest, OrderOfAReduction) {
  std::string fold = R"(%s = tile.reduce (%a) {axis = 0 : i32} : (tensor<{N}xf32>) -> f32 {
      ^bb0(%x: f32, %y: f32):
        %z = arith.subf %x, %y : f32
        tile.reduce_return %z : f32
      }
      %r = tile.splat %s : f32 -> tensor<1xf32>)";
  auto run = [&](std::vector<double> values) {
    std::string text = fold;
    text.replace(text.find("{N}"), 3, std::to_string(values.size()));
    return asFloats(evaluate(text, {"f32", {1}, {}}, {floats("f32", values)}))[0];
  };
  // (1 - 3) - (2 - 4)
  EXPECT_EQ(run({1, 2, 3, 4}), 0);
  // Twice twelve, six, three: the last three from the left.
  std::vector<double> values;
  for (int i = 0; i < 24; ++i)
    values.push_back(i * i);
  std::vector<double> line = values;
  for (size_t half : {12, 6, 3})
    for (size_t i = 0; i < half; ++i)
      line[i] -= line[i + half];
  EXPECT_EQ(run(values), (line[0] - line[1]) - line[2]);
}

TEST_F(ReductionOpsTest, SeveralOperands) {
  // The largest value and where it is, the first one of equals.
  Array r = evaluate(R"(%i = tile.range 0 to 8 : tensor<8xi32>
      %m, %at = tile.reduce (%a, %i) {axis = 0 : i32} : (tensor<8xi32>, tensor<8xi32>) -> (i32, i32) {
      ^bb0(%x: i32, %ix: i32, %y: i32, %iy: i32):
        %gt = arith.cmpi sgt, %x, %y : i32
        %eq = arith.cmpi eq, %x, %y : i32
        %lt = arith.cmpi slt, %ix, %iy : i32
        %tie = arith.andi %eq, %lt : i1
        %left = arith.ori %gt, %tie : i1
        %v = arith.select %left, %x, %y : i32
        %k = arith.select %left, %ix, %iy : i32
        tile.reduce_return %v, %k : i32, i32
      }
      %r = tile.join %m, %at : i32 -> tensor<2xi32>)",
                     {"i32", {2}, {}}, {ints("i32", {3, 9, -1, 9, 2, 9, 0, 1})});
  EXPECT_THAT(asInts(r), ElementsAre(9, 1));
}

TEST_F(ReductionOpsTest, ScanForwardsAndBackwards) {
  auto scan = [&](std::string attributes) {
    return asInts(evaluate("%r = tile.scan (%a) {axis = 0 : i32" + attributes +
                               R"(} : (tensor<4x2xi32>) -> tensor<4x2xi32> {
      ^bb0(%x: i32, %y: i32):
        %z = arith.addi %x, %y : i32
        tile.scan_return %z : i32
      })",
                           {"i32", {4, 2}, {}}, {ints("i32", iota(8), {4, 2})}));
  };
  EXPECT_THAT(scan(""), ElementsAre(0, 1, 2, 4, 6, 9, 12, 16));
  EXPECT_THAT(scan(", reverse"), ElementsAre(12, 16, 12, 15, 10, 12, 6, 7));
}

TEST_F(ReductionOpsTest, SortIsStable) {
  Array r = evaluate(R"(%i = tile.range 0 to 8 : tensor<8xi32>
      %k, %r = tile.sort (%a, %i) {axis = 0 : i32} : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
      ^bb0(%x: i32, %y: i32):
        %less = arith.cmpi slt, %x, %y : i32
        tile.sort_return %less : i1
      })",
                     {"i32", {8}, {}}, {ints("i32", {2, 1, 2, 1, 0, 2, 1, 0})});
  EXPECT_THAT(asInts(r), ElementsAre(4, 7, 1, 3, 6, 0, 2, 5));
}

TEST_F(ReductionOpsTest, HistogramCountsWhatIsInside) {
  Array x = ints("i32", {0, 3, 3, 4, -1, 2, 1, 3}), m = ints("i1", {1, 1, 0, 1, 1, 1, 1, 1});
  Array r = evaluate("%r = tile.histogram %a, %b : tensor<8xi32>, tensor<8xi1> -> tensor<4xi32>",
                     {"i32", {4}, {}}, {x, m});
  EXPECT_THAT(asInts(r), ElementsAre(1, 1, 1, 2));
}

TEST_F(ReductionOpsTest, GatherOutsideReadsZero) {
  Array x = floats("f32", {10, 11, 12, 13, 14, 15, 16, 17}, {4, 2});
  Array i = ints("i8", {3, 0, 4, -1}, {2, 2});
  Array r = evaluate("%r = tile.gather %a, %b {axis = 0 : i32} : tensor<4x2xf32>, tensor<2x2xi8> "
                     "-> tensor<2x2xf32>",
                     {"f32", {2, 2}, {}}, {x, i});
  EXPECT_THAT(asFloats(r), ElementsAre(16, 11, 0, 0));
}

} // namespace
