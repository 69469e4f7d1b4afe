// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions of f32 or f64 lanes as code without calls or branches (but
// see sin, cos and tan). `x` has the shape that the LaneBuilder was made for.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHFUNCTIONS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHFUNCTIONS_H

#include "tessera/Conversion/TileArith/LaneBuilder.h"

namespace tessera {

/// True if a function is a long chain of operations, each of which waits for the one before. A CPU
/// holds too few waiting operations to reach the chain of the next strip, so chains take turns. On
/// a Zen 4, gelu by erf takes 0.84 to 0.89 of the time then; exp, tanh, log and sin gain nothing.
inline bool hasLongChain(mlir::Operation *op) { return mlir::isa<mlir::math::ErfOp>(op); }

/// LaneBuilder for one float type, with what the functions share.
class MathBuilder : public LaneBuilder {
public:
  MathBuilder(mlir::OpBuilder &builder, mlir::Location loc, Type type)
      : LaneBuilder(builder, loc, type), element(mlir::getElementTypeOrSelf(type)) {}

  /// The same for lanes of f64, as many.
  MathBuilder toDouble() {
    MathBuilder wide = *this;
    wide.element = getBuilder().getF64Type();
    wide.setLanes(typed(wide.element));
    return wide;
  }

  bool isSingle() const { return element.isF32(); }
  Type getElement() const { return element; }
  unsigned bits() const { return element.getIntOrFloatBitWidth(); }
  unsigned mantissaBits() const { return isSingle() ? 23 : 52; }
  unsigned bias() const { return isSingle() ? 127 : 1023; }
  /// The argument for f32 or that for f64.
  double pick(double single, double wide) const { return isSingle() ? single : wide; }

  Value number(double value) { return floatConstant(element, value); }
  Value integer(uint64_t value) { return intConstant(bits(), value); }
  Value infinity() {
    return floatConstant(
        element, llvm::APFloat::getInf(mlir::cast<mlir::FloatType>(element).getFloatSemantics()));
  }
  Value notANumber() {
    return floatConstant(
        element, llvm::APFloat::getQNaN(mlir::cast<mlir::FloatType>(element).getFloatSemantics()));
  }
  Value toBits(Value value) { return bitcast(getBuilder().getIntegerType(bits()), value); }
  Value fromBits(Value value) { return bitcast(element, value); }

  /// Horner's rule; the constant term comes first.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);

  /// x held between the bounds; a NaN stays.
  Value clamp(Value x, double low, double high);

  /// An integer as a float and as an integer of the same width.
  struct Rounded {
    Value number, integer;
  };
  /// x * factor rounded to the nearest integer, for results far below 2^22 (2^51).
  Rounded roundProduct(Value x, double factor);

  /// 2^n for n in the range of normal numbers.
  Value powerOfTwo(Value n);
  /// x * 2^n, rounded once, for n down to where everything vanishes.
  Value scale(Value x, Rounded n);
  /// The machine has an instruction for that (AVX-512).
  void scaleByInstruction() { hasScale = true; }

  /// Numbers of a table of 32, by the lowest five bits of integers of 32 bits. Wherever a lane
  /// stands, it gets the same.
  Value lookUp(llvm::ArrayRef<float> table, Value index);
  /// The machine has an instruction for that (AVX-512).
  void lookUpByInstruction() { hasTables = true; }
  bool looksUp() const { return hasTables; }

  /// A number as the sum of two that do not overlap.
  struct Pair {
    Value high, low;
  };
  /// a + b without error, where |a| >= |b| or a is 0.
  Pair exactSum(Value a, Value b);
  /// a * b without error. The same in every bit with and without a fused multiply-add.
  Pair exactProduct(Value a, Value b);
  /// The machine has an instruction for a fused multiply-add.
  void multiplyAddByInstruction() { hasFMA = true; }

private:
  Type element;
  bool hasScale = false;
  bool hasTables = false;
  bool hasFMA = false;
};

mlir::Value expandExp(MathBuilder &b, mlir::Value x);
mlir::Value expandExp2(MathBuilder &b, mlir::Value x);
mlir::Value expandExpm1(MathBuilder &b, mlir::Value x);
mlir::Value expandTanh(MathBuilder &b, mlir::Value x);
mlir::Value expandErf(MathBuilder &b, mlir::Value x);
mlir::Value expandRsqrt(MathBuilder &b, mlir::Value x);

/// A number as 2^exponent (1 + f), 1 + f between sqrt(1/2) and sqrt(2), where log has no
/// cancellation; the exponent as a float.
struct Decomposed {
  mlir::Value exponent, f;
};
/// For a positive normal number; for denormal ones, too.
Decomposed decompose(MathBuilder &b, mlir::Value x);
Decomposed decomposeAny(MathBuilder &b, mlir::Value x);

mlir::Value expandLog(MathBuilder &b, mlir::Value x);
mlir::Value expandLog2(MathBuilder &b, mlir::Value x);
mlir::Value expandLog1p(MathBuilder &b, mlir::Value x);

/// x^y; y is of x's type, or an integer of 32 bits.
mlir::Value expandPow(MathBuilder &b, mlir::Value x, mlir::Value y);

/// The value of a function, and for which lanes it holds: the others are too large
/// for the argument reduction, or not finite.
struct PartialResult {
  mlir::Value value, isValid;
};
PartialResult expandSin(MathBuilder &b, mlir::Value x);
PartialResult expandCos(MathBuilder &b, mlir::Value x);
PartialResult expandTan(MathBuilder &b, mlir::Value x);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHFUNCTIONS_H
