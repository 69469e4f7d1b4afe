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
#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "LoadsAhead.h"
#include "Programs/LoopDots.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPIPELINEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// A load that is done ahead.
struct PipelinedLoad {
  tile::LoadOp load;
  MemDescType slot;
  /// Buffers that the loaded tile is stored to, of the type of a slot.
  SmallVector<LocalAllocOp> buffers;
};

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
  void planLoad(tile::LoadOp load, AccessAnalysis &analysis);
  std::optional<MemDescType> getSlotType(tile::LoadOp load, AccessAnalysis &analysis);
  RingResources getResources(int64_t registers, int64_t otherBytes) const;
  int64_t countPrograms() const;
  bool planSlots();
  Operation *findObstacle(MemoryOrder &order, AccessAnalysis &analysis);
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

  SmallVector<PipelinedLoad> loads;
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
// Which loads
//===----------------------------------------------------------------------===//

/// A slot for the tile: that of a dot if it goes to one as it is, else rows as they come
/// from memory.
std::optional<MemDescType> LoopPipeliner::getSlotType(tile::LoadOp load, AccessAnalysis &analysis) {
  for (Operation *user : load->getUsers())
    if (auto buffer = dyn_cast<LocalAllocOp>(user))
      if (getCopyBytes(load, buffer.getType(), analysis) >= GPUMachine::kMinAsyncCopyBytes)
        return buffer.getType();
  auto type = cast<RankedTensorType>(load.getType());
  AccessPattern pattern = getAccessPattern(load, analysis);
  unsigned fast = pattern.getFastDim(type.getShape());
  LinearLayout memory(type.getShape());
  int64_t bits = 8 * getElementBytes(type.getElementType());
  if (type.getRank() == 2) {
    memory = fragmentMemory(type.getShape(), fast, bits);
  } else {
    for (bool isFast : {true, false})
      for (unsigned bit = 0; bit < memory.elementBits(); ++bit)
        if ((memory.dimMask(fast) >> bit & 1) == isFast)
          memory.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  }
  auto slot = MemDescType::get(load.getContext(), type.getShape(), type.getElementType(),
                               LayoutAttr::get(load.getContext(), memory));
  if (getCopyBytes(load, slot, analysis) >= GPUMachine::kMinAsyncCopyBytes)
    return slot;
  return std::nullopt;
}

void LoopPipeliner::planLoad(tile::LoadOp load, AccessAnalysis &analysis) {
  auto refuse = [&](const std::string &why) {
    emitRemark(load, RemarkKind::LoadNotPipelined)
        << "load is not pipelined: " << named("reason", why);
  };
  if (load.getCache() == tile::CacheModifier::CV)
    return refuse("its cache modifier forbids a copy");
  if (load.getOther() && !isZero(load.getOther()))
    return refuse("its `other` is not 0");
  LoopSlice ofLoad(loop);
  for (Value operand : {load.getPtr(), load.getMask()})
    if (operand)
      if (std::string why = ofLoad.add(operand); !why.empty())
        return refuse(why);
  std::optional<MemDescType> slot = getSlotType(load, analysis);
  if (!slot)
    return refuse("no " + std::to_string(GPUMachine::kMinAsyncCopyBytes) +
                  " bytes of it are known to be contiguous, aligned and under one mask");
  PipelinedLoad &planned = loads.emplace_back();
  planned.load = load;
  planned.slot = *slot;
  for (Operation *user : load->getUsers())
    if (isSlotOfRing(user, load, *slot))
      planned.buffers.push_back(cast<LocalAllocOp>(user));
}

//===----------------------------------------------------------------------===//
// How far ahead
//===----------------------------------------------------------------------===//

ReplacedOps LoopPipeliner::getReplaced() const { return getReplacedBy(loads); }

/// `registers` are those of a thread for tiles.
RingResources LoopPipeliner::getResources(int64_t registers, int64_t otherBytes) const {
  auto getSlot = [](const PipelinedLoad &planned) { return planned.slot; };
  return {machine, tilegpu::getNumWarps(loop).value_or(ScheduleSizes::kDefaultWarps),
          registers + RegisterBudget::kWithCopies, getBytesOfSlots(llvm::map_range(loads, getSlot)),
          otherBytes};
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

/// An op that copies may not pass, if no launch condition allows it.
Operation *LoopPipeliner::findObstacle(MemoryOrder &order, AccessAnalysis &analysis) {
  auto kernel = loop->getParentOfType<tile::FuncOp>();
  Operation *obstacle = findObstacleInLoop(loop, order);
  if (!obstacle || !assumeApart || !kernel.isKernel())
    return obstacle;
  SmallVector<tile::LoadOp> all;
  loop.getBody()->walk([&](tile::LoadOp load) { all.push_back(load); });
  std::optional<LaunchConditions> found =
      findConditionsInLoop(loop, all, order, analysis, obstacle);
  if (!found)
    return obstacle;
  conditions = std::move(*found);
  return nullptr;
}

bool LoopPipeliner::plan() {
  SmallVector<tile::LoadOp> candidates;
  bool isOfAll = isHinted || (assumeApart && isRecurrence(loop));
  if (isOfAll && !isHinted)
    wanted = std::max(wanted, ScheduleSizes::kStagesOfRecurrence);
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) &&
        (isOfAll || reachesDot(load.getResult(), loop.getBody())))
      candidates.push_back(load);
  if (candidates.empty())
    return false;
  auto refuse = [&](const Twine &why, Operation *place) {
    RemarkInFlight remark = emitRemark(loop, RemarkKind::LoopNotPipelined)
                            << "loop is not pipelined: " << named("reason", why.str());
    if (place)
      remark.attachNote(place->getLoc()) << "here";
    return false;
  };
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  if (Operation *obstacle = findObstacle(order, analysis))
    return refuse("it writes to memory, or orders accesses to it", obstacle);
  if (!getSmallStep(loop))
    return refuse("its step is not a small constant", nullptr);
  for (tile::LoadOp load : candidates)
    planLoad(load, analysis);
  // A tile that only says where others are is loaded with their addresses.
  llvm::DenseSet<Operation *> live = getLiveOps(loop, getReplaced());
  llvm::erase_if(loads, [&](const PipelinedLoad &planned) {
    return !live.contains(tile::LoadOp(planned.load));
  });
  if (loads.empty())
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
  for (PipelinedLoad &planned : loads) {
    if (dotOrder && !llvm::all_of(planned.load->getUsers(), [&](Operation *user) {
          return isSlotOfRing(user, planned.load, planned.slot);
        }))
      planned.buffers.push_back(readFromRing(planned.load, planned.slot, &*dotOrder));
    // The type of a tile is that of its first buffer, if nothing is said.
    Type tile = planned.slot;
    for (Operation *user : planned.load->getUsers())
      if (auto buffer = dyn_cast<LocalAllocOp>(user)) {
        if (buffer.getType() == planned.slot)
          tile = Type();
        break;
      }
    set(planned.load,
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
