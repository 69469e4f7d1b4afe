// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, integer and float arithmetic, comparisons and casts: the arith dialect, and the ops of
// the tile dialect that arith leaves undefined somewhere. Cases that arith leaves undefined have
// the meaning of the tile op. So IR in which a guard was folded away runs, too.

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "tessera/Dialect/Tile/IR/FloatRounding.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

//===----------------------------------------------------------------------===//
// Integers of a width
//===----------------------------------------------------------------------===//

static uint64_t signBit(unsigned width) { return uint64_t(1) << (width - 1); }

/// x / 0 is all ones; the smallest integer divided by -1 is itself.
static uint64_t divideSigned(uint64_t a, uint64_t b, unsigned width) {
  if (b == 0)
    return ~uint64_t(0);
  int64_t x = asSigned(a, width), y = asSigned(b, width);
  return y == -1 ? -a : static_cast<uint64_t>(x / y);
}

static uint64_t divideUnsigned(uint64_t a, uint64_t b, unsigned) {
  return b == 0 ? ~uint64_t(0) : a / b;
}

/// x % 0 is x; anything modulo -1 is 0.
static uint64_t remainderSigned(uint64_t a, uint64_t b, unsigned width) {
  if (b == 0)
    return a;
  int64_t x = asSigned(a, width), y = asSigned(b, width);
  return y == -1 ? 0 : static_cast<uint64_t>(x % y);
}

static uint64_t remainderUnsigned(uint64_t a, uint64_t b, unsigned) { return b == 0 ? a : a % b; }

/// A shift by the width or more leaves 0, or the sign.
static uint64_t shiftLeft(uint64_t a, uint64_t n, unsigned width) {
  return n >= width ? 0 : a << n;
}

static uint64_t shiftRightLogical(uint64_t a, uint64_t n, unsigned width) {
  return n >= width ? 0 : a >> n;
}

static uint64_t shiftRightArithmetic(uint64_t a, uint64_t n, unsigned width) {
  return asSigned(a, width) >> std::min<uint64_t>(n, width - 1);
}

/// The upper `width` bits of the product of two numbers of `width` bits.
static uint64_t multiplyHighUnsigned(uint64_t a, uint64_t b, unsigned width) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> width);
}

static uint64_t multiplyHighSigned(uint64_t a, uint64_t b, unsigned width) {
  return static_cast<uint64_t>((static_cast<__int128>(asSigned(a, width)) * asSigned(b, width)) >>
                               width);
}

using IntFunction = uint64_t (*)(uint64_t a, uint64_t b, unsigned width);

static Tile mapInts(Type type, const Tile &a, const Tile &b, IntFunction f) {
  unsigned width = getBitWidth(getElementTypeOrSelf(type));
  return map(type, a, b, [&](uint64_t x, uint64_t y) { return truncate(f(x, y, width), width); });
}

template <typename Op> static void addIntBinary(OpTable &table, IntFunction f) {
  table.addResult<Op>([f](Op op, Program &p) {
    return mapInts(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()), f);
  });
}

/// Ops that give the low and the high half of a product.
template <typename Op> static void addExtendedProduct(OpTable &table, IntFunction high) {
  table.add<Op>([high](Op op, Program &p) {
    const Tile &a = p.tile(op.getLhs()), &b = p.tile(op.getRhs());
    Tile low = mapInts(a.type, a, b, [](uint64_t x, uint64_t y, unsigned) { return x * y; });
    Tile upper = mapInts(a.type, a, b, high);
    p.set(op.getLow(), std::move(low));
    p.set(op.getHigh(), std::move(upper));
  });
}

static void runAddExtended(arith::AddUIExtendedOp op, Program &p) {
  const Tile &a = p.tile(op.getLhs()), &b = p.tile(op.getRhs());
  Tile sum = mapInts(a.type, a, b, [](uint64_t x, uint64_t y, unsigned) { return x + y; });
  Tile overflow = map(op.getOverflow().getType(), sum, a,
                      [](uint64_t total, uint64_t x) -> uint64_t { return total < x; });
  p.set(op.getSum(), std::move(sum));
  p.set(op.getOverflow(), std::move(overflow));
}

static bool compareInts(arith::CmpIPredicate predicate, uint64_t a, uint64_t b, unsigned width) {
  int64_t x = asSigned(a, width), y = asSigned(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::ugt:
    return a > b;
  case arith::CmpIPredicate::uge:
    return a >= b;
  }
  llvm_unreachable("covered switch");
}

static void addIntOps(OpTable &table) {
  addIntBinary<arith::AddIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a + b; });
  addIntBinary<arith::SubIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a - b; });
  addIntBinary<arith::MulIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a * b; });
  addIntBinary<arith::AndIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a & b; });
  addIntBinary<arith::OrIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a | b; });
  addIntBinary<arith::XOrIOp>(table, [](uint64_t a, uint64_t b, unsigned) { return a ^ b; });
  addIntBinary<arith::MaxUIOp>(table,
                               [](uint64_t a, uint64_t b, unsigned) { return std::max(a, b); });
  addIntBinary<arith::MinUIOp>(table,
                               [](uint64_t a, uint64_t b, unsigned) { return std::min(a, b); });
  addIntBinary<arith::MaxSIOp>(table, [](uint64_t a, uint64_t b, unsigned width) {
    return asSigned(a, width) < asSigned(b, width) ? b : a;
  });
  addIntBinary<arith::MinSIOp>(table, [](uint64_t a, uint64_t b, unsigned width) {
    return asSigned(b, width) < asSigned(a, width) ? b : a;
  });

  addIntBinary<arith::DivSIOp>(table, divideSigned);
  addIntBinary<arith::DivUIOp>(table, divideUnsigned);
  addIntBinary<arith::RemSIOp>(table, remainderSigned);
  addIntBinary<arith::RemUIOp>(table, remainderUnsigned);
  addIntBinary<arith::ShLIOp>(table, shiftLeft);
  addIntBinary<arith::ShRUIOp>(table, shiftRightLogical);
  addIntBinary<arith::ShRSIOp>(table, shiftRightArithmetic);
  addExtendedProduct<arith::MulUIExtendedOp>(table, multiplyHighUnsigned);
  addExtendedProduct<arith::MulSIExtendedOp>(table, multiplyHighSigned);
  table.add<arith::AddUIExtendedOp>(runAddExtended);

  table.addResult<tile::DivIntOp>([](tile::DivIntOp op, Program &p) {
    bool isSigned = op.getSignedness() == tile::Signedness::Signed;
    return mapInts(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()),
                   isSigned ? divideSigned : divideUnsigned);
  });
  table.addResult<tile::RemIntOp>([](tile::RemIntOp op, Program &p) {
    bool isSigned = op.getSignedness() == tile::Signedness::Signed;
    return mapInts(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()),
                   isSigned ? remainderSigned : remainderUnsigned);
  });
  table.addResult<tile::ShiftOp>([](tile::ShiftOp op, Program &p) {
    IntFunction f = op.getKind() == tile::ShiftKind::Left           ? shiftLeft
                    : op.getKind() == tile::ShiftKind::RightLogical ? shiftRightLogical
                                                                    : shiftRightArithmetic;
    return mapInts(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()), f);
  });
  addIntBinary<tile::MulHiOp>(table, multiplyHighUnsigned);

  table.addResult<arith::CmpIOp>([](arith::CmpIOp op, Program &p) {
    unsigned width = getBitWidth(getElementTypeOrSelf(op.getLhs().getType()));
    return map(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()),
               [&](uint64_t a, uint64_t b) -> uint64_t {
                 return compareInts(op.getPredicate(), a, b, width);
               });
  });
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

using FloatFunction = double (*)(double a, double b);

template <typename Op> static void addFloatBinary(OpTable &table, FloatFunction f) {
  table.addResult<Op>([f](Op op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()), [&](uint64_t a, uint64_t b) {
      return encodeFloat(element, f(decodeFloat(element, a), decodeFloat(element, b)));
    });
  });
}

/// -0 counts as less than +0.
static bool isLess(double a, double b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  return isLess(a, b) ? b : a;
}
static double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  return isLess(b, a) ? b : a;
}
/// The number, where the other one is NaN.
static double maximumNumber(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : maximum(a, b);
}
static double minimumNumber(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : minimum(a, b);
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  }
  llvm_unreachable("covered switch");
}

static Tile runClamp(tile::ClampOp op, Program &p) {
  Type element = getElementTypeOrSelf(op.getType());
  bool propagate = op.getPropagateNan();
  return map(op.getType(), p.tile(op.getX()), p.tile(op.getLow()), p.tile(op.getHigh()),
             [&](uint64_t xBits, uint64_t lowBits, uint64_t highBits) {
               double x = decodeFloat(element, xBits), low = decodeFloat(element, lowBits),
                      high = decodeFloat(element, highBits);
               if (propagate && std::isnan(x))
                 return xBits;
               return encodeFloat(element, minimumNumber(maximumNumber(x, low), high));
             });
}

static void addFloatOps(OpTable &table) {
  addFloatBinary<arith::AddFOp>(table, [](double a, double b) { return a + b; });
  addFloatBinary<arith::SubFOp>(table, [](double a, double b) { return a - b; });
  addFloatBinary<arith::MulFOp>(table, [](double a, double b) { return a * b; });
  addFloatBinary<arith::DivFOp>(table, [](double a, double b) { return a / b; });
  addFloatBinary<tile::PreciseDivOp>(table, [](double a, double b) { return a / b; });
  addFloatBinary<arith::RemFOp>(table, [](double a, double b) { return std::fmod(a, b); });
  addFloatBinary<arith::MaximumFOp>(table, maximum);
  addFloatBinary<arith::MinimumFOp>(table, minimum);
  addFloatBinary<arith::MaxNumFOp>(table, maximumNumber);
  addFloatBinary<arith::MinNumFOp>(table, minimumNumber);
  table.addResult<tile::ClampOp>(runClamp);
  table.addResult<arith::NegFOp>([](arith::NegFOp op, Program &p) {
    Type element = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(op.getOperand()),
               [&](uint64_t bits) { return encodeFloat(element, -decodeFloat(element, bits)); });
  });
  table.addResult<arith::CmpFOp>([](arith::CmpFOp op, Program &p) {
    Type element = getElementTypeOrSelf(op.getLhs().getType());
    return map(op.getType(), p.tile(op.getLhs()), p.tile(op.getRhs()),
               [&](uint64_t a, uint64_t b) -> uint64_t {
                 return compareFloats(op.getPredicate(), decodeFloat(element, a),
                                      decodeFloat(element, b));
               });
  });
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Enters a cast as a function of (bits, type of the element, type wanted).
using CastFunction = uint64_t (*)(uint64_t bits, Type from, Type to);
template <typename Op> static void addCast(OpTable &table, CastFunction cast) {
  table.addResult<Op>([cast](Op op, Program &p) {
    Value source = op->getOperand(0);
    Type from = getElementTypeOrSelf(source.getType()), to = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(source), [&](uint64_t bits) { return cast(bits, from, to); });
  });
}

static uint64_t resizeSigned(uint64_t bits, Type from, Type to) {
  return truncate(asSigned(bits, getBitWidth(from)), getBitWidth(to));
}
static uint64_t resizeUnsigned(uint64_t bits, Type, Type to) {
  return truncate(bits, getBitWidth(to));
}

/// The nearest float of the format, with one rounding. A conversion through double would round
/// integers of 64 bits twice.
static uint64_t intToFloat(uint64_t bits, unsigned width, Type to, bool isSigned) {
  llvm::APFloat converted(cast<FloatType>(to).getFloatSemantics());
  converted.convertFromAPInt(llvm::APInt(width, bits), isSigned,
                             llvm::APFloat::rmNearestTiesToEven);
  return converted.bitcastToAPInt().getZExtValue();
}

static uint64_t floatToInt(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  double lowest = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double tooLarge = std::ldexp(1.0, isSigned ? width - 1 : width);
  if (value < lowest)
    return isSigned ? signBit(width) : 0;
  if (value >= tooLarge)
    return truncate(isSigned ? signBit(width) - 1 : ~uint64_t(0), width);
  return isSigned ? truncate(static_cast<uint64_t>(static_cast<int64_t>(value)), width)
                  : static_cast<uint64_t>(value);
}
static uint64_t floatToSigned(uint64_t bits, Type from, Type to) {
  return floatToInt(decodeFloat(from, bits), getBitWidth(to), /*isSigned=*/true);
}
static uint64_t floatToUnsigned(uint64_t bits, Type from, Type to) {
  return floatToInt(decodeFloat(from, bits), getBitWidth(to), /*isSigned=*/false);
}

static uint64_t floatToFloat(uint64_t bits, Type from, Type to) {
  return encodeFloat(to, decodeFloat(from, bits));
}

static Tile runFpToFp(tile::FpToFpOp op, Program &p) {
  Type from = getElementTypeOrSelf(op.getSource().getType());
  Type to = getElementTypeOrSelf(op.getType());
  if (getBitWidth(to) != 8)
    return map(op.getType(), p.tile(op.getSource()), [&](uint64_t bits) {
      return encodeFloat(to, decodeFloat(from, bits), op.getRounding());
    });
  const llvm::fltSemantics &semantics = cast<FloatType>(to).getFloatSemantics();
  auto mode = op.getRounding() == tile::RoundingMode::NearestEven ? APFloat::rmNearestTiesToEven
                                                                  : APFloat::rmTowardZero;
  return map(op.getType(), p.tile(op.getSource()), [&](uint64_t bits) {
    APFloat rounded = tile::roundTo(semantics, APFloat(decodeFloat(from, bits)), mode);
    return rounded.bitcastToAPInt().getZExtValue();
  });
}

static void addCasts(OpTable &table) {
  addCast<arith::ExtSIOp>(table, resizeSigned);
  addCast<arith::ExtUIOp>(table, resizeUnsigned);
  addCast<arith::TruncIOp>(table, resizeUnsigned);
  addCast<arith::IndexCastOp>(table, resizeSigned);
  addCast<arith::IndexCastUIOp>(table, resizeUnsigned);
  addCast<arith::SIToFPOp>(table, [](uint64_t bits, Type from, Type to) {
    return intToFloat(bits, getBitWidth(from), to, /*isSigned=*/true);
  });
  addCast<arith::UIToFPOp>(table, [](uint64_t bits, Type from, Type to) {
    return intToFloat(bits, getBitWidth(from), to, /*isSigned=*/false);
  });
  addCast<arith::FPToSIOp>(table, floatToSigned);
  addCast<arith::FPToUIOp>(table, floatToUnsigned);
  table.addResult<tile::FpToIntOp>([](tile::FpToIntOp op, Program &p) {
    bool isSigned = op.getSignedness() == tile::Signedness::Signed;
    Type from = getElementTypeOrSelf(op.getSource().getType());
    Type to = getElementTypeOrSelf(op.getType());
    return map(op.getType(), p.tile(op.getSource()), [&](uint64_t bits) {
      return isSigned ? floatToSigned(bits, from, to) : floatToUnsigned(bits, from, to);
    });
  });
  addCast<arith::ExtFOp>(table, floatToFloat);
  addCast<arith::TruncFOp>(table, floatToFloat);
  table.addResult<tile::FpToFpOp>(runFpToFp);
  addCast<arith::BitcastOp>(table, [](uint64_t bits, Type, Type) { return bits; });
}

//===----------------------------------------------------------------------===//
// Constants and choice
//===----------------------------------------------------------------------===//

static uint64_t getAttributeBits(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getValue().getZExtValue();
  return cast<FloatAttr>(value).getValue().bitcastToAPInt().getZExtValue();
}

static Tile makeConstant(arith::ConstantOp op, Program &) {
  Tile result(op.getType());
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements) {
    result.bits.front() = getAttributeBits(op.getValue());
    return result;
  }
  if (elements.isSplat()) {
    result.bits.assign(result.size(), getAttributeBits(elements.getSplatValue<Attribute>()));
    return result;
  }
  for (auto [bits, value] : llvm::zip_equal(result.bits, elements.getValues<Attribute>()))
    bits = getAttributeBits(value);
  return result;
}

/// One condition for the whole tile, or one an element.
static void runSelect(arith::SelectOp op, Program &p) {
  const Tile &condition = p.tile(op.getCondition());
  if (condition.size() == 1) {
    RuntimeValue chosen = p.get(condition.bits.front() ? op.getTrueValue() : op.getFalseValue());
    return p.set(op.getResult(), std::move(chosen));
  }
  p.set(op.getResult(),
        map(op.getType(), condition, p.tile(op.getTrueValue()), p.tile(op.getFalseValue()),
            [](uint64_t c, uint64_t a, uint64_t b) { return c ? a : b; }));
}

void interpreter::addArithOps(OpTable &table) {
  addIntOps(table);
  addFloatOps(table);
  addCasts(table);
  table.addResult<arith::ConstantOp>(makeConstant);
  table.add<arith::SelectOp>(runSelect);
  // A value that a canonicalisation found to be unused.
  table.addResult<ub::PoisonOp>([](ub::PoisonOp op, Program &) { return Tile(op.getType()); });
}
