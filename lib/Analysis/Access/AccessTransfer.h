// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of the access analysis, one for each kind of op. AccessArithmetic.cpp has those of
// arithmetic, AccessShapes.cpp those of ops that move elements. AccessRules.cpp has the others, and
// the dispatch by op.
//
// Two descriptions complement each other. Strides are exact along a dimension, or unknown. Runs are
// contiguity, constancy and divisibility of aligned runs, which survive `% M` and `/ M`. The scale
// of every rule is a power of two, so that a divisibility stays true when an integer wraps.

#ifndef TESSERA_LIB_ANALYSIS_ACCESS_ACCESSTRANSFER_H
#define TESSERA_LIB_ANALYSIS_ACCESS_ACCESSTRANSFER_H

#include "AccessRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::access {

/// The greatest number of which both are multiples, for extents of runs.
int64_t commonRun(int64_t a, int64_t b);

/// A form with every stride 0 and nothing known beyond that.
AccessForm makeUniform(mlir::Type type);

/// The form of an op's result from the forms of its operands, before normalising.
struct Transfer {
  AccessAnalysis &analysis;
  FormKind kind;

  const AccessForm &form(mlir::Value value) { return analysis.getForm(value, kind); }
  const AccessForm &addressForm(mlir::Value value) {
    return analysis.getForm(value, {/*isExact=*/false, kind.promises});
  }
  const AccessForm &exactForm(mlir::Value value) {
    return analysis.getForm(value, {/*isExact=*/true, kind.promises});
  }

  AccessForm visit(mlir::OpResult value);

private:
  AccessForm add(mlir::Type type, mlir::Value lhs, mlir::Value rhs, bool subtract);
  AccessForm multiply(mlir::Type type, const AccessForm &lhs, const AccessForm &rhs);
  AccessForm multiplyByConstant(mlir::Value lhs, int64_t constant);
  AccessForm remainder(mlir::Value lhs, int64_t divisor, llvm::ArrayRef<int64_t> constancy,
                       mlir::Type type);
  AccessForm quotient(mlir::Value lhs, int64_t divisor, llvm::ArrayRef<int64_t> constancy,
                      mlir::Type type);
  AccessForm shift(tile::ShiftOp op);
  AccessForm bitAnd(mlir::arith::AndIOp op);
  AccessForm extension(mlir::Value source, mlir::Type type, bool isSigned);
  AccessForm integerCast(mlir::Operation *op);
  AccessForm pointerCast(mlir::Operation *op);
  AccessForm merge(mlir::Type type, llvm::ArrayRef<mlir::Value> values, bool keepRuns);
  AccessForm select(mlir::arith::SelectOp op);
  AccessForm compare(mlir::arith::CmpIOp op);
  AccessForm load(tile::LoadOp op);
  AccessForm hint(tile::HintOp op);
  AccessForm constant(mlir::arith::ConstantOp op);
  AccessForm splat(tile::SplatOp op);
  AccessForm followMaps(mlir::OpResult value);
  AccessForm moveDims(mlir::OpResult value);
  AccessForm reshape(mlir::OpResult value);
  AccessForm concatenate(mlir::OpResult value);
  AccessForm combine(mlir::OpResult value);
  AccessForm elementwise(mlir::Operation *op, mlir::Type type);
};

} // namespace tessera::access

#endif // TESSERA_LIB_ANALYSIS_ACCESS_ACCESSTRANSFER_H
