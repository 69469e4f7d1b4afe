// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sin, cos, tan. An argument is split into n pi/2 + r with |r| at most pi/4. The low bits of n
// choose the function and its sign. pi/2 is subtracted in parts of 33 bits, so n times a part is
// exact below n = 2^20. The caller reduces larger arguments differently.

#include "MathCoefficients.h"
#include "MathFunctions.h"

using namespace mlir;

namespace tessera {

using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace {

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kLimit = 1.0e6;

// pi/2 = kPart1 + kPart2 + ...; each but the last has 33 bits.
constexpr double kPart1 = 0x1.921fb544p+0;
constexpr double kPart2 = 0x1.0b4611a6p-34;
constexpr double kPart3 = 0x1.3198a2ep-69;
constexpr double kPart4 = 0x1.b839a252049c1p-104;
/// All that follows kPart1.
constexpr double kTail1 = 0x1.0b4611a626331p-34;

/// r as f64 with what its rounding lost, and n as i32.
struct ReducedAngle {
  Value high, low, quadrant, isValid;
};

/// Reduces lanes of f64. `b` builds f64.
ReducedAngle reduce(MathBuilder &b, Value x, bool inFull) {
  Value isValid = b.compare(CmpFPredicate::OLT, b.absf(x), b.number(kLimit));
  x = b.select(isValid, x, b.number(0));
  MathBuilder::Rounded n = b.roundProduct(x, kTwoOverPi);
  Value quadrant = b.trunci(32, n.integer);
  Value first = b.mulAdd(n.number, b.number(-kPart1), x);
  if (!inFull)
    return {b.mulAdd(n.number, b.number(-kTail1), first), Value(), quadrant, isValid};

  // Differences whose rounding errors are kept.
  Value high = first, low;
  for (double part : {kPart2, kPart3}) {
    Value term = b.mulf(n.number, b.number(-part));
    Value sum = b.addf(high, term);
    Value virtualTerm = b.subf(sum, high);
    Value error = b.addf(b.subf(high, b.subf(sum, virtualTerm)), b.subf(term, virtualTerm));
    low = low ? b.addf(low, error) : error;
    high = sum;
  }
  low = b.mulAdd(n.number, b.number(-kPart4), low);
  Value sum = b.addf(high, low);
  // Nothing was subtracted where n is 0; the sums would lose the sign of a -0.
  Value isNear = b.compare(CmpIPredicate::eq, quadrant, b.intConstant(32, 0));
  sum = b.select(isNear, x, sum);
  return {sum, b.addf(b.subf(high, sum), low), quadrant, isValid};
}

/// sin and cos of `high + low` (`low` may be null), |high| at most about pi/4.
Value sinKernel(MathBuilder &b, Value high, Value low) {
  Value z = b.mulf(high, high);
  Value rest =
      b.isSingle() ? b.polynomial(z, coefficients::sin32) : b.polynomial(z, coefficients::sin64);
  Value tail = b.mulf(b.mulf(high, z), rest);
  if (low)
    tail = b.mulAdd(low, b.mulAdd(z, b.number(-0.5), b.number(1)), tail);
  // The sum of -0 and +0 would lose the sign.
  return b.copySign(b.addf(high, tail), high);
}

Value cosKernel(MathBuilder &b, Value high, Value low) {
  Value one = b.number(1);
  Value z = b.mulf(high, high), half = b.mulf(z, b.number(0.5));
  Value rest =
      b.isSingle() ? b.polynomial(z, coefficients::cos32) : b.polynomial(z, coefficients::cos64);
  Value head = b.subf(one, half);
  Value lost = b.subf(b.subf(one, head), half);
  if (low)
    lost = b.mulAdd(high, b.negf(low), lost);
  return b.addf(head, b.mulAdd(b.mulf(z, z), rest, lost));
}

/// Reduces f32 lanes in f64, where one subtraction more is precise enough.
ReducedAngle reduceSingle(MathBuilder &b, Value x) {
  Type f64 = b.getBuilder().getF64Type();
  MathBuilder wide = b.toDouble();
  return reduce(wide, b.create<arith::ExtFOp>(b.typed(f64), x), /*inFull=*/false);
}

/// sin of x + shift * pi/2.
PartialResult expandSinShifted(MathBuilder &b, Value x, unsigned shift) {
  ReducedAngle reduced;
  Value high, low;
  if (b.isSingle()) {
    reduced = reduceSingle(b, x);
    high = b.create<arith::TruncFOp>(b.typed(b.getElement()), reduced.high);
  } else {
    reduced = reduce(b, x, /*inFull=*/true);
    high = reduced.high;
    low = reduced.low;
  }
  Value quadrant = reduced.quadrant;
  if (shift != 0)
    quadrant = b.addi(quadrant, b.intConstant(32, shift));
  Value isOdd =
      b.compare(CmpIPredicate::ne, b.andi(quadrant, b.intConstant(32, 1)), b.intConstant(32, 0));
  Value value = b.select(isOdd, cosKernel(b, high, low), sinKernel(b, high, low));
  // Quadrants 2 and 3 are negated: bit 1 becomes the sign.
  Value sign = b.extui(b.bits(), b.andi(quadrant, b.intConstant(32, 2)));
  sign = b.shli(sign, b.integer(b.bits() - 2));
  return {b.fromBits(b.xori(b.toBits(value), sign)), reduced.isValid};
}

} // namespace

PartialResult expandSin(MathBuilder &b, Value x) { return expandSinShifted(b, x, 0); }
PartialResult expandCos(MathBuilder &b, Value x) { return expandSinShifted(b, x, 1); }

PartialResult expandTan(MathBuilder &b, Value x) {
  // f32 is done in f64 throughout: a quotient of rounded functions would be off by 2 ulp.
  MathBuilder wide = b.toDouble();
  ReducedAngle reduced = b.isSingle() ? reduceSingle(b, x) : reduce(b, x, /*inFull=*/true);
  Value sine = sinKernel(wide, reduced.high, reduced.low);
  Value cosine = cosKernel(wide, reduced.high, reduced.low);
  Value isOdd = b.compare(CmpIPredicate::ne, b.andi(reduced.quadrant, b.intConstant(32, 1)),
                          b.intConstant(32, 0));
  Value result =
      wide.divf(wide.select(isOdd, wide.negf(cosine), sine), wide.select(isOdd, sine, cosine));
  if (b.isSingle())
    result = b.create<arith::TruncFOp>(b.typed(b.getElement()), result);
  return {result, reduced.isValid};
}

} // namespace tessera
