// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows and numbers that a loop computes with, such as scales of a block along k, or decays by which
// a tile is multiplied before its dot. They do not go through shared memory, so no ring holds them.
// Threads load them into registers one iteration ahead or more, and memory responds while tensor
// cores multiply.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOADSAHEAD_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOADSAHEAD_H

#include "Programs/LoopDots.h"
#include "tessera/Analysis/Order/MemoryOrder.h"

namespace tessera::tilegpu {

/// True if a loop computes with the results of all of its dots, and multiplies none of them again.
bool computesWithDots(mlir::scf::ForOp loop);

/// True if a load may run earlier, or twice, provided that no op writes to memory meanwhile.
bool canLoadAhead(tile::LoadOp load);

/// True if what computes the address of a load can do so in another iteration, and the load may
/// run there.
bool isLoadableAhead(mlir::scf::ForOp loop, tile::LoadOp load);

/// The loads of rows and numbers that may be done an iteration ahead, in the order of the body, as
/// far as memory is concerned. `ofAll` includes those that a dot depends on.
llvm::SmallVector<tile::LoadOp> findLoadsAhead(mlir::scf::ForOp loop, const ReplacedOps &replaced,
                                               bool ofAll);

/// The loads of whole tiles that dots depend on, and that may be done an iteration ahead, as far as
/// memory is concerned.
llvm::SmallVector<tile::LoadOp> findTilesAhead(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// Moves a load and what computes its address so many iterations ahead; one, if the loop carries
/// the address. Other users keep the address.
void loadAhead(tile::LoadOp load, int distance);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOADSAHEAD_H
