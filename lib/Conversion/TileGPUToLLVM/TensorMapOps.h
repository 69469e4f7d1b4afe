// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What copies by tensor maps need to know of the maps, while these are arguments with
// attributes.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_TENSORMAPOPS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_TENSORMAPOPS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Notes on each copy of which boxes it is. To be called before patterns are applied.
void markBoxes(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_TENSORMAPOPS_H
