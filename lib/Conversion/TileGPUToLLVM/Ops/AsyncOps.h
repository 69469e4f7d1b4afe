// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The elements of one asynchronous copy, and the common parts of all kinds of copies.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_OPS_ASYNCOPS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_OPS_ASYNCOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// Elements that one copy moves, in this many registers; 1 where there is no neighbour.
int64_t countElementsPerCopy(tilegpu::AsyncCopyOp op);

/// The operand by which a copy says how soon its lines may leave the second-level cache; null
/// without such a hint.
mlir::Value emitCachePolicy(ThreadBuilder &thread, const tilegpu::CopyHints &hints);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_OPS_ASYNCOPS_H
