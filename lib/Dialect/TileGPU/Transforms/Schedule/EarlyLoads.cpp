// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EarlyLoads.h"

#include "Facts/LoopSlice.h"
#include "Programs/LoopDots.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

std::optional<BoxAccess> tessera::tilegpu::getBoxToCopy(Region &region, tile::LoadOp load,
                                                        MemDescType tile, AccessAnalysis &analysis,
                                                        std::string &why) {
  if (load.getIsVolatile() || load.getCache() == tile::CacheModifier::CV) {
    why = "it is volatile, or its cache modifier forbids a copy";
    return std::nullopt;
  }
  std::optional<BoxAccess> box = getBoxAccess(load, analysis, &why);
  if (!box || !canMoveByTensorMap(*box, tile, &why))
    return std::nullopt;
  if (!box->isFoundByKernel() && !box->canEmitOutside(region, &why))
    return std::nullopt;
  return box;
}

std::optional<EarlyLoadObstacle> tessera::tilegpu::findObstacle(tile::FuncOp kernel,
                                                                ArrayRef<tile::LoadOp> loads,
                                                                MemoryOrder &order,
                                                                AccessAnalysis &analysis,
                                                                LaunchConditions &conditions) {
  std::optional<EarlyLoadObstacle> obstacle;
  kernel.walk([&](Operation *op) {
    // Ops in a region are visited themselves.
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || op == kernel)
      return WalkResult::advance();
    for (tile::LoadOp load : loads) {
      std::optional<Operation *> across = findWayBefore(op, load);
      AccessPair why;
      if (!across || conditions.add(order.mayPass(load, op, *across), analysis, why))
        continue;
      obstacle = EarlyLoadObstacle{op, why.other.isAnywhere() ? tile::LoadOp() : load};
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return obstacle;
}

/// A write in a loop that some of its loads may not pass, by `mayPass`. Null if there is nothing.
static Operation *findObstacleOf(scf::ForOp loop, ArrayRef<tile::LoadOp> loads,
                                 llvm::function_ref<bool(tile::LoadOp, Operation *)> mayPass) {
  Operation *obstacle = nullptr;
  loop.getBody()->walk([&](Operation *op) {
    // Only one of nested loops may have a schedule.
    if (op->hasAttr(kScheduleAttr)) {
      obstacle = op;
      return WalkResult::interrupt();
    }
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    bool isPassed = !isa<BarrierOp>(op) &&
                    (!mayWriteMemory(op) ||
                     llvm::all_of(loads, [&](tile::LoadOp load) { return mayPass(load, op); }));
    if (isPassed)
      return WalkResult::advance();
    obstacle = op;
    return WalkResult::interrupt();
  });
  return obstacle;
}

Operation *tessera::tilegpu::findObstacleInLoop(scf::ForOp loop, MemoryOrder &order) {
  SmallVector<tile::LoadOp> loads;
  loop.getBody()->walk([&](tile::LoadOp load) { loads.push_back(load); });
  return findObstacleOf(loop, loads, [&](tile::LoadOp load, Operation *op) {
    return order.mayPass(load, op, loop).isIndependent();
  });
}

SmallVector<tile::LoadOp> tessera::tilegpu::getEarlyLoads(scf::ForOp loop,
                                                          ArrayRef<tile::LoadOp> copied) {
  SmallVector<tile::LoadOp> loads(copied);
  LoopSlice addresses(loop);
  for (tile::LoadOp load : copied)
    for (Value operand : load->getOperands())
      addresses.add(operand);
  llvm::append_range(loads, addresses.getLoads());
  return loads;
}

std::optional<LaunchConditions> tessera::tilegpu::findConditionsInLoop(scf::ForOp loop,
                                                                       ArrayRef<tile::LoadOp> loads,
                                                                       MemoryOrder &order,
                                                                       AccessAnalysis &analysis,
                                                                       Operation *&obstacle) {
  LaunchConditions conditions;
  AccessPair why;
  obstacle = findObstacleOf(loop, loads, [&](tile::LoadOp load, Operation *op) {
    return conditions.add(order.mayPass(load, op, loop), analysis, why);
  });
  return obstacle ? std::nullopt : std::optional(std::move(conditions));
}
