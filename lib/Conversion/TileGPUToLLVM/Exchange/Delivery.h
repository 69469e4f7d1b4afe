// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that only one of several threads may compute (an atomic, a volatile load),
// handed to the others that hold copies of the element.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_DELIVERY_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_DELIVERY_H

#include "Fragments/Fragment.h"

namespace tessera {

/// Bytes of scratch memory that deliver needs for a result of this type: none unless
/// several warps, or blocks of a cluster, hold copies.
int64_t getDeliveryBytes(mlir::Type type, mlir::Operation *op);

/// `registers` as the representatives have them (emitRepresentativePredicate), for every
/// thread. Fails, with an error, where scratch memory is needed and none is allocated.
mlir::LogicalResult deliver(ThreadBuilder &thread, mlir::Operation *op, mlir::Type type,
                            llvm::SmallVectorImpl<mlir::Value> &registers);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_DELIVERY_H
