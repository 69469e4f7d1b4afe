// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions are computed in double and rounded once. Up to f32, that is the correctly
// rounded result except for rare ties. f64 is as accurate as the host's libm.

#include "Program.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

using UnaryFunction = double (*)(double);

template <typename Op> static void addUnary(OpTable &table, UnaryFunction f) {
  table.addResult<Op>([f](Op op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(op->getOperand(0)),
               [&](uint64_t bits) { return encodeFloat(element, f(decodeFloat(element, bits))); });
  });
}

using BinaryFunction = double (*)(double, double);

template <typename Op> static void addBinary(OpTable &table, BinaryFunction f) {
  table.addResult<Op>([f](Op op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()), [&](uint64_t a, uint64_t b) {
      return encodeFloat(element, f(decodeFloat(element, a), decodeFloat(element, b)));
    });
  });
}

template <typename Op> static void addPredicate(OpTable &table, bool (*f)(double)) {
  table.addResult<Op>([f](Op op, Program &p) {
    Type element = getElementTypeOrSelf(op.getOperand().getType());
    return map(op.getType(), p.tile(op.getOperand()),
               [&](uint64_t bits) -> uint64_t { return f(decodeFloat(element, bits)); });
  });
}

template <typename Op>
static void addBitCount(OpTable &table, uint64_t (*f)(uint64_t bits, unsigned width)) {
  table.addResult<Op>([f](Op op, Program &p) {
    unsigned width = getBitWidth(getElementTypeOrSelf(op.getType()));
    return map(op.getType(), p.tile(op.getOperand()),
               [&](uint64_t bits) { return f(bits, width); });
  });
}

static void addExponentials(OpTable &table) {
  addUnary<math::ExpOp>(table, [](double x) { return std::exp(x); });
  addUnary<math::Exp2Op>(table, [](double x) { return std::exp2(x); });
  addUnary<math::ExpM1Op>(table, [](double x) { return std::expm1(x); });
  addUnary<math::LogOp>(table, [](double x) { return std::log(x); });
  addUnary<math::Log2Op>(table, [](double x) { return std::log2(x); });
  addUnary<math::Log10Op>(table, [](double x) { return std::log10(x); });
  addUnary<math::Log1pOp>(table, [](double x) { return std::log1p(x); });
  addBinary<math::PowFOp>(table, [](double x, double y) { return std::pow(x, y); });
}

/// The exponent is an integer.
static void addIntegerPower(OpTable &table) {
  table.addResult<math::FPowIOp>([](math::FPowIOp op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    unsigned width = getBitWidth(getElementTypeOrSelf(op.getRhs().getType()));
    return map(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()), [&](uint64_t a, uint64_t b) {
      auto exponent = static_cast<double>(asSigned(b, width));
      return encodeFloat(element, std::pow(decodeFloat(element, a), exponent));
    });
  });
}

static void addTrigonometry(OpTable &table) {
  addUnary<math::SinOp>(table, [](double x) { return std::sin(x); });
  addUnary<math::CosOp>(table, [](double x) { return std::cos(x); });
  addUnary<math::TanOp>(table, [](double x) { return std::tan(x); });
  addUnary<math::AsinOp>(table, [](double x) { return std::asin(x); });
  addUnary<math::AcosOp>(table, [](double x) { return std::acos(x); });
  addUnary<math::AtanOp>(table, [](double x) { return std::atan(x); });
  addBinary<math::Atan2Op>(table, [](double y, double x) { return std::atan2(y, x); });
  addUnary<math::SinhOp>(table, [](double x) { return std::sinh(x); });
  addUnary<math::CoshOp>(table, [](double x) { return std::cosh(x); });
  addUnary<math::TanhOp>(table, [](double x) { return std::tanh(x); });
}

static void addRootsAndRounding(OpTable &table) {
  addUnary<math::SqrtOp>(table, [](double x) { return std::sqrt(x); });
  addUnary<tile::PreciseSqrtOp>(table, [](double x) { return std::sqrt(x); });
  addUnary<math::RsqrtOp>(table, [](double x) { return 1.0 / std::sqrt(x); });
  addUnary<math::CbrtOp>(table, [](double x) { return std::cbrt(x); });
  addUnary<math::ErfOp>(table, [](double x) { return std::erf(x); });
  addUnary<math::ErfcOp>(table, [](double x) { return std::erfc(x); });
  addUnary<math::FloorOp>(table, [](double x) { return std::floor(x); });
  addUnary<math::CeilOp>(table, [](double x) { return std::ceil(x); });
  addUnary<math::TruncOp>(table, [](double x) { return std::trunc(x); });
  addUnary<math::RoundOp>(table, [](double x) { return std::round(x); });
  addUnary<math::RoundEvenOp>(table, [](double x) { return std::nearbyint(x); });
  addUnary<math::AbsFOp>(table, [](double x) { return std::fabs(x); });
  addBinary<math::CopySignOp>(table, [](double x, double y) { return std::copysign(x, y); });
  table.addResult<math::FmaOp>([](math::FmaOp op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    return map(
        op.getType(), p.tile(op.getA()), p.tile(op.getB()), p.tile(op.getC()),
        [&](uint64_t a, uint64_t b, uint64_t c) { return fusedMultiplyAdd(element, a, b, c); });
  });
  addPredicate<math::IsNaNOp>(table, [](double x) { return std::isnan(x); });
  addPredicate<math::IsInfOp>(table, [](double x) { return std::isinf(x); });
  addPredicate<math::IsFiniteOp>(table, [](double x) { return std::isfinite(x); });
}

static void addIntMaths(OpTable &table) {
  // The smallest integer is its own absolute value.
  addBitCount<math::AbsIOp>(table, [](uint64_t bits, unsigned width) {
    return asSigned(bits, width) < 0 ? truncate(-bits, width) : bits;
  });
  addBitCount<math::CtPopOp>(
      table, [](uint64_t bits, unsigned) -> uint64_t { return llvm::popcount(bits); });
  addBitCount<math::CountLeadingZerosOp>(table, [](uint64_t bits, unsigned width) -> uint64_t {
    return llvm::countl_zero(bits) - (64 - width);
  });
  addBitCount<math::CountTrailingZerosOp>(table, [](uint64_t bits, unsigned width) -> uint64_t {
    return std::min<uint64_t>(llvm::countr_zero(bits), width);
  });
}

/// The region runs on the elements in turn, in row-major order.
static void runMapElementwise(tile::MapElementwiseOp op, Program &p) {
  std::vector<Tile> results;
  for (Type type : op.getResultTypes())
    results.emplace_back(type);
  int64_t count = countElements(op->getResultTypes().empty() ? op.getOperandTypes().front()
                                                             : op.getResultTypes().front());
  for (int64_t i = 0; i < count; ++i) {
    RuntimeValues elements;
    for (Value operand : op.getArgs()) {
      const Tile &tile = p.tile(operand);
      elements.push_back(Tile(tile.element(), tile.bits[i]));
    }
    RuntimeValues mapped = p.run(op.getBody(), std::move(elements));
    for (auto [result, element] : llvm::zip_equal(results, mapped))
      result.bits[i] = std::get<Tile>(element).bits.front();
  }
  p.setAll(op.getResults(), RuntimeValues(results.begin(), results.end()));
}

void interpreter::addMathOps(OpTable &table) {
  addExponentials(table);
  addIntegerPower(table);
  addTrigonometry(table);
  addRootsAndRounding(table);
  addIntMaths(table);
  table.add<tile::MapElementwiseOp>(runMapElementwise);
}
