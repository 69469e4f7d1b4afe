// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for loops whose tiles cp.async copies (tessera/Dialect/TileGPU/IR/Schedule.h): the
// operands of a later iteration's dot are copied to shared memory while this one computes.
//
// A load whose tile reaches a dot fills a ring of D slots, d iterations ahead:
//
//     for i:    wait until tile i is there
//               copy tile i + d into slot (i + d) % D, if there is one
//               compute with slot i % D
//
// If one dot's result reaches another through other computation (attention), the first has stage
// -1. It must need only copied tiles, and the SM must have no registers for a second program:
//
//     before:   S = q * K(0)
//     for i:    wait until tile i + 1 is there; copy ahead
//               begin S' = q * K(i + 1)
//               compute with S; O += P * V(i)
//               wait for S'; S = S'
//
// so that tensor cores work on S' while threads compute with S.
//
// One barrier an iteration is enough, and tilegpu-insert-barriers finds its place: behind the wait,
// before the copy. It makes tile i visible to all warps, and ensures that all have finished with
// the slot that is filled next, that of tile i + d - D. So d = D - 1 where an iteration ends with
// its dots; and d = D - 2 where a wgmma of the iteration before is still reading.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "SchedulePlanner.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPIPELINEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

struct TileGPUPipelinePass : tessera::tilegpu::impl::TileGPUPipelinePassBase<TileGPUPipelinePass> {
  using TileGPUPipelinePassBase::TileGPUPipelinePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    PlanOptions options;
    options.stages = numStages;
    options.warps = tilegpu::getNumWarps(module).value_or(options.warps);
    options.skew = skew;
    options.assumeApart = assumeApart;
    for (auto function : module.getOps<tile::FuncOp>())
      if (failed(planSchedules(function, **machine, TransportKind::AsyncCopies, options,
                               {strict, refused})))
        return signalPassFailure();
  }
};

} // namespace
