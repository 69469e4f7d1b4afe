// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Square blocks of vectors, transposed in registers.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_TRANSPOSEDNEST_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_TRANSPOSEDNEST_H

#include "mlir/IR/Builders.h"

namespace tessera {

/// The columns of a block of as many vectors as each has lanes, a power of two.
llvm::SmallVector<mlir::Value> transposeBlock(mlir::OpBuilder &b, mlir::Location loc,
                                              llvm::ArrayRef<mlir::Value> block);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_TRANSPOSEDNEST_H
