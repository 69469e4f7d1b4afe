// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the loops that schedules describe (tessera/Dialect/TileGPU/IR/Schedule.h), once they are
// found to compute what the loops without them do.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "KernelExpander.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUEXPANDSCHEDULEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

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
      if (!kernel.isEmpty() && failed(kernel.expand()))
        return signalPassFailure();
    }
  }
};

} // namespace
