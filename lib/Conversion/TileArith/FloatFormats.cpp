// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A format narrower than f32 is described by its exponent bias, its mantissa bits and the meaning
// of its topmost codes. All of that is read from LLVM's fltSemantics. So these conversions agree
// with APFloat's (the folders', the interpreter's).
//
// Values below the smallest normal number of the narrow format take another path
// than the others. There an f32 addition of a power of two, whose last place is the
// narrow format's smallest number, does the aligning and the rounding at once.

#include "tessera/Conversion/TileArith/FloatFormats.h"

using namespace mlir;

namespace tessera {

namespace {

/// The layout of a float of 8 or 16 bits.
struct Format {
  unsigned width;
  unsigned mantissa; ///< stored bits
  int bias;
  uint32_t largest;  ///< bits of the largest finite number
  uint32_t infinity; ///< bits of +inf, or of what stands for it (a NaN)
  bool hasInfinity;
  bool nanIsNegativeZero; ///< the FNUZ formats: one NaN, no negative zero

  explicit Format(FloatType type) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    width = type.getWidth();
    mantissa = APFloat::semanticsPrecision(semantics) - 1;
    bias = 1 - APFloat::semanticsMinExponent(semantics);
    largest = APFloat::getLargest(semantics).bitcastToAPInt().getZExtValue();
    hasInfinity = APFloat::semanticsHasInf(semantics);
    APFloat infinite = hasInfinity ? APFloat::getInf(semantics) : APFloat::getNaN(semantics);
    infinity = infinite.bitcastToAPInt().getZExtValue();
    nanIsNegativeZero = infinity == 1u << (width - 1);
  }
  /// The exponent of an f32 whose last place is the smallest number of the format.
  uint32_t alignerBits() const { return uint32_t(127 + 23 + 1 - bias - int(mantissa)) << 23; }
  unsigned extraBits() const { return 23 - mantissa; }
  /// The term to add to f32 bits to change the bias, at the f32's place.
  uint32_t rebias() const { return uint32_t(127 - bias) << 23; }
};

} // namespace

bool isFloat8(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
}

Value widenToF32(LaneBuilder &lanes, Value source) {
  auto type = cast<FloatType>(getElementTypeOrSelf(source.getType()));
  Format format(type);
  Type f32 = lanes.getBuilder().getF32Type();
  auto bitsOf = [&](uint32_t bits) { return lanes.intConstant(32, bits); };

  Value bits =
      lanes.extui(32, lanes.bitcast(lanes.getBuilder().getIntegerType(format.width), source));
  if (type.isBF16())
    return lanes.bitcast(f32, lanes.shli(bits, bitsOf(16)));

  uint32_t signBit = 1u << (format.width - 1);
  Value magnitude = lanes.andi(bits, bitsOf(signBit - 1));
  Value sign = lanes.shli(lanes.andi(bits, bitsOf(signBit)), bitsOf(32 - format.width));
  Value shifted = lanes.shli(magnitude, bitsOf(format.extraBits()));

  Value normal = lanes.addi(shifted, bitsOf(format.rebias()));
  Value aligner = lanes.bitcast(f32, bitsOf(format.alignerBits()));
  Value aligned = lanes.bitcast(f32, lanes.addi(magnitude, bitsOf(format.alignerBits())));
  Value small = lanes.bitcast(lanes.getBuilder().getI32Type(), lanes.subf(aligned, aligner));
  Value isSmall =
      lanes.compare(arith::CmpIPredicate::ult, magnitude, bitsOf(1u << format.mantissa));
  Value result = lanes.select(isSmall, small, normal);

  // The topmost codes: an exponent of all ones, or one NaN.
  if (format.hasInfinity) {
    Value isSpecial = lanes.compare(arith::CmpIPredicate::ugt, magnitude, bitsOf(format.largest));
    Value isNaN = lanes.compare(arith::CmpIPredicate::ugt, magnitude, bitsOf(format.infinity));
    Value special = lanes.ori(shifted, bitsOf(0x7f800000));
    Value quiet = lanes.ori(special, bitsOf(0x00400000));
    result = lanes.select(isSpecial, lanes.select(isNaN, quiet, special), result);
  } else {
    Value code = format.nanIsNegativeZero ? bits : magnitude;
    Value isNaN = lanes.compare(arith::CmpIPredicate::eq, code, bitsOf(format.infinity));
    result = lanes.select(isNaN, bitsOf(0x7fc00000), result);
  }
  return lanes.bitcast(f32, lanes.ori(result, sign));
}

Value narrowFromF32(LaneBuilder &lanes, Value source, Type target, tile::RoundingMode rounding,
                    bool saturates) {
  auto type = cast<FloatType>(target);
  Format format(type);
  Type i32 = lanes.getBuilder().getI32Type(), f32 = lanes.getBuilder().getF32Type();
  auto bitsOf = [&](uint32_t bits) { return lanes.intConstant(32, bits); };
  bool nearest = rounding == tile::RoundingMode::NearestEven;

  Value bits = lanes.bitcast(i32, source);
  Value extra = bitsOf(format.extraBits());
  Value isNaN = lanes.compare(arith::CmpFPredicate::UNO, source, source);
  // Adding just under half of the last place, or half if that place is odd.
  auto roundNearest = [&](Value value) {
    Value odd = lanes.andi(lanes.shrui(bits, extra), bitsOf(1));
    return lanes.addi(lanes.addi(value, bitsOf((1u << (format.extraBits() - 1)) - 1)), odd);
  };

  if (type.isBF16()) {
    Value rounded = lanes.shrui(nearest ? roundNearest(bits) : bits, extra);
    Value quiet = lanes.ori(lanes.shrui(bits, extra), bitsOf(0x40));
    return lanes.bitcast(type, lanes.trunci(16, lanes.select(isNaN, quiet, rounded)));
  }

  Value magnitude = lanes.andi(bits, bitsOf(0x7fffffff));
  Value sign = lanes.shrui(lanes.andi(bits, bitsOf(0x80000000)), bitsOf(32 - format.width));
  Value size = lanes.bitcast(f32, magnitude);

  Value rebiased = lanes.subi(magnitude, bitsOf(format.rebias()));
  Value normal = lanes.shrui(nearest ? roundNearest(rebiased) : rebiased, extra);

  Value small;
  if (nearest) {
    Value aligner = lanes.bitcast(f32, bitsOf(format.alignerBits()));
    small = lanes.subi(lanes.bitcast(i32, lanes.addf(size, aligner)), bitsOf(format.alignerBits()));
  } else {
    // In units of the smallest number, towards zero. Larger lanes are poison here
    // and not chosen below.
    Value units =
        lanes.bitcast(f32, bitsOf(uint32_t(127 + format.bias - 1 + int(format.mantissa)) << 23));
    small = lanes.create<arith::FPToSIOp>(lanes.intType(32), lanes.mulf(size, units));
  }
  uint32_t smallestNormal = uint32_t(127 + 1 - format.bias) << 23;
  Value isSmall = lanes.compare(arith::CmpIPredicate::ult, magnitude, bitsOf(smallestNormal));
  Value result = lanes.select(isSmall, small, normal);

  // Overflow: to infinity (or the NaN that stands for it), or held at the largest.
  Value isLarge = lanes.compare(arith::CmpIPredicate::ugt, result, bitsOf(format.largest));
  result = lanes.select(isLarge, bitsOf(nearest && !saturates ? format.infinity : format.largest),
                        result);
  if (!nearest && !saturates) {
    Value isInfinite = lanes.compare(arith::CmpIPredicate::eq, magnitude, bitsOf(0x7f800000));
    result = lanes.select(isInfinite, bitsOf(format.infinity), result);
  }

  if (format.nanIsNegativeZero) {
    Value isZero = lanes.compare(arith::CmpIPredicate::eq, result, bitsOf(0));
    Value isSpecial = lanes.compare(arith::CmpIPredicate::eq, result, bitsOf(format.infinity));
    Value isUnsigned = saturates ? isZero : lanes.ori(isZero, isSpecial);
    result = lanes.select(isUnsigned, result, lanes.ori(result, sign));
    result = lanes.select(isNaN, bitsOf(format.infinity), result);
  } else {
    Value quiet;
    if (format.hasInfinity) {
      Value payload = lanes.andi(lanes.shrui(bits, extra), bitsOf((1u << format.mantissa) - 1));
      quiet = lanes.ori(payload, bitsOf(format.infinity | 1u << (format.mantissa - 1)));
    } else {
      quiet = bitsOf(format.infinity);
    }
    result = lanes.ori(lanes.select(isNaN, quiet, result), sign);
  }
  return lanes.bitcast(type, lanes.trunci(format.width, result));
}

Value narrowToF32Odd(LaneBuilder &lanes, Value source) {
  OpBuilder &builder = lanes.getBuilder();
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type(), f64 = builder.getF64Type();
  Value nearest = lanes.create<arith::TruncFOp>(lanes.typed(f32), source);
  Value back = lanes.create<arith::ExtFOp>(lanes.typed(f64), nearest);
  Value bits = lanes.bitcast(i32, nearest);
  // One of the two neighbours of an inexact value is odd: the other one is fixed up.
  Value tooLarge = lanes.compare(arith::CmpFPredicate::OGT, lanes.create<math::AbsFOp>(back),
                                 lanes.create<math::AbsFOp>(source));
  Value one = lanes.intConstant(32, 1);
  Value isEven =
      lanes.compare(arith::CmpIPredicate::eq, lanes.andi(bits, one), lanes.intConstant(32, 0));
  Value odd = lanes.select(tooLarge, lanes.subi(bits, one), lanes.ori(bits, one));
  Value inexact = lanes.compare(arith::CmpFPredicate::ONE, back, source);
  return lanes.bitcast(f32, lanes.select(lanes.andi(inexact, isEven), odd, bits));
}

Value roundSumToOdd(LaneBuilder &lanes, Value high, Value low) {
  OpBuilder &builder = lanes.getBuilder();
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  Value bits = lanes.bitcast(i32, high), error = lanes.bitcast(i32, low);
  Value zero = lanes.intConstant(32, 0), one = lanes.intConstant(32, 1);
  // The true value is nearer to zero than `high` where the signs differ.
  Value tooLarge = lanes.compare(arith::CmpIPredicate::slt, lanes.xori(bits, error), zero);
  Value isEven = lanes.compare(arith::CmpIPredicate::eq, lanes.andi(bits, one), zero);
  Value odd = lanes.select(tooLarge, lanes.subi(bits, one), lanes.ori(bits, one));
  Value inexact = lanes.compare(arith::CmpFPredicate::ONE, low, lanes.floatConstant(f32, 0.0));
  return lanes.bitcast(f32, lanes.select(lanes.andi(inexact, isEven), odd, bits));
}

Value narrowToF32TowardZero(LaneBuilder &lanes, Value source) {
  OpBuilder &builder = lanes.getBuilder();
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type(), f64 = builder.getF64Type();
  Value nearest = lanes.create<arith::TruncFOp>(lanes.typed(f32), source);
  Value back = lanes.create<arith::ExtFOp>(lanes.typed(f64), nearest);
  Value size = lanes.create<math::AbsFOp>(source);
  Value tooLarge = lanes.compare(arith::CmpFPredicate::OGT, lanes.create<math::AbsFOp>(back), size);
  // An infinity that came from an infinity is not "too large".
  Value bits = lanes.bitcast(i32, nearest);
  return lanes.bitcast(f32,
                       lanes.select(tooLarge, lanes.subi(bits, lanes.intConstant(32, 1)), bits));
}

} // namespace tessera
