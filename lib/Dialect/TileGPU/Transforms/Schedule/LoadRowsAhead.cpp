// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for loops over rows that are reduced, as in the backward pass of a norm
// (tessera/Dialect/TileGPU/IR/Schedule.h). An iteration loads its row, waits for it, reduces it
// with barriers, and stores. Memory is idle for much of the time, and there are no registers for
// the next row. Shared memory has room for it:
//
//     wait until row i is there
//     copy row i + 1 into the other of two slots, if there is one
//     load row i from its slot ... reduce ... once more from its slot ... store
//
// The planner (SchedulePlanner.h) runs behind the choice of layouts here. Each thread copies the
// elements that it reads, in the layout of the loads, so that no exchange is needed. Only then is
// the use of registers known. Tiles in slots need not be held across the reduction
// (tilegpu-reorder-instructions).
//
// Copies pass the stores of the iteration before. That the arrays are apart is for the launch to
// find out.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "SchedulePlanner.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPULOADROWSAHEADPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

struct TileGPULoadRowsAheadPass
    : tessera::tilegpu::impl::TileGPULoadRowsAheadPassBase<TileGPULoadRowsAheadPass> {
  using TileGPULoadRowsAheadPassBase::TileGPULoadRowsAheadPassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!warps || numStages < RowTransport::kSlots)
      return;
    PlanOptions options;
    options.stages = numStages;
    options.warps = *warps;
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      if (!kernel.isKernel() || !isPlain(kernel))
        continue;
      if (failed(planSchedules(kernel, **machine, TransportKind::Rows, options, {strict, refused})))
        return signalPassFailure();
    }
  }
};

} // namespace
