// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes: broadcasting, and the ops that move elements without computing on them.
//
// The odd factor of an extent odd * 2^k is the outermost part of its dimension in a layout.
// A reshape that moves it is an exchange on GPUs (tilegpu.renumber); cat refuses it.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera;

static const ValueType &requireElements(const Operand &x, StringRef user) {
  if (x.isValue() && x.value().type.hasElements())
    return x.value().type;
  throw UserError("E029", (user + " of " + x.describe()).str(), "pass a tile");
}

static const ValueType &requireTile(const Operand &x, StringRef user) {
  const ValueType &type = requireElements(x, user);
  if (type.isTile())
    return type;
  throw UserError("E023", (user + " of the scalar " + toString(type)).str(),
                  "pass a tile; make one with tl.full");
}

/// An axis counted from the front, given from either end, in a value of `rank`.
static int64_t normalizeAxis(int64_t axis, int64_t rank, StringRef user) {
  if (axis < -rank || axis >= rank)
    throw UserError("E024",
                    ("axis " + Twine(axis) + " of " + user + " is not in [" + Twine(-rank) + ", " +
                     Twine(rank) + ")")
                        .str(),
                    "axes count from 0, or from the last one with -1");
  return axis < 0 ? axis + rank : axis;
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

TileValue ElementBuilder::repeat(const TileValue &x, Integers shape) {
  if (ArrayRef<int64_t>(x.type.shape) == shape)
    return x;
  ValueType type = x.type.withShape(shape);
  if (x.type.shape.empty())
    return {create<tile::SplatOp>(ir(type), x.ir), type};
  TileValue padded = x;
  while (padded.type.shape.size() < shape.size()) {
    padded.type.shape.insert(padded.type.shape.begin(), 1);
    padded.ir = create<tile::ExpandDimsOp>(ir(padded.type), padded.ir, /*axis=*/0);
  }
  if (ArrayRef<int64_t>(padded.type.shape) == shape)
    return padded;
  return {create<tile::BroadcastOp>(ir(type), padded.ir), type};
}

std::pair<TileValue, TileValue> ElementBuilder::broadcast(const Operand &a, const Operand &b) {
  ValueType typeA = a.type(), typeB = b.type();
  if (!typeA.hasElements() || !typeB.hasElements())
    throw UserError("E029", "broadcast of " + a.describe() + " and " + b.describe(),
                    "pass numbers or pointers");
  SmallVector<int64_t> shape = broadcastShapes(typeA, typeB);
  TileValue left = toTensor(a), right = toTensor(b);
  return {repeat(left, shape), repeat(right, shape)};
}

TileValue ElementBuilder::broadcastTo(const Operand &x, Integers shape) {
  ValueType type = x.type();
  if (!type.hasElements())
    throw UserError("E029", "broadcast_to of " + x.describe(), "pass a number or a pointer");
  checkTileShape(shape);
  bool fits = type.shape.empty() || type.shape.size() == shape.size();
  if (fits)
    for (auto [from, to] : llvm::zip(type.shape, shape))
      fits &= from == 1 || from == to;
  if (!fits)
    throw UserError("E022", "cannot broadcast " + toString(type) + " to " + toString(shape),
                    "ranks must be equal, and only extents of 1 are repeated");
  return repeat(toTensor(x), shape);
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

TileValue ElementBuilder::expandDims(const Operand &x, Integers axes) {
  ValueType type = x.type();
  if (!type.hasElements())
    throw UserError("E029", "expand_dims of " + x.describe(), "pass a number or a tile");
  int64_t rank = type.shape.size() + axes.size();
  checkTileShape(SmallVector<int64_t>(rank, 1));
  SmallVector<int64_t> places;
  for (int64_t axis : axes) {
    int64_t place = normalizeAxis(axis, rank, "expand_dims");
    if (llvm::is_contained(places, place))
      throw UserError("E024", "expand_dims names axis " + std::to_string(place) + " twice",
                      "name each new axis once");
    places.push_back(place);
  }
  llvm::sort(places);
  TileValue result = toTensor(x);
  if (result.type.shape.empty()) {
    SmallVector<int64_t> ones(rank, 1);
    return rank == 0 ? result : repeat(result, ones);
  }
  for (int64_t place : places) {
    result.type.shape.insert(result.type.shape.begin() + place, 1);
    result.ir =
        create<tile::ExpandDimsOp>(ir(result.type), result.ir, static_cast<uint32_t>(place));
  }
  return result;
}

TileValue ElementBuilder::reshape(const Operand &x, Integers shape) {
  ValueType type = requireElements(x, "reshape");
  checkTileShape(shape);
  int64_t from = 1, to = 1;
  for (int64_t extent : type.shape)
    from *= extent;
  for (int64_t extent : shape)
    to *= extent;
  if (from != to)
    throw UserError("E023",
                    "cannot reshape " + toString(type) + " of " + std::to_string(from) +
                        " elements to " + toString(shape) + " of " + std::to_string(to),
                    "a reshape keeps the number of elements");
  ValueType result = type.withShape(shape);
  TileValue source = x.value();
  if (type.shape == result.shape)
    return source;
  if (type.shape.empty())
    return repeat(source, shape);
  if (!shape.empty())
    return {create<tile::ReshapeOp>(ir(result), source.ir), result};
  // The one element of a tile, as a scalar: the only way out is a reduction.
  if (type.shape.size() > 1) {
    source.type.shape = {1};
    source.ir = create<tile::ReshapeOp>(ir(source.type), source.ir);
  }
  auto reduce = create<tile::ReduceOp>(TypeRange{ir(result)}, ValueRange{source.ir}, /*axis=*/0u);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&reduce.getCombine());
  Values sides = addArguments(block, {result, result});
  create<tile::ReduceReturnOp>(ValueRange{sides[0].ir});
  return {reduce.getResult(0), result};
}

TileValue ElementBuilder::permute(const Operand &x, Integers order) {
  ValueType type = requireTile(x, "permute");
  int64_t rank = type.shape.size();
  SmallVector<int32_t> dims;
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : order) {
    int64_t place = normalizeAxis(dim, rank, "permute");
    dims.push_back(place);
    seen.set(place);
  }
  if (static_cast<int64_t>(order.size()) != rank || !seen.all())
    throw UserError("E023",
                    "permute of " + toString(type) + " by " + toString(order) +
                        ", which is no order of its " + std::to_string(rank) + " dimensions",
                    "name each dimension once");
  ValueType result = type;
  for (auto [extent, dim] : llvm::zip(result.shape, dims))
    extent = type.shape[dim];
  return {create<tile::TransOp>(ir(result), x.value().ir, dims), result};
}

//===----------------------------------------------------------------------===//
// Join, split, cat
//===----------------------------------------------------------------------===//

TileValue ElementBuilder::join(const Operand &a, const Operand &b) {
  if (!a.isValue() && !b.isValue())
    throw UserError("E029", "join of the literals " + a.describe() + " and " + b.describe(),
                    "make a tile of one of them with tl.full");
  const ValueType &known = a.isValue() ? a.value().type : b.value().type;
  if (!known.hasElements() || a.isNone() || b.isNone())
    throw UserError("E029", "join of " + a.describe() + " and " + b.describe(), "pass tiles");
  for (const Operand *x : {&a, &b}) {
    if (x->isLiteral()) {
      if (!known.isNumber())
        throw UserError("E029", "join of " + a.describe() + " and " + b.describe(), "pass tiles");
      checkLiteralFits(*x, known.dtype);
    } else if (x->value().type.withShape({}) != known.withShape({})) {
      throw UserError("E023",
                      "join of " + a.describe() + " and " + b.describe() +
                          ", whose element types differ",
                      "cast one of them first");
    }
  }
  SmallVector<int64_t> shape = a.isLiteral() || b.isLiteral()
                                   ? known.shape
                                   : broadcastShapes(a.value().type, b.value().type);
  ValueType type = known.withShape(shape);
  type.shape.push_back(2);
  checkTileShape(type.shape);
  auto side = [&](const Operand &x) {
    return x.isLiteral() ? constant(x, known) : repeat(x.value(), shape);
  };
  TileValue left = side(a), right = side(b);
  return {create<tile::JoinOp>(ir(type), left.ir, right.ir), type};
}

std::pair<TileValue, TileValue> ElementBuilder::split(const Operand &x) {
  ValueType type = requireTile(x, "split");
  if (type.shape.back() != 2)
    throw UserError("E023", "split of " + toString(type) + ", whose last extent is not 2",
                    "reshape it so that the last dimension has extent 2");
  type.shape.pop_back();
  auto op = create<tile::SplitOp>(ir(type), ir(type), x.value().ir);
  return {TileValue{op.getLhs(), type}, TileValue{op.getRhs(), type}};
}

TileValue ElementBuilder::cat(const Operand &a, const Operand &b, int64_t dim) {
  ValueType type = requireTile(a, "cat");
  if (requireTile(b, "cat") != type)
    throw UserError("E023", "cat of " + a.describe() + " and " + b.describe(),
                    "both must have one shape and one element type");
  int64_t axis = normalizeAxis(dim, type.shape.size(), "cat");
  int64_t extent = type.shape[axis];
  if ((extent & (extent - 1)) != 0)
    throw UserError("E023",
                    "cat of two " + toString(type) + " along dimension " + std::to_string(axis) +
                        ", whose extent is no power of two",
                    "load both halves as one tile, or use extents that are powers of two");
  type.shape[axis] *= 2;
  checkTileShape(type.shape);
  return {create<tile::CatOp>(ir(type), a.value().ir, b.value().ir, static_cast<uint32_t>(axis)),
          type};
}
