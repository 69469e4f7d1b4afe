// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EarlyLoads.h"

#include "LoopDots.h"
#include "mlir/IR/Matchers.h"
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
    why = "it is not to be cached";
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
    // What is in a region is seen itself.
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

/// What is in a loop that some loads of it may not pass, as far as that is asked of `mayPass`, of
/// ops that write. Null if there is nothing.
static Operation *findObstacleOf(scf::ForOp loop, ArrayRef<tile::LoadOp> loads,
                                 llvm::function_ref<bool(tile::LoadOp, Operation *)> mayPass) {
  Operation *obstacle = nullptr;
  loop.getBody()->walk([&](Operation *op) {
    // Of loops in each other one has a schedule.
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

//===----------------------------------------------------------------------===//
// Rows that a loop goes through
//===----------------------------------------------------------------------===//

/// The bound that a coordinate stays below in all iterations of a loop, as a launch knows it: it
/// is a number, or one behind the variable of the loop. Null if it is something else.
static LaunchExpr getCoordinateBound(const ScalarPolynomial &coordinate, scf::ForOp loop,
                                     AccessAnalysis &analysis) {
  MLIRContext *context = loop.getContext();
  if (std::optional<int64_t> constant = coordinate.getConstant())
    return getAffineConstantExpr(*constant + 1, context);
  std::optional<LinearForm> variable = analysis.getLinearForm(loop.getInductionVar());
  std::optional<ScalarPolynomial> behind =
      variable ? coordinate.minus(variable->uniform) : std::nullopt;
  std::optional<int64_t> distance = behind ? behind->getConstant() : std::nullopt;
  if (!distance || loop.getUnsignedCmp())
    return {};
  APInt constant;
  if (matchPattern(loop.getUpperBound(), m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue() + *distance, context);
  auto argument = dyn_cast<BlockArgument>(loop.getUpperBound());
  if (!argument || !isa<tile::FuncOp>(argument.getOwner()->getParentOp()))
    return {};
  return getAffineSymbolExpr(argument.getArgNumber(), context) + *distance;
}

/// All that an access reaches in a loop; nothing if a launch cannot know that.
static std::optional<LaunchRange> getRangeInLoop(scf::ForOp loop, const OpAccess &access,
                                                 AccessAnalysis &analysis,
                                                 LaunchConditions &conditions) {
  std::optional<BoxAccess> box = getBoxAccess(access.op, analysis);
  auto base = box ? dyn_cast<BlockArgument>(box->getBase()) : BlockArgument();
  if (!base || box->isFoundByKernel() || box->getMostPrograms() != 0 ||
      !box->getProgramBounds().empty() || !box->getGuards().empty())
    return std::nullopt;
  LaunchRange range;
  range.argument = base.getArgNumber();
  range.elementBytes = getElementBytes(box->getElementType());
  for (const BoxDim &dim : box->getDims()) {
    LaunchExpr bound = getCoordinateBound(dim.coordinate, loop, analysis);
    if (!bound)
      return std::nullopt;
    range.dims.push_back(
        {dim.isUnbounded() ? bound + (dim.tileExtent - 1) : dim.extent, dim.stride});
  }
  for (LaunchExpr condition : box->getConditions())
    if (!llvm::is_contained(conditions.notNegative, condition))
      conditions.notNegative.push_back(condition);
  return range;
}

std::optional<LaunchConditions> tessera::tilegpu::findConditionsInLoop(scf::ForOp loop,
                                                                       ArrayRef<tile::LoadOp> loads,
                                                                       MemoryOrder &order,
                                                                       AccessAnalysis &analysis,
                                                                       Operation *&obstacle) {
  LaunchConditions conditions;
  auto areApart = [&](const AccessPair &pair) {
    std::optional<LaunchRange> first = getRangeInLoop(loop, pair.moved, analysis, conditions),
                               second = getRangeInLoop(loop, pair.other, analysis, conditions);
    if (!pair.apartIf.empty() || !first || !second || first->argument == second->argument)
      return false;
    if (first->argument > second->argument)
      std::swap(first, second);
    if (LaunchRangePair ranges{*first, *second}; !llvm::is_contained(conditions.apart, ranges))
      conditions.apart.push_back(ranges);
    return true;
  };
  obstacle = findObstacleOf(loop, loads, [&](tile::LoadOp load, Operation *op) {
    MemoryOrderAnswer answer = order.mayPass(load, op, loop);
    return !answer.isOrdered() && llvm::all_of(answer.getConditions(), areApart);
  });
  return obstacle ? std::nullopt : std::optional(std::move(conditions));
}
