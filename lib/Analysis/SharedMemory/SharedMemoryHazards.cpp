// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/SharedMemoryHazards.h"

#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/RegionFlow.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

bool tessera::meetsInside(Operation *op) {
  auto scratch = dyn_cast<tilegpu::ScratchOpInterface>(op);
  if (!scratch || scratch.getScratchBytes() == 0)
    return false;
  auto convert = dyn_cast<tilegpu::ConvertLayoutOp>(op);
  if (!convert)
    return true;
  Conversion conversion = classify(tilegpu::getLayout(convert.getSource().getType()),
                                   tilegpu::getLayout(convert.getType()));
  return conversion.kind >= ConversionKind::Block;
}

/// Notes the layouts of a conversion in which no warp accesses another one's elements. A conversion
/// in rounds reuses memory, and so has none.
static void noteWarps(Operation *op, SharedMemoryAccess &access) {
  auto convert = dyn_cast<tilegpu::ConvertLayoutOp>(op);
  if (!convert || meetsInside(op) || tilegpu::getScratchRounds(op) != 1)
    return;
  const LinearLayout &source = tilegpu::getLayout(convert.getSource().getType());
  if (llvm::is_contained(source.columns(HwDim::Warp), uint64_t(0)))
    return;
  access.warpsFrom = convert.getSource().getType();
  access.warpsTo = convert.getType();
}

/// True if each warpgroup has a part of a buffer that no other warp accesses.
static bool isOfGroups(tilegpu::LocalAllocOp buffer) {
  return llvm::any_of(buffer->getUsers(), [](Operation *user) {
    auto store = dyn_cast<tilegpu::TMAStoreOp>(user);
    return store && store.getGroups();
  });
}

/// The slot of a ring that a store goes to, where it is a constant.
static std::optional<int64_t> getStoredSlot(Operation *op, tilegpu::LocalAllocOp ring) {
  auto store = dyn_cast<tilegpu::LocalStoreOp>(op);
  auto index = store ? store.getBuffer().getDefiningOp<tilegpu::MemDescIndexOp>() : nullptr;
  APInt slot;
  if (!index || index.getRing() != ring.getResult() ||
      !matchPattern(index.getSlot(), m_ConstantInt(&slot)))
    return std::nullopt;
  return slot.getSExtValue();
}

/// The barriers in memory that an op uses; null for other ops. Its effects name no buffer, since
/// nothing moves past it.
static Value getMBarrier(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<tilegpu::MBarrierInitOp, tilegpu::MBarrierWaitOp, tilegpu::MBarrierArriveOp,
            tilegpu::MBarrierExpectOp>([](auto use) { return use.getBarrier(); })
      .Default([](Operation *) { return Value(); });
}

SmallVector<SharedMemoryAccess> SharedMemoryHazards::getAccesses(Operation *op) const {
  SmallVector<SharedMemoryAccess> accesses;
  if (auto scratch = dyn_cast<tilegpu::ScratchOpInterface>(op))
    if (int64_t bytes = scratch.getScratchBytes()) {
      int64_t offset = getSharedOffset(op, tilegpu::kScratchOffsetAttr);
      accesses.push_back({offset, offset + bytes, /*isWrite=*/true, op});
      noteWarps(op, accesses.back());
    }
  if (auto call = dyn_cast<CallOpInterface>(op))
    if (int64_t bytes = frameBytes(call))
      accesses.push_back({0, bytes, /*isWrite=*/true, op});
  if (Value barrier = getMBarrier(op))
    for (Operation *alloc : alias.getBuffers(barrier)) {
      auto buffer = cast<tilegpu::LocalAllocOp>(alloc);
      int64_t offset = getSharedOffset(buffer, kSharedOffsetAttr);
      int64_t end = offset + cast<tilegpu::MemDescType>(buffer.getType()).getNumBytes();
      accesses.push_back({offset, end, /*isWrite=*/isa<tilegpu::MBarrierInitOp>(op), op});
    }
  for (auto [buffer, isWrite] : alias.getUses(op)) {
    int64_t offset = getSharedOffset(buffer, kSharedOffsetAttr);
    tilegpu::MemDescType type = buffer.getType();
    int64_t bytes = type.getNumBytes();
    if (std::optional<int64_t> slot = getStoredSlot(op, buffer)) {
      bytes = type.getSlotBytes();
      offset += *slot * bytes;
    }
    accesses.push_back(
        {offset, offset + bytes, isWrite, op, type.isRing() ? buffer.getOperation() : nullptr});
    if (isOfGroups(buffer))
      accesses.back().ofGroups = buffer;
  }
  return accesses;
}

/// The pending accesses after a barrier.
static void meet(std::set<SharedMemoryAccess> &pending) {
  for (auto access = pending.begin(); access != pending.end();)
    access = access->isInFlight ? std::next(access) : pending.erase(access);
}

/// The same, where each warpgroup has met.
static void meetInGroups(std::set<SharedMemoryAccess> &pending) {
  std::set<SharedMemoryAccess> met;
  for (SharedMemoryAccess access : pending) {
    access.hasGroupMet |= access.ofGroups && !access.isInFlight;
    met.insert(access);
  }
  pending = std::move(met);
}

/// Work of a kind.
using IsWork = function_ref<bool(Operation *)>;

static SmallVector<SharedMemoryAccess> getInFlight(const std::set<SharedMemoryAccess> &pending,
                                                   IsWork isWork) {
  SmallVector<SharedMemoryAccess> inFlight;
  llvm::copy_if(pending, std::back_inserter(inFlight), [&](const SharedMemoryAccess &access) {
    return access.isInFlight && isWork(access.op);
  });
  return inFlight;
}

/// Ends copies by threads at a wait. Which of them have landed is not counted: any may have, the
/// newest may not.
static void land(tilegpu::GroupWaitOpInterface wait, std::set<SharedMemoryAccess> &pending) {
  auto isWork = [&](Operation *op) { return wait.isFor(op); };
  for (SharedMemoryAccess access : getInFlight(pending, isWork)) {
    if (wait.getPendingGroups() == 0)
      pending.erase(access);
    access.isInFlight = false;
    pending.insert(access);
  }
}

/// A wait leaves fewer groups than this in flight. Not of a GPU: more are one set for the analysis.
constexpr unsigned kMaxCountedGroups = 8;

/// Counts one group more behind the reads in flight of stores by TMA, or of dots.
static void commit(IsWork isWork, std::set<SharedMemoryAccess> &pending) {
  for (SharedMemoryAccess access : getInFlight(pending, isWork)) {
    pending.erase(access);
    access.groups = std::min(access.groups + 1, kMaxCountedGroups);
    pending.insert(access);
  }
}

/// Ends the reads of stores by TMA, or of dots, but for the newest groups.
static void landGroups(IsWork isWork, unsigned newest, std::set<SharedMemoryAccess> &pending) {
  for (SharedMemoryAccess access : getInFlight(pending, isWork)) {
    if (access.groups <= newest)
      continue;
    pending.erase(access);
    access.isInFlight = false;
    access.groups = 0;
    pending.insert(access);
  }
}

/// True for work of an op's kind, which ends in the order in which it began.
static bool isSameWork(Operation *op, Operation *work) { return op->getName() == work->getName(); }

/// Begins a dot, a group of its own, or does all of it, which ends the earlier ones, too.
static void begin(tilegpu::AsyncOpInterface work, ArrayRef<SharedMemoryAccess> accesses,
                  std::set<SharedMemoryAccess> &pending) {
  auto isWork = [&](Operation *op) { return isSameWork(op, work); };
  if (!work.isInFlight())
    return landGroups(isWork, 0, pending);
  commit(isWork, pending);
  for (SharedMemoryAccess access : accesses) {
    access.isInFlight = access.isOfBegunDot = true;
    access.groups = 1;
    pending.insert(access);
  }
}

/// The barrier that has been found to be needed before an op, if there is one.
void SharedMemoryHazards::meetBefore(Operation *op, Pending &pending) const {
  auto found = hasBarrier.find(op);
  if (found == hasBarrier.end())
    return;
  const SharedMemoryHazard &hazard = barriers[found->second].second;
  if (hazard.isWithinGroup())
    return meetInGroups(pending);
  if (hazard.isOfDotInFlight())
    landGroups([&](Operation *other) { return isSameWork(other, hazard.earlier.op); }, 0, pending);
  meet(pending);
}

void SharedMemoryHazards::visitOp(Operation *op, Pending &pending) {
  auto barrier = dyn_cast<tilegpu::BarrierOp>(op);
  if (barrier && barrier.getOfGroup())
    return meetInGroups(pending);
  if (isa<tilegpu::BarrierOp, tile::BarrierOp>(op))
    return meet(pending);
  if (isa<tilegpu::AsyncWaitOp>(op))
    return land(cast<tilegpu::GroupWaitOpInterface>(op), pending);
  if (auto wait = dyn_cast<tilegpu::GroupWaitOpInterface>(op))
    return landGroups([&](Operation *work) { return wait.isFor(work); }, wait.getPendingGroups(),
                      pending);
  if (isa<tilegpu::TMAStoreCommitOp>(op))
    return commit([](Operation *work) { return isa<tilegpu::TMAStoreOp>(work); }, pending);
  // Barriers in memory order the accesses of a thread that runs beside the others, and the values
  // that it receives.
  if (tilegpu::isInPartition(op) ||
      isa<tilegpu::LocalStoreScalarOp, tilegpu::LocalLoadScalarOp>(op))
    return;
  SmallVector<SharedMemoryAccess> accesses = getAccesses(op);
  meetBefore(op, pending);
  auto check = [&](const SharedMemoryAccess &earlier, const SharedMemoryAccess &later) {
    if (!earlier.conflictsWith(later))
      return;
    SharedMemoryHazard hazard{earlier, later};
    if (earlier.isInFlight && !hazard.isOfDotInFlight()) {
      if (missesWait.insert(op).second)
        missingWaits.push_back(hazard);
      return;
    }
    auto [found, isNew] = hasBarrier.try_emplace(op, barriers.size());
    if (isNew)
      barriers.push_back({op, hazard});
    else if (!hazard.isWithinGroup() && !barriers[found->second].second.isOfDotInFlight())
      barriers[found->second].second = hazard;
  };
  for (const SharedMemoryAccess &later : accesses)
    for (const SharedMemoryAccess &earlier : pending)
      check(earlier, later);
  meetBefore(op, pending);
  // Its uses are behind a barrier, or behind the entry of a warp_specialize, where all warps meet.
  if (isa<tilegpu::MBarrierInitOp>(op))
    return;
  auto work = dyn_cast<tilegpu::AsyncOpInterface>(op);
  bool isOfGroup = work && work.getCompletion() == tilegpu::AsyncCompletion::Group;
  if (isOfGroup && work.isGroup())
    begin(work, accesses, pending);
  else if (isOfGroup)
    for (SharedMemoryAccess &access : accesses)
      access.isInFlight = true;
  if (meetsInside(op)) {
    // The barrier inside orders pending accesses; then the scratch is read.
    meet(pending);
    for (SharedMemoryAccess &access : accesses)
      access.isWrite = false;
  }
  pending.insert(accesses.begin(), accesses.end());
}

SharedMemoryHazards::SharedMemoryHazards(FunctionOpInterface function,
                                         const SharedMemoryAlias &alias,
                                         function_ref<int64_t(CallOpInterface)> frameBytes)
    : alias(alias), frameBytes(frameBytes) {
  if (function.isExternal())
    return;
  RegionFlow<Pending> flow([&](Operation *op, Pending &pending) { visitOp(op, pending); });
  flow.visit(function.getFunctionBody().front(), {});
}
