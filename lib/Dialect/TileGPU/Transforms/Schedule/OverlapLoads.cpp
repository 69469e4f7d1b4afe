// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that only loads and computes waits for memory in each iteration: a thread has only the
// loads of one iteration in flight. Unrolled bodies issue all loads of several iterations before
// the first result is needed. This pass chooses the loops, while an iteration's loads are easy to
// see; tile-unroll-loops then unrolls them.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUOVERLAPLOADSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Bytes that an iteration loads into tiles; none if it does anything that waits for all warps
/// or writes, so that iterations would not overlap.
static std::optional<int64_t> countLoadedBytes(scf::ForOp loop) {
  int64_t bytes = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (mayWriteMemory(load))
        return std::nullopt;
      if (auto type = dyn_cast<RankedTensorType>(load.getType()))
        bytes += getTileBytes(type);
      continue;
    }
    if (!isPure(&op) || op.getNumRegions() != 0 || op.hasTrait<tile::Collective>())
      return std::nullopt;
  }
  return bytes;
}

namespace {

struct TileGPUOverlapLoadsPass
    : tessera::tilegpu::impl::TileGPUOverlapLoadsPassBase<TileGPUOverlapLoadsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<unsigned> warps = requireNumWarps(module);
    if (failed(warps))
      return signalPassFailure();
    module.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::kUnrollFactorAttr))
        return;
      std::optional<int64_t> bytes = countLoadedBytes(loop);
      if (!bytes || *bytes == 0)
        return;
      int64_t ofThread = std::max<int64_t>(1, *bytes / (GPUMachine::kWarpSize * *warps));
      int64_t iterations = ScheduleSizes::kMaxIterationsInFlight;
      while (iterations > 1 && iterations * ofThread > ScheduleSizes::kBytesInFlight)
        iterations /= 2;
      if (iterations < 2)
        return;
      loop->setAttr(tile::kUnrollFactorAttr,
                    IntegerAttr::get(IntegerType::get(&getContext(), 32), iterations));
    });
  }
};

} // namespace
