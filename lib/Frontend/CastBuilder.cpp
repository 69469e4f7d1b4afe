// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts, explicit and implicit. All are elementwise, none depends on the shape.
//
//     to            from integer            from float               from pointer
//     int1          != 0                    != 0                     != null
//     integer       sext, zext, trunc       tile.fp_to_int           tile.ptr_to_int (64 bits)
//     float         sitofp, uitofp          tile.fp_to_fp            -
//     pointer       tile.int_to_ptr         -                        tile.bitcast
//
// Casts between 8-bit floats and integers go through fp32, so targets need no direct conversion.
// The cast from an integer then rounds twice. A float8e4b15 is converted to and from every other
// type through fp32.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

static tile::Signedness signednessOf(DType dtype) {
  return isSignedInteger(dtype) ? tile::Signedness::Signed : tile::Signedness::Unsigned;
}

TileValue ElementBuilder::compareToZero(const TileValue &x) {
  ValueType boolType = ValueType::number(DType::Int1, x.type.shape);
  if (x.type.dtype == DType::Int1)
    return x;
  TileValue zero = constant(0, x.type);
  if (isFloat(x.type.dtype))
    return {create<arith::CmpFOp>(arith::CmpFPredicate::UNE, x.ir, zero.ir), boolType};
  return {create<arith::CmpIOp>(arith::CmpIPredicate::ne, x.ir, zero.ir), boolType};
}

TileValue ElementBuilder::castElements(const TileValue &x, DType dtype, bool towardZero) {
  DType from = x.type.dtype;
  if (from == dtype)
    return x;
  ValueType type = x.type.withDType(dtype);
  Type irType = ir(type);

  if (dtype == DType::Int1) {
    if (isFloat8(from))
      return compareToZero(castElements(x, DType::FP32));
    return compareToZero(x);
  }
  if (isFloat8(from) && isInteger(dtype))
    return castElements(castElements(x, DType::FP32), dtype);
  if (isInteger(from) && isFloat8(dtype))
    return castElements(castElements(x, DType::FP32), dtype);

  // The float8e4nv of the same bits is 2^8 times as large; the scaling is exact in f32.
  if (from == DType::FP8E4B15) {
    ValueType wide = x.type.withDType(DType::FP32);
    Value bits = create<tile::FpToFpOp>(ir(wide), x.ir, tile::RoundingMode::NearestEven);
    Value factor = constant(1 / kE4B15Scale, wide).ir;
    return castElements({create<arith::MulFOp>(bits, factor), wide}, dtype, towardZero);
  }
  if (dtype == DType::FP8E4B15 && getBitWidth(from) < 32)
    return castElements(castElements(x, DType::FP32), dtype, towardZero);
  if (dtype == DType::FP8E4B15) {
    Value scaled = create<arith::MulFOp>(x.ir, constant(kE4B15Scale, x.type).ir);
    TileValue bits = castElements({scaled, x.type}, DType::FP8E4NV, towardZero);
    return {bits.ir, type};
  }

  if (isFloat(from) && isFloat(dtype)) {
    auto rounding = towardZero ? tile::RoundingMode::TowardZero : tile::RoundingMode::NearestEven;
    return {create<tile::FpToFpOp>(irType, x.ir, rounding), type};
  }
  if (isFloat(from))
    return {create<tile::FpToIntOp>(irType, signednessOf(dtype), x.ir), type};
  if (isFloat(dtype)) {
    if (isSignedInteger(from))
      return {create<arith::SIToFPOp>(irType, x.ir), type};
    return {create<arith::UIToFPOp>(irType, x.ir), type};
  }
  unsigned fromWidth = getBitWidth(from), width = getBitWidth(dtype);
  if (fromWidth == width)
    return {x.ir, type};
  if (fromWidth > width)
    return {create<arith::TruncIOp>(irType, x.ir), type};
  if (isSignedInteger(from))
    return {create<arith::ExtSIOp>(irType, x.ir), type};
  return {create<arith::ExtUIOp>(irType, x.ir), type};
}

TileValue ElementBuilder::convert(const Operand &x, DType dtype, Integers shape) {
  if (x.isLiteral())
    return constant(x, ValueType::number(dtype, shape));
  return repeat(castElements(x.value(), dtype), shape);
}

/// The same bits under another type of the same shape.
TileValue ElementBuilder::bitcastElements(const TileValue &x, const ValueType &type) {
  if (ir(x.type) == ir(type))
    return {x.ir, type};
  return {create<tile::BitcastOp>(ir(type), x.ir), type};
}

TileValue ElementBuilder::cast(const Operand &x, const ValueType &target, StringRef rounding,
                               bool bitcast) {
  ValueType from = x.type();
  if (!from.hasElements() || !target.hasElements())
    throw UserError("E035", "cannot cast " + x.describe() + " to " + toString(target),
                    "only numbers and pointers are cast");
  ValueType to = target.withShape(from.shape);
  ir(to); // throws for what is no element type
  if (!rounding.empty() && rounding != "rtne" && rounding != "rtz")
    throw UserError("E048", ("unknown rounding mode '" + rounding + "'").str(),
                    "write \"rtne\" or \"rtz\"");
  bool narrowsFloat = from.isNumber() && to.isNumber() && isFloat(from.dtype) &&
                      isFloat(to.dtype) && getBitWidth(from.dtype) > getBitWidth(to.dtype);
  if (!rounding.empty() && (!narrowsFloat || bitcast))
    throw UserError("E035",
                    "a rounding mode has no meaning in a cast of " + x.describe() + " to " +
                        toString(to),
                    "give fp_downcast_rounding only where a float becomes narrower");
  std::string what = x.describe() + " to " + toString(to);

  if (from.isPointer() && to.isPointer())
    return bitcastElements(x.value(), to);
  if (from.isPointer()) {
    TileValue address{x.value().ir, ValueType::number(DType::UInt64, from.shape)};
    if (!isInteger(to.dtype) || (getBitWidth(to.dtype) != 64 && to.dtype != DType::Int1))
      throw UserError("E035", "cannot cast " + what, "a pointer is cast to int64, or to a pointer");
    address.ir = create<tile::PtrToIntOp>(ir(address.type), x.value().ir);
    return to.dtype == DType::Int1 ? compareToZero(address) : TileValue{address.ir, to};
  }
  if (to.isPointer()) {
    if (!isInteger(from.dtype))
      throw UserError("E035", "cannot cast " + what, "a pointer is made from an int64");
    TileValue address = castElements(toTensor(x), DType::Int64);
    return {create<tile::IntToPtrOp>(ir(to), address.ir), to};
  }
  if (bitcast) {
    if (getBitWidth(from.dtype) != getBitWidth(to.dtype))
      throw UserError("E035",
                      "cannot bitcast " + what + ": " + std::to_string(getBitWidth(from.dtype)) +
                          " and " + std::to_string(getBitWidth(to.dtype)) + " bits",
                      "a bitcast keeps the width; cast by value with x.to(dtype)");
    return bitcastElements(toTensor(x), to);
  }
  // A literal is rounded once, to the type wanted.
  if (x.isLiteral() && rounding.empty() && literalFits(x, to.dtype))
    return constant(x, to);
  return castElements(toTensor(x), to.dtype, /*towardZero=*/rounding == "rtz");
}
