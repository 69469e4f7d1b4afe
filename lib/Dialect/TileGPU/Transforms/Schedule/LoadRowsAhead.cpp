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

#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "LoadsAhead.h"
#include "Memory/OwnBuffer.h"
#include "Programs/LoopDots.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
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
  bool planLoad(tile::LoadOp load);
  int64_t countHeldBytes();
  int64_t countFreeBytes();

  scf::ForOp loop;
  const GPUMachine &machine;
  unsigned warps;
  AccessAnalysis analysis;
  MemoryOrder order;

  SmallVector<std::pair<tile::LoadOp, MemDescType>> loads;
  int64_t programs = 1; ///< that share an SM, by what their threads hold
  LaunchConditions conditions;
};

} // namespace

bool RowPipeliner::planLoad(tile::LoadOp load) {
  if (!canLoadAhead(load) || (load.getOther() && !isZero(load.getOther())))
    return false;
  LoopSlice address(loop);
  for (Value operand : {load.getPtr(), load.getMask()})
    if (operand && !address.add(operand).empty())
      return false;
  MemDescType buffer = getOwnBuffer(load.getType());
  if (!buffer || getCopyBytes(load, buffer, analysis) < GPUMachine::kMaxAccessBytes)
    return false;
  loads.push_back({load, buffer});
  return true;
}

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
  if ((hint && hint.getInt() < kSlots) ||
      !llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::ReduceOp>))
    return false;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) && !planLoad(load))
      return false;
  int64_t bytes = 0;
  for (auto [load, buffer] : loads)
    bytes += buffer.getRing(kSlots).getNumBytes();
  int64_t heldBytes = countHeldBytes();
  programs = countPrograms(heldBytes, warps, machine);
  if (loads.empty() || bytes > countFreeBytes())
    return false;
  // If registers would hold the rows, reading them from slots costs more than copies gain while
  // blocks of a cluster wait for each other (notes/Notebook.md).
  if (getBlockBits(loop) != 0 && heldBytes <= getMostBytesOfThread(warps))
    return false;
  Operation *obstacle = nullptr;
  std::optional<LaunchConditions> found = findConditionsInLoop(
      loop, llvm::to_vector(llvm::make_first_range(loads)), order, analysis, obstacle);
  if (found)
    conditions = std::move(*found);
  return found.has_value();
}

void RowPipeliner::propose() {
  MLIRContext *context = loop.getContext();
  constexpr unsigned kChannel = 0;
  for (auto [load, buffer] : loads)
    load->setAttr(kNodeAttr,
                  NodeAttr::getCopy(context, /*stage=*/-1, /*order=*/0, kChannel, buffer));
  auto channel = ChannelAttr::get(context, kChannel, kSlots, CopyKind::CpAsync);
  IterationOverlap overlap;
  overlap.programs = programs;
  overlap.ahead = 1;
  proposeSchedule(loop, channel, /*isPingPong=*/false, overlap, machine);
  addLaunchConditions(loop->getParentOfType<tile::FuncOp>(), conditions);
  emitRemark(loop, RemarkKind::RowsCopiedAhead)
      << "rows are prefetched to shared memory one iteration ahead, by "
      << named("loads", loads.size()) << " loads";
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
