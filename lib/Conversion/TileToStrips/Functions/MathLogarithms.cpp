// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// log, log2, log1p. An argument is split into 2^e (1 + f). If 1 + f is between sqrt(1/2) and
// sqrt(2), adding e to log(1 + f) cancels no digits.

#include "MathCoefficients.h"
#include "MathFunctions.h"

using namespace mlir;

namespace tessera {

using arith::CmpFPredicate;

Decomposed decompose(MathBuilder &b, Value x) {
  Value mantissaBits = b.integer(b.mantissaBits());
  Value bits = b.toBits(x);
  // The bits of sqrt(1/2): how far above them x is, in whole exponents.
  Value origin = b.integer(b.isSingle() ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  Value exponent = b.shrsi(b.subi(bits, origin), mantissaBits);
  Value m = b.fromBits(b.subi(bits, b.shli(exponent, mantissaBits)));
  // Converts the exponent by adding a large number, as roundProduct does in the other direction.
  // AVX2 has no conversion from i64.
  Value shifter = b.number(b.pick(0x1.8p23, 0x1.8p52));
  Value number = b.subf(b.fromBits(b.addi(exponent, b.toBits(shifter))), shifter);
  return {number, b.subf(m, b.number(1))};
}

Decomposed decomposeAny(MathBuilder &b, Value x) {
  Value isSmall = b.compare(CmpFPredicate::OLT, x, b.number(b.pick(0x1p-126, 0x1p-1022)));
  Value grown = b.mulf(x, b.number(b.pick(0x1p23, 0x1p52)));
  Decomposed parts = decompose(b, b.select(isSmall, grown, x));
  Value correction = b.select(isSmall, b.number(-double(b.mantissaBits())), b.number(0));
  parts.exponent = b.addf(parts.exponent, correction);
  return parts;
}

namespace {

/// log(1 + f) - f.
Value logTail(MathBuilder &b, Value f) {
  Value square = b.mulf(f, f);
  if (b.isSingle()) {
    Value rest = b.polynomial(f, coefficients::log32);
    return b.mulAdd(square, b.number(-0.5), b.mulf(square, b.mulf(f, rest)));
  }
  // Let s = f / (2 + f); then log(1 + f) = 2 atanh s = f - s (f - R). The factor f - R is written
  // with f^2 / 2, which makes the leading terms exact.
  Value s = b.divf(f, b.addf(f, b.number(2)));
  Value z = b.mulf(s, s);
  Value rest = b.mulf(z, b.polynomial(z, coefficients::atanh64));
  Value half = b.mulf(square, b.number(0.5));
  return b.subf(b.mulf(s, b.addf(half, rest)), half);
}

/// ln 2 in two parts, as for exp.
double ln2High(MathBuilder &b) { return b.pick(0x1.63p-1, 0x1.62e42feep-1); }
double ln2Low(MathBuilder &b) { return b.pick(-0x1.bd0106p-13, 0x1.a39ef35793c76p-33); }

/// Selects the value of log(x) for an x that is 0, infinite, negative or NaN.
Value fixSpecial(MathBuilder &b, Value x, Value result) {
  Value zero = b.number(0), infinity = b.infinity();
  result = b.select(b.compare(CmpFPredicate::OEQ, x, infinity), infinity, result);
  result = b.select(b.compare(CmpFPredicate::OEQ, x, zero), b.negf(infinity), result);
  return b.select(b.compare(CmpFPredicate::ULT, x, zero), b.notANumber(), result);
}

} // namespace

Value expandLog(MathBuilder &b, Value x) {
  Decomposed parts = decomposeAny(b, x);
  Value tail = b.mulAdd(parts.exponent, b.number(ln2Low(b)), logTail(b, parts.f));
  Value result = b.mulAdd(parts.exponent, b.number(ln2High(b)), b.addf(parts.f, tail));
  return fixSpecial(b, x, result);
}

Value expandLog2(MathBuilder &b, Value x) {
  Decomposed parts = decomposeAny(b, x);
  // (f + tail) / ln 2, where f enters once exactly and once times 1/ln 2 - 1.
  double log2E = 0x1.71547652b82fep+0;
  Value low = b.mulf(logTail(b, parts.f), b.number(log2E));
  low = b.mulAdd(parts.f, b.number(log2E - 1), low);
  Value result = b.addf(parts.exponent, b.addf(parts.f, low));
  return fixSpecial(b, x, result);
}

Value expandLog1p(MathBuilder &b, Value x) {
  Value one = b.number(1);
  Value sum = b.addf(x, one);
  Decomposed parts = decompose(b, sum);
  // The rounding error of 1 + x.
  Value lost = b.select(b.compare(CmpFPredicate::OGE, x, one), b.subf(one, b.subf(sum, x)),
                        b.subf(x, b.subf(sum, one)));
  Value tail = b.addf(logTail(b, parts.f), b.divf(lost, sum));
  tail = b.mulAdd(parts.exponent, b.number(ln2Low(b)), tail);
  Value result = b.mulAdd(parts.exponent, b.number(ln2High(b)), b.addf(parts.f, tail));
  result = b.copySign(result, x);
  return fixSpecial(b, sum, result);
}

} // namespace tessera
