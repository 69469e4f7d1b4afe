// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the loops that schedules describe (tessera/Dialect/TileGPU/IR/Schedule.h), once they are
// found to compute what the loops without them do; and dots in slices, once tiles have layouts.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "KernelExpander.h"
#include "SlicedDot.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUEXPANDSCHEDULEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Dots whose nodes have slices, as far as their tiles have layouts.
static FailureOr<SmallVector<Operation *>> findSlicedDots(tile::FuncOp function) {
  SmallVector<Operation *> dots;
  WalkResult result = function.walk([&](Operation *op) {
    auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
    if (!node || node.getSlices() == 0)
      return WalkResult::advance();
    if (failed(SlicedDot::verifyKind(op)))
      return WalkResult::interrupt();
    if (getLayoutAttr(op->getResult(0).getType()))
      dots.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return dots;
}

static LogicalResult expandSlices(tile::FuncOp function) {
  bool isOtherLoop = true;
  while (std::exchange(isOtherLoop, false)) {
    FailureOr<SmallVector<Operation *>> dots = findSlicedDots(function);
    if (failed(dots))
      return failure();
    for (Operation *op : *dots) {
      SlicedDot dot(op);
      auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
      if (failed(dot.verify(node)))
        return failure();
      dot.expand(node);
      // With a slice ahead the loop is a new one, with new ops.
      isOtherLoop = node.getAhead() != 0;
      if (isOtherLoop)
        break;
    }
  }
  return success();
}

namespace {

struct TileGPUExpandSchedulePass
    : tessera::tilegpu::impl::TileGPUExpandSchedulePassBase<TileGPUExpandSchedulePass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    int64_t limit = (*machine)->sharedBytes;
    for (auto function : module.getOps<tile::FuncOp>()) {
      SmallVector<scf::ForOp> loops;
      function.walk([&](scf::ForOp loop) {
        if (loop->hasAttr(kScheduleAttr))
          loops.push_back(loop);
      });
      for (scf::ForOp loop : loops)
        for (Operation *op = loop->getParentOp(); op != function; op = op->getParentOp())
          if (op->hasAttr(kScheduleAttr)) {
            loop.emitError("has a schedule, and is in a loop that has one, too");
            return signalPassFailure();
          }
      KernelExpander kernel(function, warps.value_or(1), limit);
      for (scf::ForOp loop : loops) {
        FailureOr<LoopSchedule> schedule = LoopSchedule::read(loop);
        if (failed(schedule))
          return signalPassFailure();
        auto isByTMA = [](const ScheduledChannel &channel) { return channel.isByTMA(); };
        if (llvm::any_of(schedule->getChannels(), isByTMA)) {
          kernel.add(std::move(*schedule));
          continue;
        }
        if (failed(schedule->verify(limit)))
          return signalPassFailure();
        KernelRings none;
        ScheduledLoop(*schedule, none, {}).expand();
      }
      if (failed(kernel.expand()) || failed(expandSlices(function)))
        return signalPassFailure();
    }
  }
};

} // namespace
