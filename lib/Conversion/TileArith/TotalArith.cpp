// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM leaves x/0, a shift by the width and an out-of-range conversion undefined, and
// the division instructions trap. Each builder here keeps the bad operands away from
// the instruction, or throws its result away with a select.

#include "tessera/Conversion/TileArith/TotalArith.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Conversion/TileArith/FloatFormats.h"
#include "tessera/Conversion/TileArith/LaneBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

using arith::CmpFPredicate;
using arith::CmpIPredicate;
using tile::RoundingMode;
using tile::ShiftKind;
using tile::Signedness;

//===----------------------------------------------------------------------===//
// Integer division
//===----------------------------------------------------------------------===//

namespace {

/// The value of a constant divisor (scalar or splat).
std::optional<APInt> getConstantDivisor(Value divisor) {
  APInt value;
  if (auto splat = divisor.getDefiningOp<vector::BroadcastOp>())
    divisor = splat.getSource();
  if (matchPattern(divisor, m_ConstantInt(&value)))
    return value;
  return std::nullopt;
}

/// Both results of one division; an unused one is dead, and is erased later.
struct Division {
  Value quotient, remainder;
};

/// A quotient of vectors in floating point. No CPU divides vectors of integers, and a trip through
/// scalar registers costs several times as much. If the significand has more than w bits, the float
/// quotient of w-bit integers never rounds across an integer. So f32 serves 8 and 16 bits, and f64
/// serves 32.
Value divideInFloat(LaneBuilder &lanes, bool isSigned, Value lhs, Value rhs) {
  unsigned width = LaneBuilder::widthOf(lhs);
  Type element =
      width == 32 ? Type(lanes.getBuilder().getF64Type()) : Type(lanes.getBuilder().getF32Type());
  Type type = lanes.typed(element);
  // Below 32 bits signed conversions serve both readings once the value is widened.
  unsigned wide = 32;
  Value a = isSigned ? lanes.extsi(wide, lhs) : lanes.extui(wide, lhs);
  Value b = isSigned ? lanes.extsi(wide, rhs) : lanes.extui(wide, rhs);
  auto toFloat = [&](Value value) {
    return isSigned || width < 32 ? lanes.create<arith::SIToFPOp>(type, value)
                                  : lanes.create<arith::UIToFPOp>(type, value);
  };
  Value quotient = lanes.divf(toFloat(a), toFloat(b));
  Value integer;
  if (!isSigned && width == 32)
    integer = lanes.create<arith::FPToUIOp>(lanes.intType(wide), quotient);
  else
    integer = lanes.create<arith::FPToSIOp>(lanes.intType(wide), quotient);
  return lanes.trunci(width, integer);
}

Division buildDivision(LaneBuilder &lanes, bool isSigned, Value lhs, Value rhs) {
  unsigned width = LaneBuilder::widthOf(lhs);
  Value zero = lanes.intConstant(width, 0), one = lanes.intConstant(width, 1);
  Value ones = lanes.intConstant(APInt::getAllOnes(width));
  auto divide = [&](Value divisor) {
    return isSigned ? lanes.create<arith::DivSIOp>(lhs, divisor)
                    : lanes.create<arith::DivUIOp>(lhs, divisor);
  };
  auto remainderOf = [&](Value quotient, Value divisor) {
    return lanes.subi(lhs, lanes.muli(quotient, divisor));
  };

  if (std::optional<APInt> divisor = getConstantDivisor(rhs)) {
    if (divisor->isZero())
      return {ones, lhs};
    if (isSigned && divisor->isAllOnes())
      return {lanes.subi(zero, lhs), zero};
    Value quotient = divide(rhs);
    return {quotient, remainderOf(quotient, rhs)};
  }

  Value isZero = lanes.compare(CmpIPredicate::eq, rhs, zero);
  bool inFloat = lanes.isVector() && width >= 8 && width <= 32;
  if (isSigned && !inFloat) {
    // -1 is replaced for every dividend, not the smallest integer's alone. So divisions by one
    // scalar have one divisor, and a GPU computes its reciprocal once.
    Value isMinusOne = lanes.compare(CmpIPredicate::eq, rhs, ones);
    Value divisor = lanes.select(lanes.ori(isZero, isMinusOne), one, rhs);
    Value quotient = divide(divisor), remainder = remainderOf(quotient, divisor);
    quotient = lanes.select(isMinusOne, lanes.subi(zero, lhs), quotient);
    return {lanes.select(isZero, ones, quotient), lanes.select(isZero, lhs, remainder)};
  }
  Value unsafe = isZero;
  if (isSigned) {
    Value isSmallest =
        lanes.compare(CmpIPredicate::eq, lhs, lanes.intConstant(APInt::getSignedMinValue(width)));
    Value isMinusOne = lanes.compare(CmpIPredicate::eq, rhs, ones);
    unsafe = lanes.ori(isZero, lanes.andi(isSmallest, isMinusOne));
  }
  // Divided by 1, the smallest integer gives itself and the remainder 0, as defined.
  Value divisor = lanes.select(unsafe, one, rhs);
  Value quotient = inFloat ? divideInFloat(lanes, isSigned, lhs, divisor) : divide(divisor);
  Value remainder = remainderOf(quotient, divisor);
  return {lanes.select(isZero, ones, quotient), lanes.select(isZero, lhs, remainder)};
}

} // namespace

Value buildDivInt(OpBuilder &builder, Location loc, Signedness signedness, Value lhs, Value rhs) {
  LaneBuilder lanes(builder, loc, lhs.getType());
  return buildDivision(lanes, signedness == Signedness::Signed, lhs, rhs).quotient;
}

Value buildRemInt(OpBuilder &builder, Location loc, Signedness signedness, Value lhs, Value rhs) {
  LaneBuilder lanes(builder, loc, lhs.getType());
  return buildDivision(lanes, signedness == Signedness::Signed, lhs, rhs).remainder;
}

//===----------------------------------------------------------------------===//
// Shifts and wide products
//===----------------------------------------------------------------------===//

Value buildShift(OpBuilder &builder, Location loc, ShiftKind kind, Value lhs, Value rhs) {
  LaneBuilder lanes(builder, loc, lhs.getType());
  unsigned width = LaneBuilder::widthOf(lhs);
  std::optional<APInt> amount = getConstantDivisor(rhs);
  bool inRange = amount && amount->ult(width);

  if (kind == ShiftKind::RightArithmetic) {
    if (!inRange)
      rhs = lanes.create<arith::MinUIOp>(rhs, lanes.intConstant(width, width - 1));
    return lanes.shrsi(lhs, rhs);
  }
  if (inRange)
    return kind == ShiftKind::Left ? lanes.shli(lhs, rhs) : lanes.shrui(lhs, rhs);
  Value zero = lanes.intConstant(width, 0);
  if (amount)
    return zero;
  // A width of 1 has no amount but 0 that is in range, and no constant for its width.
  Value isShort = lanes.compare(CmpIPredicate::ule, rhs, lanes.intConstant(width, width - 1));
  Value shifted = kind == ShiftKind::Left ? lanes.shli(lhs, rhs) : lanes.shrui(lhs, rhs);
  return lanes.select(isShort, shifted, zero);
}

Value buildMulHi(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  LaneBuilder lanes(builder, loc, lhs.getType());
  unsigned width = LaneBuilder::widthOf(lhs);
  if (width == 32 || !lanes.isVector()) {
    Value product = lanes.muli(lanes.extui(2 * width, lhs), lanes.extui(2 * width, rhs));
    return lanes.trunci(width, lanes.shrui(product, lanes.intConstant(2 * width, width)));
  }
  // Vectors have no 128-bit lanes: the schoolbook product of 32-bit digits.
  Value low = lanes.intConstant(64, 0xffffffff), half = lanes.intConstant(64, 32);
  Value aLow = lanes.andi(lhs, low), aHigh = lanes.shrui(lhs, half);
  Value bLow = lanes.andi(rhs, low), bHigh = lanes.shrui(rhs, half);
  Value lowLow = lanes.muli(aLow, bLow);
  Value middle = lanes.addi(lanes.muli(aHigh, bLow), lanes.shrui(lowLow, half));
  Value other = lanes.addi(lanes.muli(aLow, bHigh), lanes.andi(middle, low));
  Value high = lanes.addi(lanes.muli(aHigh, bHigh), lanes.shrui(middle, half));
  return lanes.addi(high, lanes.shrui(other, half));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value buildFpToInt(OpBuilder &builder, Location loc, Signedness signedness, Value source,
                   Type target) {
  LaneBuilder lanes(builder, loc, source.getType());
  bool isSigned = signedness == Signedness::Signed;
  unsigned width = target.getIntOrFloatBitWidth();
  auto element = cast<FloatType>(getElementTypeOrSelf(source.getType()));
  if (element.getWidth() < 32) {
    source = buildFpToFp(builder, loc, source, builder.getF32Type(), RoundingMode::NearestEven);
    element = builder.getF32Type();
  }

  // Narrow results go through i32, for which there are vector instructions.
  unsigned wide = std::max(width, 32u);
  auto convert = [&](Value value) {
    // An unsigned range that i32 holds takes the signed instruction.
    bool useSigned = isSigned || width < wide;
    return useSigned ? lanes.create<arith::FPToSIOp>(lanes.intType(wide), value)
                     : lanes.create<arith::FPToUIOp>(lanes.intType(wide), value);
  };
  APInt least = isSigned ? APInt::getSignedMinValue(width) : APInt::getZero(width);
  APInt most = isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  // The first value above the range is a power of two, so every float format holds it.
  double above = std::ldexp(1.0, isSigned ? width - 1 : width);
  auto wideConstant = [&](const APInt &value) {
    return lanes.intConstant(isSigned ? value.sext(wide) : value.zext(wide));
  };

  // The instruction's result for a value out of range is not selected. At or below the lower end
  // the answer is the lower end as well.
  Value result = convert(source);
  Value atLeast = lanes.floatConstant(element, isSigned ? -above : 0.0);
  Value isLow = lanes.compare(CmpFPredicate::OLT, source, atLeast);
  result = lanes.select(isLow, wideConstant(least), result);
  Value isHigh = lanes.compare(CmpFPredicate::OGE, source, lanes.floatConstant(element, above));
  result = lanes.select(isHigh, wideConstant(most), result);
  Value isNaN = lanes.compare(CmpFPredicate::UNO, source, source);
  result = lanes.select(isNaN, lanes.intConstant(wide, 0), result);
  return lanes.trunci(width, result);
}

Value buildFpToFp(OpBuilder &builder, Location loc, Value source, Type target,
                  RoundingMode rounding, bool saturates) {
  LaneBuilder lanes(builder, loc, source.getType());
  Type from = getElementTypeOrSelf(source.getType());
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = target.getIntOrFloatBitWidth();
  Type f32 = builder.getF32Type();
  if (from == target)
    return source;

  // Up to f32 (or f64): exact.
  if (fromWidth < 32) {
    Value wide = isFloat8(from) ? widenToF32(lanes, source)
                                : lanes.create<arith::ExtFOp>(lanes.typed(f32), source);
    return buildFpToFp(builder, loc, wide, target, rounding, saturates);
  }
  if (toWidth == 64)
    return lanes.create<arith::ExtFOp>(lanes.typed(target), source);

  bool nearest = rounding == RoundingMode::NearestEven;
  if (nearest && !isFloat8(target))
    return lanes.create<arith::TruncFOp>(lanes.typed(target), source);
  if (fromWidth == 64) {
    source = nearest ? narrowToF32Odd(lanes, source) : narrowToF32TowardZero(lanes, source);
    if (toWidth == 32)
      return source;
  }
  return narrowFromF32(lanes, source, target, rounding, saturates && isFloat8(target));
}

Value buildConvertBool(OpBuilder &builder, Location loc, Value value) {
  LaneBuilder lanes(builder, loc, value.getType());
  Type element = getElementTypeOrSelf(value.getType());
  if (isa<FloatType>(element))
    return lanes.compare(CmpFPredicate::UNE, value, lanes.floatConstant(element, 0.0));
  return lanes.compare(CmpIPredicate::ne, value,
                       lanes.intConstant(element.getIntOrFloatBitWidth(), 0));
}

Value buildClamp(OpBuilder &builder, Location loc, Value x, Value low, Value high,
                 bool propagateNaN) {
  LaneBuilder lanes(builder, loc, x.getType());
  // Which comparison is false for a NaN decides whether it stays.
  Value raised = propagateNaN ? lanes.select(lanes.compare(CmpFPredicate::OLT, x, low), low, x)
                              : lanes.select(lanes.compare(CmpFPredicate::OGT, x, low), x, low);
  return lanes.select(lanes.compare(CmpFPredicate::OGT, raised, high), high, raised);
}

//===----------------------------------------------------------------------===//
// By op
//===----------------------------------------------------------------------===//

Value buildTotalArith(OpBuilder &builder, Operation *op, ValueRange operands) {
  Location loc = op->getLoc();
  auto element = [](auto total) { return getElementTypeOrSelf(total.getType()); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](tile::DivIntOp total) {
        return buildDivInt(builder, loc, total.getSignedness(), operands[0], operands[1]);
      })
      .Case([&](tile::RemIntOp total) {
        return buildRemInt(builder, loc, total.getSignedness(), operands[0], operands[1]);
      })
      .Case([&](tile::ShiftOp total) {
        return buildShift(builder, loc, total.getKind(), operands[0], operands[1]);
      })
      .Case([&](tile::MulHiOp) { return buildMulHi(builder, loc, operands[0], operands[1]); })
      .Case([&](tile::FpToIntOp total) {
        return buildFpToInt(builder, loc, total.getSignedness(), operands[0], element(total));
      })
      .Case([&](tile::FpToFpOp total) {
        return buildFpToFp(builder, loc, operands[0], element(total), total.getRounding());
      })
      .Case([&](tile::ClampOp total) {
        return buildClamp(builder, loc, operands[0], operands[1], operands[2],
                          total.getPropagateNan());
      })
      .Case([&](tile::PreciseSqrtOp) -> Value {
        return math::SqrtOp::create(builder, loc, operands[0]);
      })
      .Case([&](tile::PreciseDivOp) -> Value {
        return arith::DivFOp::create(builder, loc, operands[0], operands[1]);
      })
      .Default([](Operation *) { return Value(); });
}

} // namespace tessera
