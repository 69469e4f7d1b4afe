// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What another thread may do before the program's threads come to it: loads that TMA does early,
// and the scalars that it takes to know of which tiles.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include <string>

namespace tessera::tilegpu {

/// The box that a load copies to shared memory where TMA can do it: whenever the kernel likes, or,
/// of an array that the kernel finds, where the program comes to it. Else none, and `why` gets the
/// reason. The coordinates of the former can be computed outside of a region.
std::optional<BoxAccess> getBoxToCopy(mlir::Region &region, tile::LoadOp load, MemDescType tile,
                                      AccessAnalysis &analysis, std::string &why);

/// What is in the way of loads that come early.
struct EarlyLoadObstacle {
  /// What comes before the loads, and the one that may not pass it; null if none may.
  mlir::Operation *op = nullptr;
  tile::LoadOp load;
};

/// Finds an obstacle to running a kernel's loads before all of its earlier accesses of memory.
/// Launch conditions for that are added to `conditions`.
std::optional<EarlyLoadObstacle> findObstacle(tile::FuncOp kernel,
                                              llvm::ArrayRef<tile::LoadOp> loads,
                                              MemoryOrder &order, AccessAnalysis &analysis,
                                              LaunchConditions &conditions);

/// What loads of a loop's later iterations may not be done before, any of them: those that tell
/// others where to load come early, too. Null if there is nothing. Of arrays of two arguments
/// nobody knows here that they are two. A loop inside that has a schedule is in the way.
mlir::Operation *findObstacleInLoop(mlir::scf::ForOp loop, MemoryOrder &order);

/// What has to hold at a launch for these loads of a loop to come before what the iterations before
/// theirs do: that arrays are apart, of which rows a loop goes through are known by its bounds.
/// Nothing where a launch cannot know: then `obstacle` is what stands against it.
std::optional<LaunchConditions> findConditionsInLoop(mlir::scf::ForOp loop,
                                                     llvm::ArrayRef<tile::LoadOp> loads,
                                                     MemoryOrder &order, AccessAnalysis &analysis,
                                                     mlir::Operation *&obstacle);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_EARLYLOADS_H
