// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one layout of registers to another.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CONVERTLAYOUT_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CONVERTLAYOUT_H

#include "Fragments/Fragment.h"
#include "tessera/Layout/LayoutConversion.h"

namespace tessera {

/// The registers of a tile in layout `destination`, from those in layout `source`, where
/// that takes no memory: names, selections, shuffles.
llvm::SmallVector<mlir::Value> emitConversion(ThreadBuilder &thread, mlir::ValueRange registers,
                                              const LinearLayout &source,
                                              const LinearLayout &destination);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CONVERTLAYOUT_H
