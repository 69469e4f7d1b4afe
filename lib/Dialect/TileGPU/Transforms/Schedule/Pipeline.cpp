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

#include "DotOrder.h"
#include "Facts/LoopSlice.h"
#include "LoadsAhead.h"
#include "Programs/LoopDots.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "Transport.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPIPELINEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

class LoopPipeliner {
public:
  LoopPipeliner(scf::ForOp loop, unsigned stages, bool isHinted, const GPUMachine &machine,
                bool skew, bool assumeApart, PlanKind kind)
      : loop(loop), wanted(stages), isHinted(isHinted), machine(machine), skew(skew),
        assumeApart(assumeApart), kind(kind),
        yield(cast<scf::YieldOp>(loop.getBody()->getTerminator())) {}

  /// Decides; nothing is changed. False if there is nothing to be done.
  bool plan();
  /// Sets the schedule on the loop.
  void propose();

private:
  RingResources getResources(int64_t registers, int64_t otherBytes) const;
  int64_t countPrograms() const;
  bool planCopies(MemoryOrder &order, AccessAnalysis &analysis);
  bool planSlots();
  /// The loads, and the buffers that are slots now.
  ReplacedOps getReplaced() const;

  scf::ForOp loop;
  unsigned wanted;
  bool isHinted;
  const GPUMachine &machine;
  bool skew; ///< whether a dot may be done ahead
  bool assumeApart;
  PlanKind kind;
  scf::YieldOp yield;

  SmallVector<PlannedCopy, 2> copies;
  unsigned slots = 0, distance = 0;
  /// The dot that is in flight while the next iteration begins.
  AsyncDotOp asyncDot;
  /// The dot that is done an iteration ahead.
  AsyncDotOp skewedDot;
  /// For a loop with more dots than these handle.
  std::optional<DotOrder> dotOrder;
  /// Loads that threads do an iteration ahead.
  SmallVector<tile::LoadOp> loadsAhead;
  /// For loads to pass the stores of earlier iterations.
  LaunchConditions conditions;
};

/// True if a loop is a recurrence: it carries a tile that is larger than the rows that it loads,
/// reduces it without a dot, and stores. An iteration waits for the one before, and so would its
/// loads. Larger rows take longer, and other programs of the SM hide their latency.
bool isRecurrence(scf::ForOp loop) {
  int64_t bytes = 0, mostElements = 0;
  bool stores = false, reduces = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isDot = tilegpu::isDot(&op);
    if (isDot || (op.getNumRegions() != 0 && !isa<tile::ReduceOp>(op)))
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (auto type = dyn_cast<RankedTensorType>(load.getType())) {
        bytes += getTileBytes(type);
        mostElements = std::max(mostElements, type.getNumElements());
      }
    stores |= isa<tile::StoreOp>(op);
    reduces |= isa<tile::ReduceOp>(op);
  }
  bool carriesState = llvm::any_of(loop.getRegionIterArgs(), [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isFloat() && type.getNumElements() > mostElements;
  });
  return carriesState && stores && reduces && bytes <= ScheduleSizes::kMaxBytesOfRecurrence;
}

} // namespace

//===----------------------------------------------------------------------===//
// How far ahead
//===----------------------------------------------------------------------===//

ReplacedOps LoopPipeliner::getReplaced() const { return getReplacedBy(copies); }

/// `registers` are those of a thread for tiles.
RingResources LoopPipeliner::getResources(int64_t registers, int64_t otherBytes) const {
  auto getTile = [](const PlannedCopy &copy) { return copy.tile; };
  return {machine, tilegpu::getNumWarps(loop).value_or(ScheduleSizes::kDefaultWarps),
          registers + RegisterBudget::kWithCopies,
          getBytesOfSlots(llvm::map_range(copies, getTile)), otherBytes};
}

/// Programs that share an SM, by what the loop carries and its rings.
int64_t LoopPipeliner::countPrograms() const {
  unsigned warps = tilegpu::getNumWarps(loop).value_or(ScheduleSizes::kDefaultWarps);
  int64_t registers = 0;
  for (Value value : scf::ForOp(loop).getRegionIterArgs())
    if (isa<RankedTensorType>(value.getType()))
      registers += getRegisters(value.getType(), warps);
  return getResources(registers, getOtherBytes(loop, getReplaced())).countPrograms(slots);
}

bool LoopPipeliner::planSlots() {
  unsigned warps = tilegpu::getNumWarps(loop).value_or(ScheduleSizes::kDefaultWarps);
  int64_t others = machine.sharedBytes - getBytesForRings(loop, machine.sharedBytes, getReplaced());
  RingResources resources =
      getResources(asyncDot ? getRegisters(asyncDot.getType(), warps) : 0, others);
  int64_t perSlot = resources.slotBytes, fitting = resources.countFitting(machine.sharedBytes);
  // The operands of a dot in flight take a slot more.
  int64_t most = wanted + (asyncDot ? 1 : 0);
  // Copies that arrive in time, unless these take the place of another program.
  if (asyncDot && !isHinted && most <= fitting)
    most = resources.getTimelySlots(most, getTimelySlots(loop, machine),
                                    resources.getSharedBytes(most));
  slots = std::clamp<int64_t>(fitting, 0, most);
  if (slots < 2) {
    emitRemark(loop, RemarkKind::LoopNotPipelined)
        << "loop is not pipelined: two stages of " << named("stage_bytes", perSlot)
        << " bytes do not fit into shared memory";
    return false;
  }
  if (slots < wanted)
    emitRemark(loop, RemarkKind::FewerStages)
        << "loop is pipelined in " << named("stages", slots) << " stages, not "
        << named("wanted", wanted) << ": a stage takes " << named("stage_bytes", perSlot)
        << " bytes of shared memory";
  if (slots < 3)
    asyncDot = skewedDot = nullptr;
  distance = slots - (asyncDot ? 2 : 1);
  return true;
}

bool LoopPipeliner::planCopies(MemoryOrder &order, AccessAnalysis &analysis) {
  bool isOfAll = isHinted || (assumeApart && isRecurrence(loop));
  if (isOfAll && !isHinted)
    wanted = std::max(wanted, ScheduleSizes::kStagesOfRecurrence);
  AsyncTransport transport(analysis, order, isOfAll, assumeApart);
  TransportPlan plan = transport.plan(loop);
  if (plan.copies.empty() && plan.refused.empty())
    return false;
  if (auto obstacle = transport.findObstacle(loop, plan, conditions)) {
    RemarkInFlight remark = emitRemark(loop, RemarkKind::LoopNotPipelined)
                            << "loop is not pipelined: " << named("reason", obstacle->why);
    for (auto [place, note] : obstacle->notes)
      remark.attachNote(place->getLoc()) << note;
    return false;
  }
  for (const auto &[load, why] : plan.refused)
    emitRemark(load, RemarkKind::LoadNotPipelined)
        << "load is not pipelined: " << named("reason", why);
  copies = std::move(plan.copies);
  // A tile that only says where others are is loaded with their addresses.
  llvm::DenseSet<Operation *> live = getLiveOps(loop, getReplaced());
  llvm::erase_if(copies,
                 [&](const PlannedCopy &copy) { return !live.contains(tile::LoadOp(copy.load)); });
  return !copies.empty();
}

bool LoopPipeliner::plan() {
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  if (!planCopies(order, analysis))
    return false;
  if (kind == PlanKind::Plain)
    return planSlots();
  ReplacedOps replaced = getReplaced();
  asyncDot = findAsyncDot(loop, replaced);
  if (skew)
    skewedDot = findSkewedDot(loop, replaced);
  loadsAhead = findLoadsAhead(loop, replaced, order);
  // Addresses of copies take the registers that late accumulators would.
  dotOrder = DotOrder::plan(loop, replaced, /*isLate=*/false);
  unsigned warps = tilegpu::getNumWarps(loop).value_or(ScheduleSizes::kDefaultWarps);
  if (skewedDot) {
    int64_t accumulator = getRegisters(skewedDot.getType(), warps);
    int64_t wanted = RegisterBudget::kWithDotAhead + getSkewedRegisters(loop, skewedDot, warps) +
                     accumulator / 2;
    int64_t available = GPUMachine::kRegisters / (GPUMachine::kWarpSize * warps);
    // If two programs fit without that, one multiplies while the other computes.
    if (wanted > std::min<int64_t>(GPUMachine::kMaxRegisters, available) ||
        2 * (wanted - accumulator) <= available)
      skewedDot = nullptr;
  }
  return planSlots();
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

void LoopPipeliner::propose() {
  MLIRContext *context = loop.getContext();
  constexpr unsigned kChannel = 0;
  auto set = [](Operation *op, NodeAttr node) { op->setAttr(kNodeAttr, node); };
  for (PlannedCopy &copy : copies) {
    if (dotOrder && !llvm::all_of(copy.load->getUsers(), [&](Operation *user) {
          return isSlotOfRing(user, copy.load, copy.tile);
        }))
      copy.buffers.push_back(readFromRing(copy.load, copy.tile, &*dotOrder));
    // The type of a tile is that of its first buffer, if nothing is said.
    Type tile = copy.tile;
    for (Operation *user : copy.load->getUsers())
      if (auto buffer = dyn_cast<LocalAllocOp>(user)) {
        if (buffer.getType() == copy.tile)
          tile = Type();
        break;
      }
    set(copy.load,
        NodeAttr::getCopy(context, -static_cast<int>(distance), /*order=*/0, kChannel, tile));
  }
  for (tile::LoadOp load : loadsAhead)
    loadAhead(load);
  if (dotOrder)
    dotOrder->propose();
  if (asyncDot) {
    set(asyncDot, NodeAttr::getMMA(context, /*stage=*/0, /*order=*/0, /*wait=*/1, /*inFlight=*/1));
    setOrder(asyncDot->getNextNode(), 1);
  }
  if (skewedDot) {
    // It begins before everything else, and is waited for behind it.
    for (Operation &op : *loop.getBody())
      if (&op != yield && &op != skewedDot && !op.hasAttr(kNodeAttr)) {
        set(&op, NodeAttr::get(context, getNodeRole(&op), /*stage=*/0, /*order=*/1));
        break;
      }
    set(skewedDot, NodeAttr::getMMA(context, /*stage=*/-1, /*order=*/0, /*wait=*/2));
  }
  auto channel = ChannelAttr::get(context, kChannel, slots, CopyKind::CpAsync);
  IterationOverlap overlap;
  overlap.programs = countPrograms();
  overlap.hasDotBeside = skewedDot != nullptr;
  overlap.ahead = distance;
  proposeSchedule(loop, channel, /*isPingPong=*/false, overlap, machine);
  addLaunchConditions(loop->getParentOfType<tile::FuncOp>(), conditions);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUPipelinePass : tessera::tilegpu::impl::TileGPUPipelinePassBase<TileGPUPipelinePass> {
  using TileGPUPipelinePassBase::TileGPUPipelinePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    TrialOptions options{strict, refused};
    for (auto function : module.getOps<tile::FuncOp>())
      if (failed(pipeline(function, **machine, options)))
        return signalPassFailure();
  }

private:
  LogicalResult pipeline(tile::FuncOp function, const GPUMachine &machine,
                         const TrialOptions &options) {
    return planLoops(function, machine, options, "asynchronous copies", getNextPlan,
                     [&](scf::ForOp loop, PlanKind plan, llvm::function_ref<void()> begin) {
                       unsigned stages = numStages;
                       auto hint = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
                       if (hint)
                         stages = std::clamp<int64_t>(hint.getInt(), 0, kMaxStages);
                       if (stages < 2)
                         return false;
                       LoopPipeliner pipeliner(loop, std::min(stages, kMaxStages), hint != nullptr,
                                               machine, skew, assumeApart, plan);
                       if (!pipeliner.plan())
                         return false;
                       begin();
                       pipeliner.propose();
                       return true;
                     });
  }
};

} // namespace
