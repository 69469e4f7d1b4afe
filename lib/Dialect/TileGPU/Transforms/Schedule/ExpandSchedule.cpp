// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the loops that schedules describe (tessera/Dialect/TileGPU/IR/Schedule.h), after verifying
// that they compute the same as the loops without schedules. Writes dots in slices once tiles have
// layouts.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "KernelExpander.h"
#include "Programs/SlicedDot.h"
#include "ScheduleTrial.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUEXPANDSCHEDULEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Ops whose nodes have slices, but for dots whose tiles have no layouts yet.
static SmallVector<Operation *> findSlicedDots(tile::FuncOp function) {
  SmallVector<Operation *> dots;
  function.walk([&](Operation *op) {
    auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
    if (node && node.getSlices() != 0 &&
        (!SlicedDot::isKind(op) || getLayoutAttr(op->getResult(0).getType())))
      dots.push_back(op);
  });
  return dots;
}

/// Runs a check of the verifier. If it refuses something and refusals are dropped, a remark says
/// why, and `isDropped` is set.
static LogicalResult check(Operation *scheduled, StringRef schedule, bool dropsRefused,
                           bool &isDropped, llvm::function_ref<LogicalResult()> verify) {
  isDropped = false;
  if (!dropsRefused)
    return verify();
  RefusalListener listener(scheduled->getContext());
  if (succeeded(verify()))
    return success();
  isDropped = true;
  if (listener.hasRefused())
    listener.emitRemark(scheduled->getLoc(), schedule);
  return success();
}

/// Removes a loop's schedule: the loop computes the same without it.
static void dropSchedule(scf::ForOp loop) {
  loop->removeAttr(kScheduleAttr);
  loop.getBody()->walk([](Operation *op) { op->removeAttr(kNodeAttr); });
}

static LogicalResult expandSlices(tile::FuncOp function, bool dropsRefused) {
  bool isOtherLoop = true, isDropped = false;
  while (std::exchange(isOtherLoop, false)) {
    for (Operation *op : findSlicedDots(function)) {
      auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
      auto verify = [&] {
        return failed(SlicedDot::verifyKind(op)) ? failure() : SlicedDot(op).verify(node);
      };
      if (failed(check(op, "slices of operands", dropsRefused, isDropped, verify)))
        return failure();
      if (isDropped) {
        op->removeAttr(kNodeAttr);
        continue;
      }
      SlicedDot(op).expand(node);
      // With a slice ahead the loop is a new one, with new ops.
      isOtherLoop = node.getAhead() != 0;
      if (isOtherLoop)
        break;
    }
  }
  return success();
}

/// Only one of the loops around each other can have a schedule.
static LogicalResult verifyNesting(scf::ForOp loop) {
  for (Operation *op = loop->getParentOp(); op && !isa<tile::FuncOp>(op); op = op->getParentOp())
    if (op->hasAttr(kScheduleAttr))
      return loop.emitError("has a schedule, and is in a loop that has one, too");
  return success();
}

/// The same for the loops of a kernel that TMA fills rings for, and for its own schedule.
static void dropSchedules(tile::FuncOp kernel, ArrayRef<LoopSchedule> schedules) {
  for (const LoopSchedule &schedule : schedules)
    dropSchedule(schedule.getLoop());
  auto attr = kernel->getAttrOfType<KernelScheduleAttr>(kKernelScheduleAttr);
  kernel->removeAttr(kKernelScheduleAttr);
  if (attr && !attr.getChannels().empty())
    kernel.walk([](tile::LoadOp load) { load->removeAttr(kNodeAttr); });
}

namespace {

struct TileGPUExpandSchedulePass
    : tessera::tilegpu::impl::TileGPUExpandSchedulePassBase<TileGPUExpandSchedulePass> {
  using TileGPUExpandSchedulePassBase::TileGPUExpandSchedulePassBase;

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
      KernelExpander kernel(function, warps.value_or(1), limit);
      bool isDropped = false, isAnyDropped = false;
      for (scf::ForOp loop : loops) {
        FailureOr<LoopSchedule> schedule = failure();
        auto verify = [&]() -> LogicalResult {
          if (failed(verifyNesting(loop)))
            return failure();
          schedule = LoopSchedule::read(loop);
          if (failed(schedule))
            return failure();
          // Those are verified together.
          return schedule->isByTMA() ? success() : schedule->verify(limit);
        };
        if (failed(check(loop, "the schedule of a loop", dropRefused, isDropped, verify)))
          return signalPassFailure();
        isAnyDropped |= isDropped;
        if (isDropped) {
          dropSchedule(loop);
        } else if (schedule->isByTMA()) {
          kernel.add(std::move(*schedule));
        } else {
          KernelRings none;
          ScheduledLoop(*schedule, none, {}).expand();
        }
      }
      if (failed(check(function, "the schedule of a kernel", dropRefused, isDropped,
                       [&] { return kernel.verify(); })))
        return signalPassFailure();
      if (isDropped || (isAnyDropped && kernel.getSchedules().empty()))
        dropSchedules(function, kernel.getSchedules());
      else
        kernel.expand();
      if (failed(expandSlices(function, dropRefused)))
        return signalPassFailure();
    }
  }
};

} // namespace
