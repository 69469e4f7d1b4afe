// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops that another thread may run before the program's threads: loads that TMA runs early, and
// the scalars that determine their tiles.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include <string>

namespace tessera::tilegpu {

/// The box that a load copies to shared memory if TMA can do it: at any time in the kernel. If the
/// kernel loads the array's address, it is at the load's place in the program. Else none, and `why`
/// gets the reason. The coordinates of the former can be computed outside of a region.
std::optional<BoxAccess> getBoxToCopy(mlir::Region &region, tile::LoadOp load, MemDescType tile,
                                      AccessAnalysis &analysis, std::string &why);

/// An obstacle to early loads.
struct EarlyLoadObstacle {
  /// The op before the loads, and the load that may not pass it; null if none may.
  mlir::Operation *op = nullptr;
  tile::LoadOp load;
};

/// Finds an obstacle to running a kernel's loads before all of its earlier accesses of memory.
/// Launch conditions for that are added to `conditions`.
std::optional<EarlyLoadObstacle> findObstacle(tile::FuncOp kernel,
                                              llvm::ArrayRef<tile::LoadOp> loads,
                                              MemoryOrder &order, AccessAnalysis &analysis,
                                              LaunchConditions &conditions);

/// An op that loads of a loop's later iterations may not pass; null if there is none. Loads of
/// addresses are early, too. Arrays of two arguments count as overlapping here. An inner loop with
/// a schedule is an obstacle, too.
mlir::Operation *findObstacleInLoop(mlir::scf::ForOp loop, MemoryOrder &order);

/// The loads that are early if copies of these loads of a loop are: the copies themselves, and the
/// loads that their addresses and masks depend on.
llvm::SmallVector<tile::LoadOp> getEarlyLoads(mlir::scf::ForOp loop,
                                              llvm::ArrayRef<tile::LoadOp> copied);

/// The conditions of a launch for these loads of a loop to precede the accesses of earlier
/// iterations: arrays must not overlap. The bounds of a loop give the rows that it accesses.
/// Nothing where a launch cannot know: then `obstacle` is what stands against it.
std::optional<LaunchConditions> findConditionsInLoop(mlir::scf::ForOp loop,
                                                     llvm::ArrayRef<tile::LoadOp> loads,
                                                     MemoryOrder &order, AccessAnalysis &analysis,
                                                     mlir::Operation *&obstacle);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H
