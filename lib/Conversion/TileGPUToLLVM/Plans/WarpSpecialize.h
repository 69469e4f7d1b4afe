// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warp specialisation in terms of scf: a branch on the warp's number at the top level of the
// kernel. Every warp takes one side and stays there.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_WARPSPECIALIZE_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_WARPSPECIALIZE_H

#include "Fragments/Fragment.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// On a kernel: how many warps a launch has (i32), where there are more than the program's.
inline constexpr llvm::StringLiteral kLaunchWarpsAttr =
    tilegpu::TileGPUDialect::LaunchWarpsAttrHelper::getNameStr();

/// Makes branches of all `tilegpu.warp_specialize` and `tilegpu.one_thread`, and puts each
/// `tilegpu.mbarrier_init` into one of the first thread. To be called before patterns are applied,
/// which then ask `isRunByOneThread`.
void expandWarpSpecialize(mlir::ModuleOp module, const TargetHooks &hooks);

/// The number of a thread's warpgroup.
mlir::Value emitGroup(ThreadBuilder &thread);

/// A barrier of each warpgroup of a default region.
void emitGroupBarrier(ThreadBuilder &thread);

/// True if `op` is in what has become of a partition.
bool isRunByOneThread(mlir::Operation *op);

/// True if this thread is the one, where a warp is together in what has become of a
/// `tilegpu.one_thread`; null where one thread is alone.
mlir::Value getElected(mlir::Operation *op);

/// Replaces barriers of all warps in the code of a default region by barriers of its warps only.
/// Those of a program with one warp become barriers of its lanes.
/// Must be called when all ops are lowered.
void nameBarriers(mlir::ModuleOp module, const TargetHooks &hooks);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_WARPSPECIALIZE_H
