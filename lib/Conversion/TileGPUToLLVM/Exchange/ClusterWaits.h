// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After an exchange, blocks of a cluster synchronise once more, since other blocks may still load
// from a block's memory. Arriving takes no time. Only a warp that is about to write shared memory,
// or to synchronise in another way, must wait. So the wait sinks past all other ops:
//
//     nvvm.cluster.arrive                      nvvm.cluster.arrive
//     nvvm.cluster.wait             becomes    ... arithmetic, global memory, own loads ...
//     ... arithmetic ...                       nvvm.cluster.wait
//     llvm.store %x, %shared                   llvm.store %x, %shared

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CLUSTERWAITS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CLUSTERWAITS_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

namespace tessera {

/// The threads of the cluster's blocks meet before their shared memory is used for something else.
void emitClusterRelease(ThreadBuilder &thread);

/// Sinks the waits of these.
void sinkClusterWaits(mlir::ModuleOp module, const TargetHooks &hooks);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CLUSTERWAITS_H
