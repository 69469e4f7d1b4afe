// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the slices along k in which dots by multiply-adds and by mma.sync read their operands
// from shared memory. They are part of the schedule (`slices`,
// tessera/Dialect/TileGPU/IR/Schedule.h). It runs here because a thread's elements of a slice
// follow from the layouts. tilegpu-expand-schedule writes the dots of slices (SlicedDot.h).

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Machine/ScheduleBudget.h"

#include "Programs/SlicedDot.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPREFETCHPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Steps along k of a slice; none if it is not worth it.
static std::optional<int64_t> chooseSteps(Operation *dot, const SlicedDot &sliced) {
  int64_t depth = sliced.getDepth();
  if (sliced.isByTensorCores()) {
    int64_t steps = cast<DotOpInterface>(dot).getStepsOfSlice();
    return steps < depth ? std::optional(steps) : std::nullopt;
  }
  int64_t words = sliced.getTypes(/*steps=*/1).countWords(), steps = 1;
  while (steps < std::min(depth, ScheduleSizes::kMaxStepsOfSlice) &&
         words * steps * 2 <= RegisterBudget::kOfDotSlice)
    steps *= 2;
  return steps;
}

/// True if the loop has no other dot and no loop in it.
static bool isOnlyWork(Operation *dot, scf::ForOp loop) {
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    bool isOther = isa<LoopLikeOpInterface>(op) || (op != dot && isDot(op));
    return isOther ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

namespace {

struct TileGPUPrefetchPass : tessera::tilegpu::impl::TileGPUPrefetchPassBase<TileGPUPrefetchPass> {
  void runOnOperation() final {
    getOperation().walk([](Operation *op) {
      auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
      if (!SlicedDot::isKind(op) || (node && node.getSlices() != 0))
        return;
      SlicedDot sliced(op);
      if (sliced.findObstacle())
        return;
      std::optional<int64_t> steps = chooseSteps(op, sliced);
      if (!steps)
        return;
      int64_t slices = sliced.getDepth() / *steps;
      auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      // Dots by multiply-adds have enough instructions to hide the loads, and few free registers.
      bool isAhead = sliced.isByTensorCores() && loop && isOnlyWork(op, loop) &&
                     !sliced.findObstacleAhead(slices);
      op->setAttr(kNodeAttr, NodeAttr::getSliced(op->getContext(), slices, isAhead));
    });
  }
};

} // namespace
