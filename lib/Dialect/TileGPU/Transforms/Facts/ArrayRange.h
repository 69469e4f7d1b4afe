// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Address ranges of arrays, as numbers of 64 bits that a kernel computes to compare them. A range
// goes from the first byte of an array to the one behind the last that its accesses may reach.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_ARRAYRANGE_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_ARRAYRANGE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"

namespace tessera::tilegpu {

struct ArrayRange {
  mlir::Value first, end;
  mlir::Value isKnown; ///< i1: nothing left 64 bits, and no index is below 0
};

class ArrayRangeBuilder {
public:
  ArrayRangeBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// The range of a box, with the last index along each dimension and the values of its strides'
  /// symbols.
  ArrayRange emit(const BoxAccess &box,
                  llvm::function_ref<mlir::Value(const BoxDim &)> getLastIndex,
                  llvm::function_ref<mlir::Value(unsigned)> getSymbol) const;
  /// True if two are known, and have no byte in common: an i1.
  mlir::Value areApart(const ArrayRange &a, const ArrayRange &b) const;

  mlir::Value evaluate(LaunchExpr expr, llvm::function_ref<mlir::Value(unsigned)> getSymbol) const;
  mlir::Value number(int64_t value) const;
  mlir::Value widen(mlir::Value value) const;
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b) const;
  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value sub(mlir::Value a, mlir::Value b) const;
  mlir::Value mul(mlir::Value a, mlir::Value b) const;
  mlir::Value both(mlir::Value a, mlir::Value b) const;

private:
  mlir::Value isWithin(mlir::Value value, int64_t least, int64_t most) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_ARRAYRANGE_H
