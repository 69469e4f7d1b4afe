// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unsigned arithmetic of 32 bits on numbers of programs, of which constants are folded at once.
// MLIR's ArithBuilder has no unsigned division and no minima.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_UNSIGNEDBUILDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_UNSIGNEDBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <utility>

namespace tessera::tilegpu {

class UnsignedBuilder {
public:
  UnsignedBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value) const {
    return mlir::arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  }
  mlir::Value add(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::AddIOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::SubIOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::MulIOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::DivUIOp>(a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::MinUIOp>(a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) const { return fold<mlir::arith::MaxUIOp>(a, b); }
  mlir::Value shiftLeft(mlir::Value a, mlir::Value b) const {
    return fold<mlir::arith::ShLIOp>(a, b);
  }
  mlir::Value shiftRight(mlir::Value a, mlir::Value b) const {
    return fold<mlir::arith::ShRUIOp>(a, b);
  }
  mlir::Value select(mlir::Value isFirst, mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<mlir::arith::SelectOp>(loc, isFirst, a, b);
  }
  mlir::Value isLess(mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<mlir::arith::CmpIOp>(loc, mlir::arith::CmpIPredicate::ult, a, b);
  }
  mlir::Value isSame(mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<mlir::arith::CmpIOp>(loc, mlir::arith::CmpIPredicate::eq, a, b);
  }
  /// The quotient and the remainder.
  std::pair<mlir::Value, mlir::Value> divide(mlir::Value a, mlir::Value b) const {
    mlir::Value quotient = div(a, b);
    return {quotient, sub(a, mul(quotient, b))};
  }

private:
  template <typename Op> mlir::Value fold(mlir::Value a, mlir::Value b) const {
    return builder.createOrFold<Op>(loc, a, b);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_UNSIGNEDBUILDER_H
