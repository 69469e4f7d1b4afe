// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source maps of ops (IndexMapOpInterface) against the interpreter, which does not use them.
// Each element of an operand has a bit of its own, so that a result shows what it is made of.

#include "InterpreterTest.h"

#include "tessera/Dialect/Tile/IR/SourceMaps.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char *kOr = R"( {
    ^bb0(%x: i64, %y: i64):
      %z = arith.ori %x, %y : i64
      )";

class SourceMapTest : public InterpreterTest {
protected:
  OwningOpRef<ModuleOp> module;

  /// A tile whose element at position p is 2^p.
  Array bits(std::string element, std::vector<int64_t> shape) {
    Array array{element, shape, {}};
    for (int64_t i = 0; i < array.size(); ++i)
      array.bits.push_back(element == "f64" ? encode(element, static_cast<double>(1ull << i))
                                            : 1ull << i);
    return array;
  }

  Array zeros(std::string element, std::vector<int64_t> shape) {
    Array array{element, shape, {}};
    array.bits.assign(array.size(), 0);
    return array;
  }

  /// The last op of `body`.
  Operation *parse(StringRef body, ArrayRef<Array> inputs) {
    std::string arguments;
    for (auto [number, input] : llvm::enumerate(inputs))
      arguments +=
          llvm::formatv("{0}%{1}: {2}", number ? ", " : "", char('a' + number), input.type());
    std::string text =
        llvm::formatv("tile.func private @f({0}) {{\n{1}\n  tile.return\n}\n", arguments, body);
    module = parseSourceString<ModuleOp>(text, &context, "test.mlir");
    if (!module)
      return nullptr;
    return (*module->getOps<tile::FuncOp>().begin())
        .getBody()
        .front()
        .getTerminator()
        ->getPrevNode();
  }

  /// The positions in an operand that a map has for an index of the result, as bits.
  static uint64_t getBits(AffineMap map, ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
    uint64_t found = 0;
    SmallVector<int64_t> strides = computeSuffixProduct(shape);
    int64_t all = map.getNumSymbols() ? *llvm::max_element(shape) : 1;
    for (int64_t symbol = 0; symbol < all; ++symbol) {
      SmallVector<AffineExpr> values;
      for (int64_t entry : index)
        values.push_back(getAffineConstantExpr(entry, map.getContext()));
      AffineExpr each = getAffineConstantExpr(symbol, map.getContext());
      int64_t position = 0;
      bool isInside = true;
      for (auto [expr, stride, extent] : llvm::zip_equal(map.getResults(), strides, shape)) {
        int64_t entry =
            cast<AffineConstantExpr>(expr.replaceDimsAndSymbols(values, each)).getValue();
        isInside &= 0 <= entry && entry < extent;
        position += entry * stride;
      }
      EXPECT_TRUE(isInside || map.getNumSymbols());
      if (isInside)
        found |= 1ull << position;
    }
    return found;
  }

  /// Checks the map from result `number` of the last op to operand `tested`, of which each element
  /// has a bit. `isExact`: the result has all the bits that the map says.
  void check(const std::string &body, Array result, std::vector<Array> inputs, unsigned tested = 0,
             unsigned number = 0, bool isExact = true) {
    SCOPED_TRACE(body);
    Operation *op = parse(body, inputs);
    ASSERT_TRUE(op);
    Array computed = evaluate(body, result, inputs);
    AffineMap map = tile::getSourceMap(op->getOpOperand(tested), number);
    ASSERT_TRUE(map);
    ASSERT_EQ(map.getNumResults(), inputs[tested].shape.size());
    SmallVector<int64_t> strides = computeSuffixProduct(result.shape);
    auto move = dyn_cast<tile::MoveOpInterface>(op);
    for (int64_t position = 0; position < computed.size(); ++position) {
      SmallVector<int64_t> index = delinearize(position, strides);
      uint64_t expected = getBits(map, index, inputs[tested].shape);
      if (move &&
          AffineMap::get(map.getNumDims(), 0, move.getSourceOperand()).compose(index)[0] != tested)
        expected = 0;
      uint64_t bits = result.element == "f64"
                          ? static_cast<uint64_t>(decode("f64", computed.bits[position]))
                          : computed.bits[position];
      EXPECT_EQ(bits & ~expected, 0u) << position;
      if (isExact) {
        EXPECT_EQ(bits, expected) << position;
      } else {
        EXPECT_NE(bits, 0u) << position;
      }
    }
    if (move && move.getMotion() <= tile::Motion::Dimensions) {
      EXPECT_TRUE(map.isProjectedPermutation(/*allowZeroInResults=*/true));
    }
  }
};

std::string tensor(ArrayRef<int64_t> shape) { return Array{"i64", shape.vec(), {}}.type(); }

TEST_F(SourceMapTest, Reshape) {
  std::pair<std::vector<int64_t>, std::vector<int64_t>> shapes[] = {
      {{64}, {8, 8}},   {{8, 8}, {64}},         {{2, 4, 8}, {8, 8}},      {{8, 8}, {8, 2, 4}},
      {{4, 8}, {8, 4}}, {{2, 24}, {48}},        {{2, 24}, {24, 2}},       {{1, 64}, {64}},
      {{64}, {64, 1}},  {{4, 1, 16}, {64}},     {{4, 1, 16}, {4, 16, 1}}, {{2, 1, 1}, {1, 2}},
      {{1, 1}, {1}},    {{2, 4, 2, 4}, {8, 8}}, {{4, 4, 4}, {2, 8, 4}}};
  for (auto &[from, to] : shapes)
    check("  %r = tile.reshape %a : " + tensor(from) + " -> " + tensor(to), {"i64", to, {}},
          {bits("i64", from)});
}

/// Dimensions that stay have plain indices, whatever becomes of the others.
TEST_F(SourceMapTest, ReshapeOfOtherDimensions) {
  Operation *op = parse("  %r = tile.reshape %a : tensor<4x8x2x8xi64> -> tensor<4x2x4x16xi64>",
                        {bits("i64", {4, 8, 2, 8})});
  ASSERT_TRUE(op);
  AffineMap map = tile::getSourceMap(op->getOpOperand(0));
  EXPECT_EQ(tile::getSourceDim(map, 0), 0u);
  EXPECT_EQ(tile::getSourceDim(map, 1), std::nullopt);
  EXPECT_EQ(tile::getResultDim(map, 0), 0u);
  EXPECT_EQ(tile::getResultDim(map, 1), std::nullopt);
  EXPECT_TRUE(map.isFunctionOfDim(3));
}

/// Shape ops that keep the row-major order, and those that permute dimensions.
TEST_F(SourceMapTest, RowMajorOrder) {
  struct {
    const char *body;
    std::vector<int64_t> shape;
    bool onlyReshapes, permutes;
  } cases[] = {
      {"tile.reshape %a : tensor<4x8xi64> -> tensor<8x4xi64>", {4, 8}, true, false},
      {"tile.reshape %a : tensor<1x1x8xi64> -> tensor<8x1xi64>", {1, 1, 8}, true, false},
      {"tile.expand_dims %a {axis = 0 : i32} : tensor<4x8xi64> -> tensor<1x4x8xi64>",
       {4, 8},
       true,
       false},
      {"tile.expand_dims %a {axis = 1 : i32} : tensor<1x8xi64> -> tensor<1x1x8xi64>",
       {1, 8},
       true,
       false},
      {"tile.broadcast %a : tensor<1x8xi64> -> tensor<4x8xi64>", {1, 8}, false, false},
      {"tile.trans %a {order = array<i32: 1, 0>} : tensor<4x8xi64> -> tensor<8x4xi64>",
       {4, 8},
       false,
       true},
      {"tile.trans %a {order = array<i32: 1, 0>} : tensor<1x8xi64> -> tensor<8x1xi64>",
       {1, 8},
       true,
       true},
      {"tile.trans %a {order = array<i32: 0, 1>} : tensor<4x8xi64> -> tensor<4x8xi64>",
       {4, 8},
       true,
       false},
      {"tile.hint %a {divisibility = array<i64: 1, 1>} : tensor<4x8xi64>", {4, 8}, false, false},
      {"arith.negf %a : tensor<4x8xf64>", {4, 8}, false, false},
  };
  for (auto &each : cases) {
    SCOPED_TRACE(each.body);
    StringRef element = StringRef(each.body).contains("f64") ? "f64" : "i64";
    Operation *op = parse(std::string("  %r = ") + each.body, {bits(element.str(), each.shape)});
    ASSERT_TRUE(op);
    EXPECT_EQ(tile::onlyReshapes(op), each.onlyReshapes);
    EXPECT_EQ(tile::permutesDimensions(op), each.permutes);
  }
}

/// The operands that elements come from, and the index that chooses one.
TEST_F(SourceMapTest, OperandChoice) {
  auto parseMove = [&](const std::string &body, std::vector<Array> inputs) {
    return dyn_cast_or_null<tile::MoveOpInterface>(parse(body, std::move(inputs)));
  };
  Array tile = bits("i64", {4, 8});
  auto join =
      parseMove("  %r = tile.join %a, %b : tensor<4x8xi64> -> tensor<4x8x2xi64>", {tile, tile});
  ASSERT_TRUE(join);
  EXPECT_EQ(tile::getMovedOperands(join).size(), 2u);
  EXPECT_EQ(tile::getOperandChoice(join)->dim, 2u);
  EXPECT_EQ(tile::getOperandChoice(join)->border, 1);
  auto cat = parseMove(
      "  %r = tile.cat %a, %b {axis = 0 : i32} : tensor<4x8xi64> -> tensor<8x8xi64>", {tile, tile});
  ASSERT_TRUE(cat);
  EXPECT_EQ(tile::getMovedOperands(cat).size(), 2u);
  EXPECT_EQ(tile::getOperandChoice(cat)->dim, 0u);
  EXPECT_EQ(tile::getOperandChoice(cat)->border, 4);
  auto gather = parseMove("  %r = tile.gather %a, %b {axis = 0 : i32} : tensor<4x8xi64>, "
                          "tensor<4x8xi64> -> tensor<4x8xi64>",
                          {tile, tile});
  ASSERT_TRUE(gather);
  EXPECT_EQ(tile::getMovedOperands(gather)[0], gather->getOperand(0));
  EXPECT_EQ(tile::getMovedOperands(gather).size(), 1u);
  EXPECT_FALSE(tile::getOperandChoice(gather));
}

TEST_F(SourceMapTest, Dimensions) {
  for (std::vector<int32_t> order :
       {std::vector<int32_t>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    std::vector<int64_t> from{2, 4, 8}, to;
    for (int32_t dim : order)
      to.push_back(from[dim]);
    check(llvm::formatv("  %r = tile.trans %a {{order = array<i32: {0}, {1}, {2}>} : {3} -> {4}",
                        order[0], order[1], order[2], tensor(from), tensor(to)),
          {"i64", to, {}}, {bits("i64", from)});
  }
  for (int axis : {0, 1, 2}) {
    std::vector<int64_t> to{4, 8};
    to.insert(to.begin() + axis, 1);
    check(llvm::formatv("  %r = tile.expand_dims %a {{axis = {0} : i32} : {1} -> {2}", axis,
                        tensor({4, 8}), tensor(to)),
          {"i64", to, {}}, {bits("i64", {4, 8})});
  }
  for (std::vector<int64_t> from : {std::vector<int64_t>{1, 8}, {4, 1}, {1, 1}, {4, 8}})
    check("  %r = tile.broadcast %a : " + tensor(from) + " -> tensor<4x8xi64>", {"i64", {4, 8}, {}},
          {bits("i64", from)});
  check("  %r = tile.hint %a {divisibility = array<i64: 1, 1>} : tensor<4x8xi64>",
        {"i64", {4, 8}, {}}, {bits("i64", {4, 8})});
}

TEST_F(SourceMapTest, TwoTiles) {
  for (unsigned tested : {0, 1}) {
    auto pair = [&](std::vector<int64_t> shape) {
      std::vector<Array> inputs(2, zeros("i64", shape));
      inputs[tested] = bits("i64", shape);
      return inputs;
    };
    check("  %r = tile.join %a, %b : tensor<4x8xi64> -> tensor<4x8x2xi64>", {"i64", {4, 8, 2}, {}},
          pair({4, 8}), tested);
    check("  %r = tile.cat %a, %b {axis = 0 : i32} : tensor<4x8xi64> -> tensor<8x8xi64>",
          {"i64", {8, 8}, {}}, pair({4, 8}), tested);
    check("  %r = tile.cat %a, %b {axis = 1 : i32} : tensor<4x8xi64> -> tensor<4x16xi64>",
          {"i64", {4, 16}, {}}, pair({4, 8}), tested);
    check("  %r = arith.ori %a, %b : tensor<4x8xi64>", {"i64", {4, 8}, {}}, pair({4, 8}), tested);
  }
  check("  %r, %other = tile.split %a : tensor<8x2xi64> -> tensor<8xi64>", {"i64", {8}, {}},
        {bits("i64", {8, 2})}, 0, 0);
  check("  %other, %r = tile.split %a : tensor<8x2xi64> -> tensor<8xi64>", {"i64", {8}, {}},
        {bits("i64", {8, 2})}, 0, 1);
}

TEST_F(SourceMapTest, Axes) {
  std::vector<int64_t> shape{2, 4, 8};
  for (int axis : {0, 1, 2}) {
    std::vector<int64_t> rest(shape);
    rest.erase(rest.begin() + axis);
    std::string attributes = llvm::formatv("{{axis = {0} : i32}", axis);
    check("  %r = tile.reduce (%a) " + attributes + " : (" + tensor(shape) + ") -> " +
              tensor(rest) + kOr + "tile.reduce_return %z : i64\n }",
          {"i64", rest, {}}, {bits("i64", shape)});
    check("  %r = tile.scan (%a) " + attributes + " : (" + tensor(shape) + ") -> " + tensor(shape) +
              kOr + "tile.scan_return %z : i64\n }",
          {"i64", shape, {}}, {bits("i64", shape)}, 0, 0, /*isExact=*/false);
    check("  %r = tile.sort (%a) " + attributes + " : (" + tensor(shape) + ") -> " + tensor(shape) +
              " {\n ^bb0(%x: i64, %y: i64):\n" +
              "%z = arith.cmpi ugt, %x, %y : i64\n tile.sort_return %z : i1\n }",
          {"i64", shape, {}}, {bits("i64", shape)}, 0, 0, /*isExact=*/false);
  }
  check(
      "  %r = tile.gather %a, %b {axis = 0 : i32} : tensor<4x2xi64>, tensor<8x2xi32> -> "
      "tensor<8x2xi64>",
      {"i64", {8, 2}, {}},
      {bits("i64", {4, 2}), ints("i32", {0, 1, 2, 3, 3, 2, 1, 0, 0, 0, 1, 1, 2, 2, 3, 3}, {8, 2})},
      0, 0, /*isExact=*/false);
}

TEST_F(SourceMapTest, Dot) {
  auto filled = [&](std::vector<int64_t> shape, double value) {
    Array array{"f64", shape, {}};
    array.bits.assign(array.size(), encode("f64", value));
    return array;
  };
  auto test = [&](std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> c) {
    auto type = [](ArrayRef<int64_t> shape) { return Array{"f64", shape.vec(), {}}.type(); };
    std::string body =
        "  %r = tile.dot %a, %b, %c : " + type(a) + ", " + type(b) + " -> " + type(c);
    check(body, {"f64", c, {}}, {bits("f64", a), filled(b, 1), filled(c, 0)}, 0);
    check(body, {"f64", c, {}}, {filled(a, 1), bits("f64", b), filled(c, 0)}, 1);
    check(body, {"f64", c, {}}, {filled(a, 0), filled(b, 0), bits("f64", c)}, 2);
  };
  test({2, 8}, {8, 4}, {2, 4});
  test({2, 4, 2}, {2, 2, 8}, {2, 4, 8});
}

} // namespace
