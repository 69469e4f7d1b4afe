// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pow: x^y = 2^(y log2 |x|), then the sign, then the cases that C names. The error of y log2 |x|, a
// number up to 1074 (150), is the relative error of the result. So the logarithm must have 11 (8)
// bits more than the result. For f32 it is taken in f64, for f64 as a sum of two numbers of which
// the second holds what the first lost.

#include "MathCoefficients.h"
#include "MathFunctions.h"

using namespace mlir;

namespace tessera {

using arith::CmpFPredicate;
using Pair = MathBuilder::Pair;

namespace {

// 2 / ln 2 and 2 / (3 ln 2), each in two parts.
constexpr double kLinearHigh = 0x1.71547652b82fep+1, kLinearLow = 0x1.777d0ffda0d24p-55;
constexpr double kCubicHigh = 0x1.ec709dc3a03fdp-1, kCubicLow = 0x1.d27f05548af0cp-55;

/// The product of two pairs, to about 2^-100.
Pair multiply(MathBuilder &b, Pair x, Pair y) {
  Pair product = b.exactProduct(x.high, y.high);
  Value cross = b.mulAdd(x.high, y.low, b.mulf(x.low, y.high));
  return {product.high, b.addf(product.low, cross)};
}

/// log2(2^e (1 + f)), to about 2^-64 of it. If s = f / (2 + f), it is e + (2 s + 2/3 s^3 + s^5
/// (...)) / ln 2. Only the last term is small enough for the precision of one number.
Pair log2InPairs(MathBuilder &b, Decomposed parts) {
  Value f = parts.f;
  Pair divisor = b.exactSum(b.number(2), f);
  Value reciprocal = b.divf(b.number(1), divisor.high);
  Pair s;
  s.high = b.mulf(f, reciprocal);
  Pair back = b.exactProduct(s.high, divisor.high);
  Value rest = b.subf(b.subf(f, back.high), back.low);
  s.low = b.mulf(b.subf(rest, b.mulf(s.high, divisor.low)), reciprocal);

  Pair z = multiply(b, s, s);
  Value tail = b.mulf(z.high, b.polynomial(z.high, coefficients::powLog2_64));
  Pair cubic = b.exactSum(b.number(kCubicHigh), tail);
  cubic.low = b.addf(cubic.low, b.number(kCubicLow));
  cubic = multiply(b, z, cubic);
  Pair sum = b.exactSum(b.number(kLinearHigh), cubic.high);
  sum.low = b.addf(b.addf(sum.low, b.number(kLinearLow)), cubic.low);
  Pair fraction = multiply(b, s, sum);

  Pair result = b.exactSum(parts.exponent, fraction.high);
  return {result.high, b.addf(result.low, fraction.low)};
}

/// x^y of f64 lanes; `isSingle`: the range and precision of f32 will do. `b` builds f64.
Value powOfDouble(MathBuilder &b, Value x, Value y, bool isSingle) {
  Value size = b.absf(x), sizeOfY = b.absf(y), one = b.number(1);

  // t = y log2 |x|. From 2^64 on y takes any |x| but 1 out of range, and does not turn
  // a logarithm of 0 into NaN.
  Value held = b.clamp(y, -0x1p64, 0x1p64);
  Pair t;
  if (isSingle) {
    Decomposed parts = decompose(b, size);
    t.high = b.mulAdd(parts.f, b.polynomial(parts.f, coefficients::powLog2_32), parts.exponent);
    t.high = b.mulf(t.high, held);
  } else {
    Pair log2 = log2InPairs(b, decomposeAny(b, size));
    t = b.exactProduct(held, log2.high);
    t.low = b.mulAdd(held, log2.low, t.low);
  }
  // The logarithms of 0, infinity and NaN. (y = 0 is put in at the end.)
  Value isZero = b.compare(CmpFPredicate::OEQ, size, b.number(0));
  Value isBelow = b.compare(CmpFPredicate::OLT, size, b.infinity());
  Value limit = b.mulf(held, b.select(isZero, b.negf(b.infinity()), size));
  t.high = b.select(isBelow, b.select(isZero, limit, t.high), limit);

  // 2^t.
  Value exponent = b.clamp(t.high, isSingle ? -151 : -1076, isSingle ? 129 : 1025);
  MathBuilder::Rounded n = b.roundProduct(exponent, 1.0);
  Value r = b.subf(exponent, n.number), result;
  if (isSingle) {
    Value power = b.mulAdd(r, b.polynomial(r, coefficients::powExp2_32), one);
    result = b.mulf(power, b.powerOfTwo(n.integer));
  } else {
    // For a t out of range, the low part may be anything.
    Value isInRange = b.compare(CmpFPredicate::OEQ, t.high, exponent);
    r = b.addf(r, b.select(isInRange, t.low, b.number(0)));
    result = b.scale(b.mulAdd(r, b.polynomial(r, coefficients::exp2_64), one), n);
  }

  // True if y is an integer, and odd. The last bit of a number from 2^52 to 2^53 is worth
  // one; numbers from 2^53 on are even.
  Value origin = b.number(0x1p52), most = b.number(isSingle ? 0x1p51 : 0x1p53);
  Value counted = b.select(b.compare(CmpFPredicate::OLT, sizeOfY, most), sizeOfY, most);
  Value sum = b.addf(counted, origin);
  Value isInteger = b.compare(CmpFPredicate::OEQ, b.subf(sum, origin), counted);
  if (!isSingle) {
    Value isLarge = b.compare(CmpFPredicate::OGE, counted, origin);
    sum = b.select(isLarge, counted, sum);
    isInteger = b.ori(isInteger, isLarge);
  }
  Value isOdd = b.shli(b.toBits(sum), b.integer(63)); // as a sign
  result = b.fromBits(b.xori(b.toBits(result), b.andi(isOdd, b.toBits(x))));

  // A finite negative number has no power but integral ones.
  Value isNegative = b.andi(b.compare(CmpFPredicate::OLT, x, b.number(0)), isBelow);
  Value isPower = b.ori(isInteger, b.xori(isNegative, b.intConstant(1, 1)));
  result = b.select(isPower, result, b.notANumber());
  // For NaN, too: x^0 and 1^y are 1.
  Value isOne =
      b.ori(b.compare(CmpFPredicate::OEQ, y, b.number(0)), b.compare(CmpFPredicate::OEQ, x, one));
  return b.select(isOne, one, result);
}

} // namespace

Value expandPow(MathBuilder &b, Value x, Value y) {
  MathBuilder wide = b.toDouble();
  Type f64 = wide.typed(wide.getElement());
  if (isa<IntegerType>(getElementTypeOrSelf(y.getType())))
    y = b.create<arith::SIToFPOp>(f64, y);
  else if (b.isSingle())
    y = b.create<arith::ExtFOp>(f64, y);
  if (!b.isSingle())
    return powOfDouble(b, x, y, /*isSingle=*/false);
  Value result = powOfDouble(wide, b.create<arith::ExtFOp>(f64, x), y, /*isSingle=*/true);
  return b.create<arith::TruncFOp>(b.typed(b.getElement()), result);
}

} // namespace tessera
