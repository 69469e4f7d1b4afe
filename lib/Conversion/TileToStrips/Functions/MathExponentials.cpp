// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exp and what is made from it. An argument is split into n ln 2 + r with integer n
// and |r| at most half of ln 2, so that exp x = 2^n exp r.

#include "MathCoefficients.h"
#include "MathFunctions.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {

using arith::CmpFPredicate;
using arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Shared parts
//===----------------------------------------------------------------------===//

Value MathBuilder::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = number(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = mulAdd(result, x, number(coefficient));
  return result;
}

Value MathBuilder::clamp(Value x, double low, double high) {
  Value least = number(low), most = number(high);
  x = select(compare(CmpFPredicate::OLT, x, least), least, x);
  return select(compare(CmpFPredicate::OGT, x, most), most, x);
}

MathBuilder::Rounded MathBuilder::roundProduct(Value x, double factor) {
  // In a sum with 1.5 * 2^23 (2^52) the last place is worth one, and the integer
  // stands in the low bits. This needs no rounding instruction (SSE2 has none).
  Value shifter = number(pick(0x1.8p23, 0x1.8p52));
  Value sum = mulAdd(x, number(factor), shifter);
  return {subf(sum, shifter), subi(toBits(sum), toBits(shifter))};
}

Value MathBuilder::powerOfTwo(Value n) {
  return fromBits(shli(addi(n, integer(bias())), integer(mantissaBits())));
}

Value MathBuilder::scale(Value x, Rounded n) {
  auto vector = dyn_cast<VectorType>(x.getType());
  unsigned width = vector ? vector.getNumElements() * bits() : 0;
  if (hasScale && (width == 512 || width == 256 || width == 128)) {
    OpBuilder &b = getBuilder();
    unsigned lanes = vector.getNumElements(), maskBits = std::max(lanes, 8u);
    auto scalar = [&](uint64_t value, unsigned width) -> Value {
      return arith::ConstantIntOp::create(b, getLoc(), int64_t(value), width);
    };
    SmallVector<Value> operands = {x, n.number, x,
                                   scalar(llvm::maskTrailingOnes<uint64_t>(maskBits), maskBits)};
    if (width == 512)
      operands.push_back(scalar(4, 32)); // rounding as set
    std::string name = "llvm.x86.avx512.mask.scalef." + std::string(isSingle() ? "ps." : "pd.") +
                       std::to_string(width);
    return LLVM::CallIntrinsicOp::create(b, getLoc(), x.getType(), b.getStringAttr(name), operands)
        .getResult(0);
  }
  // 2^n itself may be out of range: in two steps, of which the first is exact.
  Value half = shrsi(n.integer, integer(1));
  return mulf(mulf(x, powerOfTwo(half)), powerOfTwo(subi(n.integer, half)));
}

Value MathBuilder::lookUp(ArrayRef<float> table, Value index) {
  OpBuilder &b = getBuilder();
  constexpr int64_t kLanes = 16;
  assert(table.size() == 2 * kLanes && isSingle());
  auto vector = dyn_cast<VectorType>(index.getType());
  int64_t count = vector ? vector.getNumElements() : 1;
  auto floats = VectorType::get(kLanes, element);
  auto half = [&](ArrayRef<float> values) -> Value {
    return arith::ConstantOp::create(b, getLoc(), DenseElementsAttr::get(floats, values));
  };
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> order) -> Value {
    return vector::ShuffleOp::create(b, getLoc(), x, y, order);
  };
  if (!vector)
    index = vector::BroadcastOp::create(b, getLoc(), VectorType::get(1, b.getI32Type()), index);
  Value low = half(table.take_front(kLanes)), high = half(table.drop_front(kLanes));
  Value result;
  for (int64_t first = 0; first < count; first += kLanes) {
    int64_t end = std::min(first + kLanes, count);
    // Lanes that a narrow vector lacks are not used.
    auto order = llvm::to_vector(llvm::seq(first, end));
    order.resize(kLanes, vector::ShuffleOp::kPoisonIndex);
    Value part = count == kLanes ? index : shuffle(index, index, order);
    Value found = LLVM::CallIntrinsicOp::create(
                      b, getLoc(), floats, b.getStringAttr("llvm.x86.avx512.vpermi2var.ps.512"),
                      ValueRange{low, part, high})
                      .getResult(0);
    if (end - first < kLanes)
      found = shuffle(found, found, llvm::to_vector(llvm::seq(int64_t(0), end - first)));
    result = result ? shuffle(result, found, llvm::to_vector(llvm::seq(int64_t(0), end))) : found;
  }
  if (!vector)
    result = vector::ExtractOp::create(b, getLoc(), result, 0);
  return result;
}

MathBuilder::Pair MathBuilder::exactSum(Value a, Value b) {
  Value sum = addf(a, b);
  return {sum, subf(b, subf(sum, a))};
}

MathBuilder::Pair MathBuilder::exactProduct(Value a, Value b) {
  Value product = mulf(a, b);
  if (hasFMA)
    return {product, create<math::FmaOp>(a, b, negf(product))};
  // In halves of 26 (12) bits, whose products are exact.
  auto halve = [&](Value x) -> Pair {
    Value grown = mulf(x, number(pick(0x1p12 + 1, 0x1p27 + 1)));
    Value high = subf(grown, subf(grown, x));
    return {high, subf(x, high)};
  };
  Pair p = halve(a), q = a == b ? p : halve(b);
  Value error = subf(mulf(p.high, q.high), product);
  error = addf(addf(error, mulf(p.high, q.low)), mulf(p.low, q.high));
  return {product, addf(error, mulf(p.low, q.low))};
}

//===----------------------------------------------------------------------===//
// exp
//===----------------------------------------------------------------------===//

namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;

/// n, and exp(r) - 1.
struct Reduced {
  MathBuilder::Rounded n;
  Value expm1;
};

/// ln 2 in two parts, the first short enough for n times it to be exact.
Value subtractHighLn2(MathBuilder &b, Value n, Value x) {
  return b.mulAdd(n, b.number(-b.pick(0x1.63p-1, 0x1.62e42feep-1)), x);
}
Value subtractLowLn2(MathBuilder &b, Value n, Value x) {
  return b.mulAdd(n, b.number(-b.pick(-0x1.bd0106p-13, 0x1.a39ef35793c76p-33)), x);
}

/// (exp r - 1 - r) / r^2.
Value evaluateExpRest(MathBuilder &b, Value r) {
  return b.isSingle() ? b.polynomial(r, coefficients::exp32) : b.polynomial(r, coefficients::exp64);
}

Reduced reduceExp(MathBuilder &b, Value x) {
  MathBuilder::Rounded n = b.roundProduct(x, kLog2E);
  Value r = subtractLowLn2(b, n.number, subtractHighLn2(b, n.number, x));
  return {n, b.mulAdd(b.mulf(r, r), evaluateExpRest(b, r), r)};
}

/// The same for a sum of which `low` is the smaller part: it is not rounded to one number first.
Reduced reduceExp(MathBuilder &b, Value high, Value low) {
  MathBuilder::Rounded n = b.roundProduct(b.addf(high, low), kLog2E);
  high = subtractHighLn2(b, n.number, high);
  low = subtractLowLn2(b, n.number, low);
  Value r = b.addf(high, low);
  return {n, b.addf(high, b.mulAdd(b.mulf(r, r), evaluateExpRest(b, r), low))};
}

} // namespace

Value expandExp(MathBuilder &b, Value x) {
  Reduced reduced = reduceExp(b, b.clamp(x, b.pick(-104, -746), b.pick(89, 710)));
  return b.scale(b.addf(reduced.expm1, b.number(1)), reduced.n);
}

Value expandExp2(MathBuilder &b, Value x) {
  x = b.clamp(x, b.pick(-151, -1076), b.pick(129, 1025));
  MathBuilder::Rounded n = b.roundProduct(x, 1.0);
  Value r = b.subf(x, n.number);
  Value rest = b.isSingle() ? b.polynomial(r, coefficients::exp2_32)
                            : b.polynomial(r, coefficients::exp2_64);
  return b.scale(b.mulAdd(r, rest, b.number(1)), n);
}

Value expandExpm1(MathBuilder &b, Value x) {
  Reduced reduced = reduceExp(b, b.clamp(x, b.pick(-20, -40), b.pick(89, 710)));
  // 2^n (exp r - 1) + (2^n - 1), at half its size since 2^n may overflow.
  Value half = b.powerOfTwo(b.subi(reduced.n.integer, b.integer(1)));
  Value sum = b.mulAdd(half, reduced.expm1, b.subf(half, b.number(0.5)));
  Value isNear = b.compare(CmpIPredicate::eq, reduced.n.integer, b.integer(0));
  Value result = b.select(isNear, reduced.expm1, b.addf(sum, sum));
  return b.copySign(result, x);
}

//===----------------------------------------------------------------------===//
// tanh, erf, rsqrt
//===----------------------------------------------------------------------===//

Value expandTanh(MathBuilder &b, Value x) {
  Value size = b.absf(x), one = b.number(1), two = b.number(2);
  if (!b.isSingle()) {
    // Beyond 22 it is 1.
    Value t = expandExpm1(b, b.mulf(b.clamp(size, 0, 22), two));
    return b.copySign(b.divf(t, b.addf(t, two)), x);
  }
  Value square = b.mulf(x, x);
  Value cubic = b.mulf(b.mulf(size, square), b.polynomial(square, coefficients::tanh32));
  Value exponential = expandExp(b, b.addf(size, size));
  Value large = b.subf(one, b.divf(two, b.addf(exponential, one)));
  Value isSmall = b.compare(CmpFPredicate::OLT, size, b.number(0.625));
  return b.copySign(b.select(isSmall, b.addf(size, cubic), large), x);
}

/// 1 - exp(log(erfc)) for all f32: the logarithm divided by x is a polynomial, and the exponential
/// less 1 keeps its accuracy near 0. So there is one polynomial, and nothing to choose.
static Value expandErf32(MathBuilder &b, Value x) {
  Value size = b.clamp(b.absf(x), 0, 3.93); // beyond that it is 1
  Value rest = b.mulf(size, b.polynomial(size, coefficients::logErfc32));
  Reduced reduced = reduceExp(b, b.negf(size), rest);
  Value power = b.powerOfTwo(reduced.n.integer);
  Value result = b.mulAdd(b.negf(power), reduced.expm1, b.subf(b.number(1), power));
  return b.copySign(result, x);
}

/// A polynomial for each of 32 intervals, which the exponent of |x| + 0.28125 and three bits of its
/// mantissa number. Intervals next to 0 are short, where the result is small. The value at the
/// centre of an interval is almost a float, so that only the rest of the sum is rounded.
static Value lookUpErf32(MathBuilder &b, Value x) {
  using coefficients::erfTables32;
  constexpr unsigned kMantissaBits = 3;
  Value most = b.number(3.93), size = b.absf(x); // beyond that it is 1
  size = b.select(b.compare(CmpFPredicate::OGT, size, most), most, size);
  Value bits = b.toBits(b.addf(size, b.number(0.28125)));
  Value interval = b.shrui(bits, b.integer(b.mantissaBits() - kMantissaBits));
  auto lookUp = [&](unsigned row) { return b.lookUp(erfTables32[row], interval); };
  Value t = b.subf(size, lookUp(0)), slope = lookUp(5);
  for (unsigned row : {4, 3, 2})
    slope = b.mulAdd(slope, t, lookUp(row));
  Value value = b.mulAdd(t, b.number(coefficients::erfSlope32), lookUp(1));
  return b.copySign(b.mulAdd(slope, t, value), x);
}

Value expandErf(MathBuilder &b, Value x) {
  if (b.isSingle())
    return b.looksUp() ? lookUpErf32(b, x) : expandErf32(b, x);
  Value size = b.absf(x), square = b.mulf(x, x);
  Value small = b.mulAdd(size, b.polynomial(square, coefficients::erf64), size);

  // 1 - erfc; beyond the clamp that is 1.
  Value held = b.clamp(size, 0, 6), two = b.number(2);
  Value u = b.divf(b.subf(held, two), b.addf(held, two));
  Value gauss = expandExp(b, b.negf(b.mulf(held, held)));
  Value complement = b.mulf(gauss, b.polynomial(u, coefficients::erfcScaled64));
  Value large = b.subf(b.number(1), complement);
  Value isSmall = b.compare(CmpFPredicate::OLT, size, b.number(1));
  return b.copySign(b.select(isSmall, small, large), x);
}

Value expandRsqrt(MathBuilder &b, Value x) {
  return b.divf(b.number(1), b.create<math::SqrtOp>(x));
}

} // namespace tessera
