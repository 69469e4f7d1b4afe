// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for kernels whose dots take their tiles from global memory in boxes
// (Analysis/Boxes/BoxAccess.h), which TMA copies. A producer warp issues the copies, so that the
// program's warps only multiply. If threads compute longer than tensor cores multiply, the
// program's first thread issues them in between. tilegpu-expand-schedule writes the kernel
// (KernelExpander.h).
//
// Loads come before all that the program does to memory before them: in front of the loop, in it,
// or, an iteration earlier, in a loop around it. That must not change the result
// (Analysis/Order/MemoryOrder.h): the arrays differ, which the launch checks, or their places in
// one array never overlap. A loop of which that cannot be known stays as it is, and so does one
// whose tiles are no boxes; a remark says why. The kernel's other loops have their schedules all
// the same.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "SchedulePlanner.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUWARPSPECIALIZEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

struct TileGPUWarpSpecializePass
    : tessera::tilegpu::impl::TileGPUWarpSpecializePassBase<TileGPUWarpSpecializePass> {
  using TileGPUWarpSpecializePassBase::TileGPUWarpSpecializePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!target || !warps) {
      module.emitError("does not say for which target and how many warps it is (")
          << kTargetAttr << ", " << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    // There is no TMA before.
    if (!target.getMachine()->hasTMA || *warps >= GPUMachine::kMaxWarps)
      return;
    PlanOptions options;
    options.stages = numStages;
    options.warps = *warps;
    options.skew = skew;
    options.mostPrograms = mostPrograms;
    options.hold = hold;
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      // A schedule that is already there stays.
      if (kernel->hasAttr(kKernelScheduleAttr))
        continue;
      if (failed(planSchedules(kernel, *target.getMachine(), TransportKind::Boxes, options,
                               {strict, refused})))
        return signalPassFailure();
    }
  }
};

} // namespace
