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
// It is a planner behind the choice of layouts. Each thread copies the elements that it reads, in
// the layout of the loads, so that no exchange is needed. Only then is the use of registers known.
// Tiles in slots need not be held across the reduction (tilegpu-reorder-instructions).
//
// Copies pass the stores of the iteration before. That the arrays are apart is for the launch to
// find out.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Programs/LoopDots.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "Transport.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPULOADROWSAHEADPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// One that is read, and one that is filled.
static constexpr int kSlots = 2;

namespace {

class RowPipeliner {
public:
  RowPipeliner(scf::ForOp loop, const GPUMachine &machine, unsigned warps)
      : loop(loop), machine(machine), warps(warps), order(analysis) {}

  /// Decides; nothing is changed. False if there is nothing to be done.
  bool plan();
  /// Sets the schedule on the loop, and adds the launch conditions of its assumptions.
  void propose();

private:
  int64_t countHeldBytes();
  int64_t countFreeBytes();

  scf::ForOp loop;
  const GPUMachine &machine;
  unsigned warps;
  AccessAnalysis analysis;
  MemoryOrder order;

  SmallVector<PlannedCopy, 2> copies;
  int64_t programs = 1; ///< that share an SM, by what their threads hold
  LaunchConditions conditions;
};

} // namespace

/// Bytes of registers that a thread holds in the body.
int64_t RowPipeliner::countHeldBytes() {
  OpOrder places(loop);
  return HeldBytes(loop.getBody(), places)
             .getMost(&loop.getBody()->front(), loop.getBody()->getTerminator()) +
         kTemporaryBytes;
}

/// Shared memory of a program for its rings, if as many share an SM as have registers there.
int64_t RowPipeliner::countFreeBytes() {
  return getBytesForRings(loop, machine.getSharedBytes(programs), /*replaced=*/{});
}

bool RowPipeliner::plan() {
  auto hint = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
  if (hint && hint.getInt() < kSlots)
    return false;
  RowTransport transport(analysis, order);
  TransportPlan planned = transport.plan(loop);
  if (!planned.refused.empty() || planned.copies.empty())
    return false;
  copies = planned.copies;
  int64_t bytes = 0;
  for (const PlannedCopy &copy : copies)
    bytes += copy.tile.getRing(kSlots).getNumBytes();
  int64_t heldBytes = countHeldBytes();
  programs = countPrograms(heldBytes, warps, machine);
  if (bytes > countFreeBytes())
    return false;
  // If registers would hold the rows, reading them from slots costs more than copies gain while
  // blocks of a cluster wait for each other (notes/Notebook.md).
  if (getBlockBits(loop) != 0 && heldBytes <= getMostBytesOfThread(warps))
    return false;
  return !transport.findObstacle(loop, planned, conditions);
}

void RowPipeliner::propose() {
  MLIRContext *context = loop.getContext();
  constexpr unsigned kChannel = 0;
  for (const PlannedCopy &copy : copies)
    tile::LoadOp(copy.load)->setAttr(
        kNodeAttr, NodeAttr::getCopy(context, /*stage=*/-1, /*order=*/0, kChannel, copy.tile));
  auto channel = ChannelAttr::get(context, kChannel, kSlots, CopyKind::CpAsync);
  IterationOverlap overlap;
  overlap.programs = programs;
  overlap.ahead = 1;
  proposeSchedule(loop, channel, /*isPingPong=*/false, overlap, machine);
  addLaunchConditions(loop->getParentOfType<tile::FuncOp>(), conditions);
  emitRemark(loop, RemarkKind::RowsCopiedAhead)
      << "rows are prefetched to shared memory one iteration ahead, by "
      << named("loads", copies.size()) << " loads";
}

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
    if (!warps || numStages < kSlots)
      return;
    TrialOptions options{strict, refused};
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      if (!kernel.isKernel() || !isPlain(kernel))
        continue;
      if (failed(loadAhead(kernel, **machine, *warps, options)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult loadAhead(tile::FuncOp kernel, const GPUMachine &machine, unsigned warps,
                          const TrialOptions &options) {
    // There is one plan for a loop.
    return planLoops(
        kernel, machine, options, "rows an iteration ahead",
        [](PlanKind) { return PlanKind::None; },
        [&](scf::ForOp loop, PlanKind, llvm::function_ref<void()> begin) {
          RowPipeliner pipeliner(loop, machine, warps);
          if (!pipeliner.plan())
            return false;
          begin();
          pipeliner.propose();
          return true;
        });
  }
};

} // namespace
