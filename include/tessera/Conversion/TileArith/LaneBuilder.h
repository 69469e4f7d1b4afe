// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thin layer over OpBuilder for code that is the same for scalars and vectors:
// constants take the shape of another value, and types are named by element.

#ifndef TESSERA_CONVERSION_TILEARITH_LANEBUILDER_H
#define TESSERA_CONVERSION_TILEARITH_LANEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace tessera {

/// Builds lane-wise code; every value has the shape of `like` (or is a scalar
/// where `like` is one).
class LaneBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using IntPredicate = mlir::arith::CmpIPredicate;
  using FloatPredicate = mlir::arith::CmpFPredicate;

  LaneBuilder(mlir::OpBuilder &builder, mlir::Location loc, Type like)
      : builder(builder), loc(loc), like(like) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  bool isVector() const { return mlir::isa<mlir::VectorType>(like); }

  /// The lanes' type with elements of type `element`.
  Type typed(Type element) const {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(like))
      return vector.cloneWith(std::nullopt, element);
    return element;
  }
  Type intType(unsigned width) const { return typed(builder.getIntegerType(width)); }

  /// A constant of integer bits, given modulo 2^width.
  Value intConstant(unsigned width, uint64_t bits) {
    return constant(intType(width), builder.getIntegerAttr(builder.getIntegerType(width),
                                                           llvm::APInt(width, bits, false, true)));
  }
  Value intConstant(const llvm::APInt &bits) {
    Type element = builder.getIntegerType(bits.getBitWidth());
    return constant(typed(element), builder.getIntegerAttr(element, bits));
  }
  Value floatConstant(Type element, double value) {
    return constant(typed(element), builder.getFloatAttr(element, value));
  }
  Value floatConstant(Type element, const llvm::APFloat &value) {
    return constant(typed(element), builder.getFloatAttr(element, value));
  }

  template <typename Op, typename... Args> Value create(Args &&...args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  Value select(Value condition, Value yes, Value no) {
    return create<mlir::arith::SelectOp>(condition, yes, no);
  }
  Value compare(IntPredicate predicate, Value lhs, Value rhs) {
    return create<mlir::arith::CmpIOp>(predicate, lhs, rhs);
  }
  Value compare(FloatPredicate predicate, Value lhs, Value rhs) {
    return create<mlir::arith::CmpFOp>(predicate, lhs, rhs);
  }
  Value bitcast(Type element, Value value) {
    return create<mlir::arith::BitcastOp>(typed(element), value);
  }

  Value addi(Value a, Value b) { return create<mlir::arith::AddIOp>(a, b); }
  Value subi(Value a, Value b) { return create<mlir::arith::SubIOp>(a, b); }
  Value muli(Value a, Value b) { return create<mlir::arith::MulIOp>(a, b); }
  Value andi(Value a, Value b) { return create<mlir::arith::AndIOp>(a, b); }
  Value ori(Value a, Value b) { return create<mlir::arith::OrIOp>(a, b); }
  Value xori(Value a, Value b) { return create<mlir::arith::XOrIOp>(a, b); }
  Value shli(Value a, Value b) { return create<mlir::arith::ShLIOp>(a, b); }
  Value shrui(Value a, Value b) { return create<mlir::arith::ShRUIOp>(a, b); }
  Value shrsi(Value a, Value b) { return create<mlir::arith::ShRSIOp>(a, b); }
  Value addf(Value a, Value b) { return create<mlir::arith::AddFOp>(a, b); }
  Value subf(Value a, Value b) { return create<mlir::arith::SubFOp>(a, b); }
  Value mulf(Value a, Value b) { return create<mlir::arith::MulFOp>(a, b); }
  Value divf(Value a, Value b) { return create<mlir::arith::DivFOp>(a, b); }
  Value negf(Value a) { return create<mlir::arith::NegFOp>(a); }
  Value absf(Value a) { return create<mlir::math::AbsFOp>(a); }
  /// a * b + c, with one rounding where the machine has an instruction for it and
  /// two where not: only for code that is right with both. Two everywhere after
  /// roundApart.
  Value mulAdd(Value a, Value b, Value c) {
    if (fuses)
      return create<mlir::LLVM::FMulAddOp>(a.getType(), a, b, c);
    return addf(mulf(a, b), c);
  }
  void roundApart() { fuses = false; }
  Value copySign(Value magnitude, Value sign) {
    return create<mlir::math::CopySignOp>(magnitude, sign);
  }

  /// Widens or narrows integers; equal widths are passed on.
  Value extui(unsigned width, Value value) {
    return widthOf(value) == width ? value : create<mlir::arith::ExtUIOp>(intType(width), value);
  }
  Value extsi(unsigned width, Value value) {
    return widthOf(value) == width ? value : create<mlir::arith::ExtSIOp>(intType(width), value);
  }
  Value trunci(unsigned width, Value value) {
    return widthOf(value) == width ? value : create<mlir::arith::TruncIOp>(intType(width), value);
  }

  static unsigned widthOf(Value value) {
    return mlir::getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  }

protected:
  void setLanes(Type type) { like = type; }

private:
  Value constant(Type type, mlir::TypedAttr element) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      return create<mlir::arith::ConstantOp>(
          mlir::DenseElementsAttr::get(vector, mlir::Attribute(element)));
    return create<mlir::arith::ConstantOp>(element);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  Type like;
  bool fuses = true;
};

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEARITH_LANEBUILDER_H
