// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What has to be settled about asynchronous copies before tiles are taken apart.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ASYNCOPS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ASYNCOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"

namespace tessera {

/// Copies of which no 4 bytes can travel together are loaded and stored instead, with a
/// remark. The waits and barriers behind them order that too. To be called after
/// planAccesses.
void replaceNarrowCopies(mlir::ModuleOp module);

/// The operand by which a copy says how soon its lines may leave the second-level cache; null
/// without such a hint.
mlir::Value emitCachePolicy(ThreadBuilder &thread, const tilegpu::CopyHints &hints);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ASYNCOPS_H
