// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The width of one access of a GPU thread to global memory, if it has enough neighbours in
// registers. The choice of layouts and the lowering of accesses both use it.

#ifndef TESSERA_ANALYSIS_ACCESS_THREADACCESS_H
#define TESSERA_ANALYSIS_ACCESS_THREADACCESS_H

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Machine/GPUMachine.h"

namespace tessera::tilegpu {

/// The most bytes that a thread moves at once.
inline constexpr int64_t kMaxAccessBytes = GPUMachine::kMaxAccessBytes;

/// The pointers of an access to global memory through a tile of pointers; null for any
/// other op.
mlir::Value getAccessedPointers(mlir::Operation *op);

/// How many elements along a dimension a load, a store, an asynchronous copy or an atomic of such a
/// tile moves at once, a power of two.
int64_t getAccessWidth(mlir::Operation *op, unsigned dim, AccessAnalysis &analysis);

} // namespace tessera::tilegpu

#endif // TESSERA_ANALYSIS_ACCESS_THREADACCESS_H
