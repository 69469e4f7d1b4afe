// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tile-decompose-scaled-dot: a dot of scaled operands becomes one of f32.
//
// No CPU multiplies these formats. Every element of every format, times its scale, is
// an f32 (but where the scale takes it out of range, as the sum would be).

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::tile {
#define GEN_PASS_DEF_TILEDECOMPOSESCALEDDOTPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"

namespace {

class ScaledDotDecomposer {
public:
  ScaledDotDecomposer(tile::DotScaledOp dot, bool forTensorCores)
      : dot(dot), forTensorCores(forTensorCores), builder(dot), loc(dot.getLoc()) {}

  Value run();

private:
  RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  Value integers(Value like, int64_t value) {
    auto type = RankedTensorType::get(typeOf(like).getShape(), builder.getI32Type());
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, builder.getI32IntegerAttr(value)));
  }
  Value widen(Value bytes) {
    auto type = typeOf(bytes).clone(builder.getI32Type());
    return arith::ExtUIOp::create(builder, loc, type, bytes);
  }
  Value asFloat(Value bits) {
    return tile::BitcastOp::create(builder, loc, typeOf(bits).clone(builder.getF32Type()), bits);
  }
  Value isEqual(Value value, int64_t constant) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 integers(value, constant));
  }
  Value select(Value condition, int64_t constant, Value otherwise) {
    return arith::SelectOp::create(builder, loc, condition, integers(otherwise, constant),
                                   otherwise);
  }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return tile::ReshapeOp::create(
        builder, loc, RankedTensorType::get(shape, typeOf(value).getElementType()), value);
  }

  Value decodeE2M1(Value nibbles);
  Value decodeScale(Value bytes);
  Value unpack(Value tile, tile::ScaleFormat format, bool packsColumns);
  Value applyScale(Value values, Value scale, bool depthIsColumns);
  /// The last two of so many dimensions swapped.
  Value transpose(Value value) {
    int32_t rank = typeOf(value).getRank();
    auto order = llvm::to_vector(llvm::seq<int32_t>(0, rank));
    std::swap(order[rank - 2], order[rank - 1]);
    return tile::TransOp::create(builder, loc, value, order);
  }

  /// As bf16, which the elements of most formats are exactly, times a power of two too.
  Value narrow(Value values);

  tile::DotScaledOp dot;
  bool forTensorCores;
  OpBuilder builder;
  Location loc;
};

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives: a sign bit, two of exponent, one of mantissa.
/// From 1 on, they are the top bits of an f32, with another bias.
Value ScaledDotDecomposer::decodeE2M1(Value nibbles) {
  Value magnitude = arith::AndIOp::create(builder, loc, nibbles, integers(nibbles, 7));
  Value sign = arith::AndIOp::create(builder, loc, nibbles, integers(nibbles, 8));
  sign = arith::ShLIOp::create(builder, loc, sign, integers(nibbles, 28));
  Value bits = arith::ShLIOp::create(builder, loc, magnitude, integers(nibbles, 22));
  bits = arith::AddIOp::create(builder, loc, bits, integers(nibbles, 126 << 23));
  bits = select(isEqual(magnitude, 1), 126 << 23, bits);
  bits = select(isEqual(magnitude, 0), 0, bits);
  return asFloat(arith::OrIOp::create(builder, loc, bits, sign));
}

/// 2^(byte - 127); 255 is NaN. Or a number itself.
Value ScaledDotDecomposer::decodeScale(Value bytes) {
  if (isa<FloatType>(typeOf(bytes).getElementType()))
    return tile::FpToFpOp::create(builder, loc, typeOf(bytes).clone(builder.getF32Type()), bytes,
                                  tile::RoundingMode::NearestEven);
  Value exponent = widen(bytes);
  Value bits = arith::ShLIOp::create(builder, loc, exponent, integers(exponent, 23));
  bits = select(isEqual(exponent, 0), 1 << 22, bits);
  bits = select(isEqual(exponent, 255), 0x7fc00000, bits);
  return asFloat(bits);
}

Value ScaledDotDecomposer::unpack(Value tile, tile::ScaleFormat format, bool packsColumns) {
  if (format == tile::ScaleFormat::E2M1) {
    Value bytes = widen(tile);
    Value low = arith::AndIOp::create(builder, loc, bytes, integers(bytes, 15));
    Value high = arith::ShRUIOp::create(builder, loc, bytes, integers(bytes, 4));
    Value pairs = tile::JoinOp::create(builder, loc, low, high);
    if (!packsColumns)
      pairs = transpose(pairs);
    SmallVector<int64_t> shape(typeOf(tile).getShape());
    shape[shape.size() - (packsColumns ? 1 : 2)] *= 2;
    return decodeE2M1(reshape(pairs, shape));
  }
  RankedTensorType type = typeOf(tile);
  Type element = type.getElementType();
  if (format == tile::ScaleFormat::E4M3)
    element = Float8E4M3FNType::get(builder.getContext());
  if (format == tile::ScaleFormat::E5M2)
    element = Float8E5M2Type::get(builder.getContext());
  if (element != type.getElementType())
    tile = tile::BitcastOp::create(builder, loc, type.clone(element), tile);
  return tile::FpToFpOp::create(builder, loc, type.clone(builder.getF32Type()), tile,
                                tile::RoundingMode::NearestEven);
}

/// Each scale stands for a group of neighbours along the inner dimension; its rows are
/// those of `a`, or the columns of `b`.
Value ScaledDotDecomposer::applyScale(Value values, Value scale, bool depthIsColumns) {
  if (!scale)
    return values;
  Value factors = decodeScale(scale);
  if (!depthIsColumns)
    factors = transpose(factors);
  unsigned depthDim = typeOf(values).getRank() - (depthIsColumns ? 1 : 2);
  SmallVector<int64_t> repeated(typeOf(factors).getShape());
  int64_t group = typeOf(values).getDimSize(depthDim) / repeated[depthDim];
  factors = tile::ExpandDimsOp::create(builder, loc, factors, depthDim + 1);
  repeated.insert(repeated.begin() + depthDim + 1, group);
  factors = tile::BroadcastOp::create(
      builder, loc, RankedTensorType::get(repeated, builder.getF32Type()), factors);
  factors = reshape(factors, typeOf(values).getShape());
  return arith::MulFOp::create(builder, loc, values, factors);
}

Value ScaledDotDecomposer::narrow(Value values) {
  // A value that was bf16 before still is.
  if (auto widened = values.getDefiningOp<tile::FpToFpOp>())
    if (getElementTypeOrSelf(widened.getSource().getType()).isBF16())
      return widened.getSource();
  return tile::FpToFpOp::create(builder, loc, typeOf(values).clone(builder.getBF16Type()), values,
                                tile::RoundingMode::NearestEven);
}

Value ScaledDotDecomposer::run() {
  Value a = unpack(dot.getA(), dot.getAFormat(), dot.getAKPack());
  Value b = unpack(dot.getB(), dot.getBFormat(), !dot.getBKPack());
  a = applyScale(a, dot.getAScale(), /*depthIsColumns=*/true);
  b = applyScale(b, dot.getBScale(), /*depthIsColumns=*/false);
  bool isHalf =
      dot.getAFormat() == tile::ScaleFormat::FP16 || dot.getBFormat() == tile::ScaleFormat::FP16;
  if (forTensorCores && !isHalf) {
    a = narrow(a);
    b = narrow(b);
  }
  return tile::DotOp::create(
      builder, loc, dot.getType(), a, b, dot.getAcc(),
      forTensorCores ? tile::InputPrecision::TF32 : tile::InputPrecision::IEEE, 0);
}

struct TileDecomposeScaledDotPass
    : impl::TileDecomposeScaledDotPassBase<TileDecomposeScaledDotPass> {
  using TileDecomposeScaledDotPassBase::TileDecomposeScaledDotPassBase;

  void runOnOperation() override {
    getOperation().walk([&](tile::DotScaledOp dot) {
      if (batchesAlone && tile::getShape(dot.getType()).size() == 2)
        return;
      dot.replaceAllUsesWith(ScaledDotDecomposer(dot, forTensorCores).run());
      dot.erase();
    });
  }
};

} // namespace
} // namespace tessera::tile
