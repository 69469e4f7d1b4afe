// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The combining regions of reductions and scans, on scalars and on vectors.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_COMBINE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_COMBINE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"

namespace tessera {

/// True if a combining region can be computed on vectors: elementwise operations only.
bool isVectorizableRegion(mlir::Region &region);

/// Computes a region on `arguments` (scalars, or vectors of one length) in place of its
/// scalars; returns what its terminator returns. For the operands in `increasing`, the left
/// argument is known to be less than the right one, as signed integers.
llvm::SmallVector<mlir::Value> buildRegion(mlir::OpBuilder &builder, mlir::Location loc,
                                           mlir::Region &region, mlir::ValueRange arguments,
                                           llvm::ArrayRef<unsigned> increasing = {});

/// True if the region returns the left or the right argument for an operand, and nothing else.
bool choosesOperand(mlir::Region &region, unsigned operand);

/// The scalar that combines with any x to x, if the region is a single known operation
/// on one operand; null otherwise.
mlir::TypedAttr getNeutralElement(mlir::Region &region);

/// Combines the lanes of vectors (one an operand of the region) into scalars.
llvm::SmallVector<mlir::Value> foldLanes(mlir::OpBuilder &builder, mlir::Location loc,
                                         mlir::Region &region, mlir::ValueRange vectors);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_COMBINE_H
