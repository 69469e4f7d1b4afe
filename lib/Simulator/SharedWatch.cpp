// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reports about accesses to shared memory, a block's own and, in a cluster, another one's.

#include "Machine.h"
#include "MemoryOps.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

/// "written by warp 1 lane 5 of block 1 at file:line:column", as it looks to a warp.
static std::string describeOther(const Warp &warp, const SharedConflict &conflict) {
  const Machine &machine = warp.machine;
  const SharedRecord &other = conflict.other;
  const Instr &instr = machine.getInstr(other.instr);
  std::string text = conflict.isOtherWrite ? "written by " : "read by ";
  if (conflict.isOtherRunning || other.agent >= kMaxWarps) {
    auto inlined = dyn_cast_or_null<LLVM::InlineAsmOp>(instr.op);
    bool isDot = inlined && inlined.getAsmString().contains("wgmma");
    text += conflict.isOtherRunning ? (isDot ? "a wgmma" : "a copy") : "an asynchronous copy";
  } else {
    text += "warp " + std::to_string(other.agent);
    if ((other.lanes & (other.lanes - 1)) == 0)
      text += " lane " + std::to_string(__builtin_ctz(other.lanes));
    if (other.rank != warp.cta.rank)
      text += " of block " + std::to_string(other.rank);
  }
  std::string place = describeLocation(instr.op);
  bool isRunning = conflict.isOtherRunning || other.clock == kPending;
  if (isRunning)
    text += conflict.isOtherRunning ? " that has not been waited for"
                                    : ", which has not been waited for";
  if (!place.empty())
    text += (isRunning ? ", begun at " : " at ") + place;
  return text;
}

/// Another block's memory may be touched while that block is known to run.
static void watchBlock(Warp &warp, const Instr &instr, const Accessor &who, Cta &target,
                       uint64_t address, std::string what, bool isRead) {
  auto report = [&](const char *reason) {
    int lane = who.lane < kLanes ? static_cast<int>(who.lane) : 0;
    std::string block = &target == &warp.cta
                            ? "its own block"
                            : llvm::formatv("block {0} of the cluster", target.rank).str();
    warp.machine.report(FindingKind::BlockNotRunning, instr, warp, lane, address,
                        llvm::formatv("{0} at {1} of the shared memory of {2}, which {3}", what,
                                      address, block, reason));
  };
  if (target.isDone())
    return report("may have ended by then: it does not wait for that");
  // A copy's agent belongs to the destination block, and the access was checked when the copy
  // started.
  if (&target == &warp.cta || who.rank == target.rank)
    return;
  if (who.acquired->clusterPhases == 0 && who.acquired->others.lookup(target.number).empty())
    report("may not have begun: no barrier of the cluster is before");
  target.noteVisit({&instr, &warp, who.lane < kLanes ? who.lane : 0, who.rank, who.agent, who.clock,
                    address, isRead, std::move(what)});
}

static std::string describeAccess(AccessKind kind, uint64_t size) {
  return llvm::formatv("{0} {1} bytes", isWrite(kind) ? "writes" : "reads", size);
}

/// "... at 128 of shared memory", and `text`.
static void reportAt(FindingKind kind, const Cta &target, Warp &warp, const Instr &instr,
                     const Accessor &who, uint64_t address, std::string what, std::string text) {
  std::string memory = &target == &warp.cta
                           ? "shared memory"
                           : llvm::formatv("the shared memory of block {0}", target.rank).str();
  warp.machine.report(
      kind, instr, warp, who.lane < kLanes ? static_cast<int>(who.lane) : 0, address,
      llvm::formatv("{0} at {1} of {2}{3}", what, static_cast<int64_t>(address), memory, text));
}

static void reportRace(const Cta &target, Warp &warp, const Instr &instr, const Accessor &who,
                       uint64_t address, std::string what, const SharedConflict &conflict) {
  reportAt(FindingKind::Race, target, warp, instr, who, address, std::move(what),
           ", unordered with what was " + describeOther(warp, conflict));
}

void simulator::watchBarrier(Warp &warp, const Instr &instr, unsigned lane, const Cta &target,
                             uint64_t address, const MBarrier &barrier) {
  Accessor who = warp.accessor(lane);
  if (barrier.publishedIn < warp.times.clusterPhases ||
      SharedMemory::isOrdered(barrier.maker, who, /*isOver=*/false))
    return;
  SharedConflict conflict;
  conflict.other = barrier.maker;
  conflict.isOtherWrite = true;
  reportRace(target, warp, instr, who, address, "uses the barrier", conflict);
}

void simulator::noteCopyTo(Warp &warp, const Instr &instr, unsigned lane, Cta &target,
                           uint64_t address, uint64_t bytes, uint64_t barrier) {
  std::string what = llvm::formatv("copies {0} bytes", bytes);
  if (&target != &warp.cta) {
    Accessor who = warp.accessor(lane);
    who.clock = kPending; // what counts is when it arrives
    watchBlock(warp, instr, who, target, address, what, /*isRead=*/false);
  }
  auto found = target.mbarriers.find(barrier);
  if (found == target.mbarriers.end())
    return;
  watchBarrier(warp, instr, lane, target, barrier, found->second);
  target.noteVisit({&instr, &warp, lane, target.rank, found->second.agent, found->second.getClock(),
                    address, /*isRead=*/false, std::move(what)});
}

/// True if some of the bytes belong to an mbarrier. A GPU may keep its state elsewhere, and write
/// it back at any time until `mbarrier.inval`.
static bool holdsBarrier(const Cta &target, uint64_t address, uint64_t size) {
  constexpr uint64_t barrierBytes = 8;
  auto last = target.mbarriers.lower_bound(address + size);
  return last != target.mbarriers.begin() && std::prev(last)->first + barrierBytes > address;
}

uint8_t *simulator::resolveIn(Cta &target, Warp &warp, const Instr &instr, Accessor who,
                              uint64_t address, uint64_t size, AccessKind kind,
                              const uint8_t *data) {
  SharedMemory &shared = target.shared;
  if (kind == AccessKind::AtomicRead || kind == AccessKind::AtomicWrite)
    kind = AccessKind::Atomic;
  who.instr = instr.number;
  auto report = [&](FindingKind found, std::string text) {
    reportAt(found, target, warp, instr, who, address, describeAccess(kind, size), std::move(text));
  };
  if (address + size > shared.size() || address > shared.size()) {
    report(FindingKind::OutOfBounds, llvm::formatv(", which has {0}", shared.size()));
    return nullptr;
  }
  if (LLVM_UNLIKELY(&target != &warp.cta || who.agent >= kMaxWarps))
    watchBlock(warp, instr, who, target, address, describeAccess(kind, size),
               who.isOnBarrier || !isWrite(kind));
  if (isWrite(kind) && !who.isOnBarrier && holdsBarrier(target, address, size))
    report(FindingKind::ReusedBarrier, ", where an mbarrier is that was not invalidated");
  SharedConflict conflict = shared.access(address, static_cast<unsigned>(size), kind, who, data);
  switch (conflict.kind) {
  case Conflict::None:
    break;
  case Conflict::Uninitialised:
    report(FindingKind::Uninitialised, ", which no thread has written");
    break;
  case Conflict::Race:
    reportRace(target, warp, instr, who, address, describeAccess(kind, size), conflict);
    break;
  case Conflict::Unfenced:
    report(FindingKind::UnorderedProxy,
           " asynchronously, " + describeOther(warp, conflict) + " without a fence between");
    break;
  }
  return shared.data(address);
}

uint8_t *simulator::resolveShared(Warp &warp, const Instr &instr, const Accessor &who,
                                  uint64_t address, uint64_t size, AccessKind kind,
                                  const uint8_t *data) {
  return resolveIn(warp.cta, warp, instr, who, address, size, kind, data);
}

SharedPlace simulator::findInCluster(Warp &warp, const Instr &instr, unsigned lane,
                                     uint64_t address) {
  if (address - kSharedWindow < kWindowBytes)
    address -= kSharedWindow;
  uint64_t rank = address >> kRankShift, offset = address & maskOf(kRankShift);
  if (rank == 0)
    return {&warp.cta, offset};
  const auto &ctas = warp.cta.cluster.ctas;
  if (rank <= ctas.size())
    return {ctas[rank - 1].get(), offset};
  warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), offset,
                      llvm::formatv("uses {0} of the shared memory of block {1} of the cluster, "
                                    "which has {2}",
                                    offset, static_cast<int64_t>(rank) - 1, ctas.size()));
  return {};
}
