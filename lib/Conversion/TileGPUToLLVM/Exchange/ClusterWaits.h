// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a cluster meet once more when they have loaded what they exchange: until then others
// load from a block's memory. To arrive there takes no time; to wait need those alone who are
// about to write to shared memory, or to meet others in another way. So that wait sinks past what
// does neither:
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
