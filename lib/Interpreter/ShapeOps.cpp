// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles from nothing or a scalar, and ops that move elements without computing on
// them.

#include "Program.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

/// Row-major position of an index.
static int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [i, extent] : llvm::zip_equal(index, shape))
    position = position * extent + i;
  return position;
}

static Tile runRange(tile::RangeOp op, Program &) {
  Tile result(op.getType());
  for (size_t i = 0; i < result.size(); ++i)
    result.bits[i] = truncate(op.getStart() + i, 32);
  return result;
}

static Tile runSplat(tile::SplatOp op, Program &p) {
  Tile result(op.getType());
  result.bits.assign(result.size(), p.scalar(op.getSource()));
  return result;
}

/// Along a dimension of extent 1 every index reads element 0.
static Tile runBroadcast(tile::BroadcastOp op, Program &p) {
  const Tile &source = p.tile(op.getSource());
  Tile result(op.getType());
  for (size_t i = 0; i < result.size(); ++i) {
    SmallVector<int64_t> index = delinearize(i, result.shape());
    for (auto [position, extent] : llvm::zip_equal(index, source.shape()))
      if (extent == 1)
        position = 0;
    result.bits[i] = source.bits[linearize(index, source.shape())];
  }
  return result;
}

/// Row-major order stays, under another shape.
template <typename Op> static Tile keepOrder(Op op, Program &p) {
  Tile result = p.tile(op.getSource());
  result.type = op.getType();
  return result;
}

static Tile runTrans(tile::TransOp op, Program &p) {
  const Tile &source = p.tile(op.getSource());
  Tile result(op.getType());
  for (size_t i = 0; i < result.size(); ++i) {
    SmallVector<int64_t> index = delinearize(i, result.shape()), from(index.size());
    for (auto [dim, sourceDim] : llvm::enumerate(op.getOrder()))
      from[sourceDim] = index[dim];
    result.bits[i] = source.bits[linearize(from, source.shape())];
  }
  return result;
}

static Tile runJoin(tile::JoinOp op, Program &p) {
  const Tile &lhs = p.tile(op.getLhs()), &rhs = p.tile(op.getRhs());
  Tile result(op.getType());
  for (size_t i = 0; i < lhs.size(); ++i) {
    result.bits[2 * i] = lhs.bits[i];
    result.bits[2 * i + 1] = rhs.bits[i];
  }
  return result;
}

static void runSplit(tile::SplitOp op, Program &p) {
  const Tile &source = p.tile(op.getSource());
  Tile lhs(op.getLhs().getType()), rhs(op.getRhs().getType());
  for (size_t i = 0; i < lhs.size(); ++i) {
    lhs.bits[i] = source.bits[2 * i];
    rhs.bits[i] = source.bits[2 * i + 1];
  }
  p.set(op.getLhs(), std::move(lhs));
  p.set(op.getRhs(), std::move(rhs));
}

static Tile runCat(tile::CatOp op, Program &p) {
  const Tile &lhs = p.tile(op.getLhs()), &rhs = p.tile(op.getRhs());
  Tile result(op.getType());
  AxisShape half(lhs.shape(), op.getAxis()), whole(result.shape(), op.getAxis());
  for (int64_t o = 0; o < half.outer; ++o)
    for (int64_t k = 0; k < half.length; ++k)
      for (int64_t i = 0; i < half.inner; ++i) {
        result.bits[whole.at(o, k, i)] = lhs.bits[half.at(o, k, i)];
        result.bits[whole.at(o, k + half.length, i)] = rhs.bits[half.at(o, k, i)];
      }
  return result;
}

void interpreter::addShapeOps(OpTable &table) {
  table.addResult<tile::RangeOp>(runRange);
  table.addResult<tile::SplatOp>(runSplat);
  table.addResult<tile::BroadcastOp>(runBroadcast);
  table.addResult<tile::ExpandDimsOp>(keepOrder<tile::ExpandDimsOp>);
  table.addResult<tile::ReshapeOp>(keepOrder<tile::ReshapeOp>);
  table.addResult<tile::TransOp>(runTrans);
  table.addResult<tile::JoinOp>(runJoin);
  table.add<tile::SplitOp>(runSplit);
  table.addResult<tile::CatOp>(runCat);
}
