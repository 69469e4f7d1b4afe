// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often the elements of tiles are computed in one loop nest.
//
// A nest computes an element where it is asked for, and keeps it for those who ask at the same
// index. Operations that move elements ask at another index than they are asked at:
//
//     v1 = reshape(trans(reshape(v0))) + v0        v0 at two indices
//     v2 = reshape(trans(reshape(v1))) + v1        v1 at two indices, v0 at three
//
// and so on; without buffers in between the code grows exponentially with such steps.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_INDEXMAPS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_INDEXMAPS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace tessera {

/// The tiles that a nest is better given in buffers, since it would compute their elements at
/// too many indices; operands before users. `ops` are the operations that the nest computes,
/// operands first; `roots` are its values at the index of its own loops, operands of roots too.
/// `isLeaf` says what is computed elsewhere.
llvm::SmallVector<mlir::Value> findRecomputed(llvm::ArrayRef<mlir::Operation *> ops,
                                              llvm::ArrayRef<mlir::Value> roots,
                                              llvm::function_ref<bool(mlir::Value)> isLeaf);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_INDEXMAPS_H
