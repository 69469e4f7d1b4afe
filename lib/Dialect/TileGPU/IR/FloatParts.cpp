// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/FloatParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

SmallVector<std::pair<unsigned, unsigned>> FloatParts::getPairs() const {
  SmallVector<std::pair<unsigned, unsigned>> products;
  for (unsigned total = count; total-- > 0;)
    for (unsigned index = 0; index <= total; ++index)
      products.push_back({total - index, index});
  return products;
}

/// The same number of another type of elements.
static Type withElement(Type type, Type element) {
  if (auto tile = dyn_cast<RankedTensorType>(type))
    return tile.clone(element);
  return element;
}

static Value makeConstant(OpBuilder &builder, Location loc, Type type, TypedAttr number) {
  if (auto tile = dyn_cast<RankedTensorType>(type))
    number = DenseElementsAttr::get(tile, Attribute(number));
  return arith::ConstantOp::create(builder, loc, number);
}

SmallVector<Value> FloatParts::split(OpBuilder &builder, Location loc, Value value) const {
  // Half of the last bit that tf32 has, which is rounded away from zero, and the bits it has.
  constexpr uint32_t kHalf = 0x1000, kBits = ~0x1fffu;
  constexpr uint32_t kSign = 0x80000000, kOne = 0x3f800000;
  // Values that round to infinity, and so would have no rest.
  constexpr uint32_t kMaxTF32 = 0x7f7ff000, kMaxBF16 = 0x7f7f8000;
  Type f32 = value.getType(), words = withElement(f32, builder.getI32Type()),
       bf16 = withElement(f32, builder.getBF16Type());
  auto number = [&](uint32_t bits) {
    return makeConstant(builder, loc, words, builder.getI32IntegerAttr(int32_t(bits)));
  };
  SmallVector<Value> parts;
  for (unsigned index = 0; index + 1 < count; ++index) {
    Value bits = tile::BitcastOp::create(builder, loc, words, value);
    Value magnitude = tile::BitcastOp::create(
        builder, loc, f32, arith::AndIOp::create(builder, loc, bits, number(~kSign)));
    APFloat most(APFloat::IEEEsingle(), APInt(32, isBF16 ? kMaxBF16 : kMaxTF32));
    Value isSmall = arith::CmpFOp::create(
        builder, loc, arith::CmpFPredicate::OLT, magnitude,
        makeConstant(builder, loc, f32, builder.getFloatAttr(builder.getF32Type(), most)));
    Value one = arith::OrIOp::create(
        builder, loc, arith::AndIOp::create(builder, loc, bits, number(kSign)), number(kOne));
    Value small = arith::SelectOp::create(builder, loc, isSmall, bits, one);
    Value part;
    if (isBF16) {
      part = tile::FpToFpOp::create(builder, loc, bf16,
                                    tile::BitcastOp::create(builder, loc, f32, small));
      parts.push_back(part);
      part = tile::FpToFpOp::create(builder, loc, f32, part);
    } else {
      Value rounded = arith::AndIOp::create(
          builder, loc, arith::AddIOp::create(builder, loc, small, number(kHalf)), number(kBits));
      part = tile::BitcastOp::create(builder, loc, f32, rounded);
      parts.push_back(part);
    }
    value = arith::SubFOp::create(builder, loc, value, part);
  }
  if (isBF16)
    value = tile::FpToFpOp::create(builder, loc, bf16, value);
  parts.push_back(value);
  return parts;
}
