// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements without computing on them. Layouts are such that each thread
// has the elements of its results already (TileEncodingInterface), under other names.
//
// The names follow from coordinates. Register r of the result adds some coordinates to those of its
// thread. Mapped to the operand, they are those that the wanted register of the operand adds.

#include "Patterns.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Calls `getSource(coordinates)` for the coordinates that each register of a tile adds.
template <typename F> SmallVector<Value> forEachRegister(Type type, F getSource) {
  SmallVector<Value> results;
  const LinearLayout &layout = tilegpu::getLayout(type);
  for (int64_t number = 0, e = getNumRegisters(type); number < e; ++number)
    results.push_back(getSource(getRegisterCoordinates(layout, number)));
  return results;
}

/// The register with these coordinates; null where they are not a register's alone.
Value lookUp(Type type, ValueRange registers, ArrayRef<int64_t> coordinates) {
  std::optional<int64_t> number = findRegister(tilegpu::getLayout(type), coordinates);
  return number ? registers[*number] : Value();
}

/// An op with one operand and one result, as a map from coordinates to coordinates.
template <typename Op> struct MovePattern : TilePattern<Op> {
  using Coordinates = SmallVector<int64_t>;
  using OneToNOpAdaptor = typename TilePattern<Op>::OneToNOpAdaptor;
  using Map = Coordinates (*)(Op, Coordinates);

  MovePattern(const TileGPUTypeConverter &converter, Map map)
      : TilePattern<Op>(converter), map(map) {}

  LogicalResult matchAndRewrite(Op op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange source = adaptor.getSource();
    SmallVector<SmallVector<Value>> results(1);
    results[0] = forEachRegister(op.getType(), [&](Coordinates coordinates) {
      return lookUp(op.getSource().getType(), source, map(op, std::move(coordinates)));
    });
    if (!llvm::all_of(results[0], [](Value value) { return value != nullptr; }))
      return op.emitOpError("would have to move elements between threads");
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

  Map map;
};

SmallVector<int64_t> mapBroadcast(tile::BroadcastOp op, SmallVector<int64_t> coordinates) {
  for (auto [coordinate, extent] :
       llvm::zip_equal(coordinates, tile::getShape(op.getSource().getType())))
    if (extent == 1)
      coordinate = 0;
  return coordinates;
}

SmallVector<int64_t> mapExpandDims(tile::ExpandDimsOp op, SmallVector<int64_t> coordinates) {
  coordinates.erase(coordinates.begin() + op.getAxis());
  return coordinates;
}

SmallVector<int64_t> mapTrans(tile::TransOp op, SmallVector<int64_t> coordinates) {
  SmallVector<int64_t> source(coordinates.size());
  for (auto [dim, sourceDim] : llvm::enumerate(op.getOrder()))
    source[sourceDim] = coordinates[dim];
  return source;
}

SmallVector<int64_t> mapReshape(tile::ReshapeOp op, SmallVector<int64_t> coordinates) {
  int64_t position = 0;
  for (auto [coordinate, extent] : llvm::zip_equal(coordinates, tile::getShape(op.getType())))
    position = position * extent + coordinate;
  ArrayRef<int64_t> shape = tile::getShape(op.getSource().getType());
  SmallVector<int64_t> source(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; position /= shape[dim])
    source[dim] = position % shape[dim];
  return source;
}

/// Two scalars may be joined to a tile that lives anywhere: then a thread chooses.
struct JoinPattern : TilePattern<tile::JoinOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::JoinOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    Type half = op.getLhs().getType();
    SmallVector<SmallVector<Value>> results(1);
    if (!isa<RankedTensorType>(half)) {
      ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
      for (ArrayRef<Value> at : emitCoordinates(thread, tilegpu::getLayout(op.getType())))
        results[0].push_back(thread.select(thread.equal(at[0], 0), lhs[0], rhs[0]));
    } else {
      results[0] = forEachRegister(op.getType(), [&](SmallVector<int64_t> coordinates) {
        bool isRight = coordinates.pop_back_val() != 0;
        return lookUp(half, isRight ? rhs : lhs, coordinates);
      });
      if (!llvm::all_of(results[0], [](Value value) { return value != nullptr; }))
        return op.emitOpError("would have to move elements between threads");
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct SplitPattern : TilePattern<tile::SplitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::SplitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange source = adaptor.getSource();
    Type whole = op.getSource().getType(), half = op.getLhs().getType();
    SmallVector<SmallVector<Value>> results(2);
    for (int64_t side : {0, 1}) {
      auto getSource = [&](SmallVector<int64_t> coordinates) {
        coordinates.push_back(side);
        return lookUp(whole, source, coordinates);
      };
      if (isa<RankedTensorType>(half))
        results[side] = forEachRegister(half, getSource);
      else
        results[side].push_back(getSource({}));
      if (!llvm::all_of(results[side], [](Value value) { return value != nullptr; }))
        return op.emitOpError("needs both halves in one thread, has ") << whole;
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct CatPattern : TilePattern<tile::CatOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::CatOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    Type half = op.getLhs().getType();
    int64_t extent = tile::getShape(half)[op.getAxis()];
    SmallVector<SmallVector<Value>> results(1);
    results[0] = forEachRegister(op.getType(), [&](SmallVector<int64_t> coordinates) {
      int64_t &along = coordinates[op.getAxis()];
      bool isRight = along >= extent;
      along -= isRight ? extent : 0;
      return lookUp(half, isRight ? rhs : lhs, coordinates);
    });
    if (!llvm::all_of(results[0], [](Value value) { return value != nullptr; }))
      return op.emitOpError("would have to move elements between threads");
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateShapePatterns(const TileGPUTypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<MovePattern<tile::BroadcastOp>>(converter, mapBroadcast);
  patterns.add<MovePattern<tile::ExpandDimsOp>>(converter, mapExpandDims);
  patterns.add<MovePattern<tile::TransOp>>(converter, mapTrans);
  patterns.add<MovePattern<tile::ReshapeOp>>(converter, mapReshape);
  patterns.add<JoinPattern, SplitPattern, CatPattern>(converter);
}
