// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Global memory for the tensor maps that programs make. A kernel contains the table, so that
// launchers need no change: launches on several streams, and those of graphs, share it. It has
// places for more programs than a GPU runs at once, each with a word that is 1 while a program has
// the place:
//
//     words    [kPlaces x i32]
//     maps     [kPlaces x maps of a program x 128 bytes]
//
// A program looks for a free place, from one on that its number says, and gives it back in the end.
// If no place is free, it waits for another program, which must be running, since it owns the
// place.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_TENSORMAPMEMORY_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_TENSORMAPMEMORY_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

namespace tessera {

/// Gives each `tilegpu.make_tensor_map` the address of its bytes.
void claimTensorMapMemory(mlir::ModuleOp module, const TargetHooks &hooks);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_TENSORMAPMEMORY_H
