// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-legalize-floats: arithmetic on floats of 16 and 8 bits is done in f32, and conversions
// that the machine lacks become integer code. The significand of f32 has more than twice the bits
// of any narrower format. So a sum, product, quotient or root that is rounded to f32 and then again
// equals one that is rounded once. Where that does not suffice (sums of three, integers), the first
// rounding is to odd.
//
// A bf16 that is only copied becomes an integer here (FloatBits.h).
//
// LLVM would emit a call of __truncsfbf2 or the like for each lane.

#include "FloatBits.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Conversion/TileArith/FloatFormats.h"
#include "tessera/Conversion/TileArith/LaneBuilder.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSLEGALIZEFLOATS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

/// Rewrites one op, whose lanes have the shape of `like`.
class FloatLegalizer {
public:
  FloatLegalizer(OpBuilder &builder, Operation *op, Type like, bool hasF16C, bool hasBF16)
      : lanes(builder, op->getLoc(), like), op(op), hasF16C(hasF16C), hasBF16(hasBF16),
        f32(builder.getF32Type()), f64(builder.getF64Type()) {}

  /// The replacement of the op's only result, or null to keep the op.
  Value legalize() {
    Type result = op->getResult(0).getType();
    // With one NaN, in the place of a negative zero, a sign is no bit of its own.
    if (isa<arith::NegFOp, math::AbsFOp, math::CopySignOp>(op) &&
        isa<Float8E4M3FNUZType, Float8E5M2FNUZType, Float8E4M3B11FNUZType>(elementOf(result)))
      return computeInF32(result);
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](arith::ExtFOp ext) { return widenTo(ext.getIn(), elementOf(result)); })
        .Case([&](arith::TruncFOp trunc) { return narrow(trunc.getIn(), elementOf(result)); })
        .Case([&](arith::SIToFPOp convert) {
          return fromInteger(convert.getIn(), /*isSigned=*/true, elementOf(result));
        })
        .Case([&](arith::UIToFPOp convert) {
          return fromInteger(convert.getIn(), /*isSigned=*/false, elementOf(result));
        })
        .Case([&](arith::NegFOp neg) { return flipSign(neg.getOperand()); })
        .Case([&](math::AbsFOp abs) { return clearSign(abs.getOperand()); })
        .Case([&](math::CopySignOp copy) { return copySign(copy.getLhs(), copy.getRhs()); })
        .Case<math::FmaOp, vector::FMAOp>([&](Operation *fma) {
          return multiplyAdd(fma->getOperand(0), fma->getOperand(1), fma->getOperand(2));
        })
        .Case([&](arith::ConstantOp constant) { return encode(constant); })
        .Case<arith::BitcastOp, arith::SelectOp>([](Operation *) { return Value(); })
        .Default([&](Operation *) { return computeInF32(result); });
  }

private:
  static Type elementOf(Type type) { return getElementTypeOrSelf(type); }

  /// The type of `type`'s shape with elements of f32 (a reduction's operand and
  /// result differ in shape).
  Type inF32(Type type) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(f32);
    return f32;
  }

  /// `value` as f32; the LaneBuilder takes the value's shape.
  Value widen(Value value) {
    Type from = elementOf(value.getType());
    LaneBuilder own(lanes.getBuilder(), lanes.getLoc(), value.getType());
    if (from.isF16() && hasF16C)
      return own.create<arith::ExtFOp>(own.typed(f32), value);
    return widenToF32(own, value);
  }

  /// Null if the machine has an instruction for it.
  Value widenTo(Value value, Type target) {
    Type from = elementOf(value.getType());
    if (target == f32 && from.isF16() && hasF16C)
      return Value();
    Value wide = widen(value);
    return target == f32 ? wide : lanes.create<arith::ExtFOp>(lanes.typed(target), wide);
  }

  /// By the instruction for it, which takes f32 below the normal range for zeros: a
  /// vector that has one of them is rounded as on other machines. Null without it.
  Value narrowByInstruction(LaneBuilder &own, Value value, Type target) {
    auto vector = dyn_cast<VectorType>(value.getType());
    unsigned width = vector ? vector.getNumElements() * 32 : 0;
    if (!target.isBF16() || !hasBF16 || !vector || vector.getRank() != 1 ||
        (width != 256 && width != 512))
      return Value();
    OpBuilder &b = own.getBuilder();
    Location loc = own.getLoc();
    Value kind = arith::ConstantIntOp::create(b, loc, 0x20, 32); // denormal
    Type mask = vector.clone(b.getI1Type());
    std::string bits = std::to_string(width);
    Value isTiny = LLVM::CallIntrinsicOp::create(
                       b, loc, mask, b.getStringAttr("llvm.x86.avx512.fpclass.ps." + bits),
                       ValueRange{value, kind})
                       .getResult(0);
    Value someTiny = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, isTiny);
    auto byRounding = [&](OpBuilder &inner, Location) {
      LaneBuilder lanes(inner, loc, value.getType());
      scf::YieldOp::create(inner, loc,
                           narrowFromF32(lanes, value, target, tile::RoundingMode::NearestEven));
    };
    auto byInstruction = [&](OpBuilder &inner, Location) {
      Value narrow =
          LLVM::CallIntrinsicOp::create(
              inner, loc, vector.clone(target),
              inner.getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16." + bits), ValueRange{value})
              .getResult(0);
      scf::YieldOp::create(inner, loc, narrow);
    };
    return scf::IfOp::create(b, loc, someTiny, byRounding, byInstruction).getResult(0);
  }

  Value narrowSingle(Value value, Type target) {
    LaneBuilder own(lanes.getBuilder(), lanes.getLoc(), value.getType());
    if (target.isF16() && hasF16C)
      return own.create<arith::TruncFOp>(own.typed(target), value);
    if (Value narrow = narrowByInstruction(own, value, target))
      return narrow;
    return narrowFromF32(own, value, target, tile::RoundingMode::NearestEven);
  }

  Value narrow(Value value, Type target) {
    Type from = elementOf(value.getType());
    if (from == f32)
      return target.isF16() && hasF16C ? Value() : narrowSingle(value, target);
    if (from == f64)
      return narrowSingle(narrowToF32Odd(lanes, value), target);
    return narrowSingle(widen(value), target);
  }

  Value fromInteger(Value value, bool isSigned, Type target) {
    unsigned width = LaneBuilder::widthOf(value);
    Type through = width <= 32 ? f32 : f64;
    unsigned precision = width <= 32 ? 24 : 53;
    if (width > precision) {
      // Bits below the precision of `through` are gathered in its last place, which
      // rounds to odd. Two's complement makes that right for both signs.
      unsigned spare = width - precision;
      Value below = lanes.intConstant(width, (uint64_t(1) << spare) - 1);
      Value place = lanes.intConstant(width, uint64_t(1) << spare);
      Value sticky = lanes.andi(lanes.addi(lanes.andi(value, below), below), place);
      Value high =
          lanes.andi(value, lanes.xori(below, lanes.intConstant(APInt::getAllOnes(width))));
      Value limit = lanes.intConstant(width, uint64_t(1) << precision);
      Value isExact = isSigned ? lanes.compare(arith::CmpIPredicate::ult, lanes.addi(value, limit),
                                               lanes.addi(limit, limit))
                               : lanes.compare(arith::CmpIPredicate::ult, value, limit);
      value = lanes.select(isExact, value, lanes.ori(high, sticky));
    }
    Value converted = isSigned ? lanes.create<arith::SIToFPOp>(lanes.typed(through), value)
                               : lanes.create<arith::UIToFPOp>(lanes.typed(through), value);
    return through == f32 ? narrowSingle(converted, target)
                          : narrowSingle(narrowToF32Odd(lanes, converted), target);
  }

  //===-- Signs -----------------------------------------------------------===//

  Value bitsOf(Value value) {
    return lanes.bitcast(lanes.getBuilder().getIntegerType(LaneBuilder::widthOf(value)), value);
  }
  Value signMask(Value value) {
    return lanes.intConstant(APInt::getSignMask(LaneBuilder::widthOf(value)));
  }
  Value magnitudeMask(Value value) {
    return lanes.intConstant(APInt::getSignedMaxValue(LaneBuilder::widthOf(value)));
  }
  Value flipSign(Value value) {
    return lanes.bitcast(elementOf(value.getType()), lanes.xori(bitsOf(value), signMask(value)));
  }
  Value clearSign(Value value) {
    return lanes.bitcast(elementOf(value.getType()),
                         lanes.andi(bitsOf(value), magnitudeMask(value)));
  }
  Value copySign(Value magnitude, Value sign) {
    Value bits = lanes.ori(lanes.andi(bitsOf(magnitude), magnitudeMask(magnitude)),
                           lanes.andi(bitsOf(sign), signMask(sign)));
    return lanes.bitcast(elementOf(magnitude.getType()), bits);
  }

  //===-- Arithmetic ------------------------------------------------------===//

  /// The product is exact in f32, so only the sum is rounded: to odd, then to the
  /// narrow type. (A bf16 product below 2^-126 may lose bits first.)
  Value multiplyAdd(Value a, Value b, Value c) {
    Type target = elementOf(a.getType());
    Value product = lanes.mulf(widen(a), widen(b)), addend = widen(c);
    Value sum = lanes.addf(product, addend);
    Value virtualAddend = lanes.subf(sum, product);
    Value error = lanes.addf(lanes.subf(product, lanes.subf(sum, virtualAddend)),
                             lanes.subf(addend, virtualAddend));
    return narrowSingle(roundSumToOdd(lanes, sum, error), target);
  }

  /// The 8-bit floats have no constants in LLVM.
  Value encode(arith::ConstantOp constant) {
    Type type = constant.getType(), element = elementOf(type);
    if (!isFloat8(element))
      return Value();
    Type i8 = lanes.getBuilder().getI8Type();
    TypedAttr bits;
    if (auto scalar = dyn_cast<FloatAttr>(constant.getValue()))
      bits = IntegerAttr::get(i8, scalar.getValue().bitcastToAPInt());
    else if (auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue()))
      bits = cast<TypedAttr>(
          elements.mapValues(i8, [](const APFloat &value) { return value.bitcastToAPInt(); }));
    else
      return Value();
    return lanes.bitcast(element, lanes.create<arith::ConstantOp>(bits));
  }

  /// The same op on f32 operands, its result rounded.
  Value computeInF32(Type result) {
    OpBuilder &builder = lanes.getBuilder();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isNarrow(operand.getType()) ? widen(operand) : operand);
    Type type = isNarrow(result) ? inF32(result) : result;
    OperationState state(op->getLoc(), op->getName(), operands, type);
    state.attributes = op->getDiscardableAttrDictionary().getValue();
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Value wide = builder.create(state)->getResult(0);
    return isNarrow(result) ? narrowSingle(wide, elementOf(result)) : wide;
  }

  LaneBuilder lanes;
  Operation *op;
  bool hasF16C, hasBF16;
  Type f32, f64;
};

/// True if `op` computes with floats, rather than moving them about.
bool computes(Operation *op) {
  if (op->getNumResults() != 1 || isa<TensorType>(op->getResult(0).getType()))
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<vector::FMAOp, vector::ReductionOp>(op);
}

struct StripsLegalizeFloats : impl::StripsLegalizeFloatsBase<StripsLegalizeFloats> {
  using StripsLegalizeFloatsBase::StripsLegalizeFloatsBase;

  void runOnOperation() override {
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](Operation *op) {
      if (computes(op) && (llvm::any_of(op->getOperandTypes(), isNarrow) ||
                           llvm::any_of(op->getResultTypes(), isNarrow)))
        worklist.push_back(op);
    });
    for (Operation *op : worklist) {
      OpBuilder builder(op);
      Type like =
          op->getNumOperands() != 0 ? op->getOperand(0).getType() : op->getResult(0).getType();
      if (Value value = FloatLegalizer(builder, op, like, hasF16C, hasBF16).legalize()) {
        op->replaceAllUsesWith(ValueRange(value));
        op->erase();
      }
    }
    carryAsBits(getOperation());
  }
};

} // namespace
} // namespace tessera
