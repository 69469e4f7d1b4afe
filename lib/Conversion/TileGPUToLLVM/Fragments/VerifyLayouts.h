// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifies the layouts on which every pass behind the choice of layouts relies.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_VERIFYLAYOUTS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_VERIFYLAYOUTS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Emits an error and fails unless the module has the number of warps, and every tile has a layout
/// for these warps and for the cluster's blocks.
mlir::LogicalResult verifyLayouts(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_VERIFYLAYOUTS_H
