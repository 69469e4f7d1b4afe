// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reports about accesses to global memory, and the order of programs by atomics.

#include "Machine.h"
#include "MemoryOps.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

static std::string describeElement(const Machine &machine, uint64_t address) {
  const MemoryRegion *region = machine.findRegion(address);
  if (!region)
    return llvm::formatv("the byte at {0:x}", address);
  return llvm::formatv("element {0} of '{1}'", (address - region->begin) / region->elementBytes,
                       region->name);
}

/// "which warp 1 lane 5 wrote at file:line:column, with no barrier between"
static std::string describeOther(const Warp &warp, const GlobalConflict &conflict) {
  const GlobalAccess &other = conflict.other;
  const Machine &machine = warp.machine;
  std::string place = describeLocation(machine.getInstr(other.instr).op);
  if (!place.empty())
    place = " at " + place;
  bool isOwn = other.program == warp.cta.number;
  bool isNear = reaches(Reach::Cluster, other.program, warp.cta.number, machine.clusterSize);
  std::string program =
      isOwn ? ""
      : isNear
          ? llvm::formatv(" of block {0} of the cluster", other.program % machine.clusterSize).str()
          : " of " + machine.describeBlock(other.program);
  if (other.clock == kPending)
    return llvm::formatv("which a copy{0} that was begun{1} may still {2}: "
                         "no thread has waited for its end",
                         program, place, conflict.isOtherWrite ? "write" : "read");
  const char *verb = conflict.isOtherWrite ? "wrote" : "read";
  std::string who = "a copy";
  if (other.agent < kMaxWarps) {
    who = "warp " + std::to_string(other.agent);
    Lanes lanes = other.lanes;
    if ((lanes & (lanes - 1)) == 0)
      who += " lane " + std::to_string(__builtin_ctz(lanes));
  }
  const char *reason = !isOwn && isNear           ? "nothing orders the two blocks"
                       : !isOwn                   ? "nothing orders the two programs"
                       : other.agent == warp.id   ? "no barrier of the warp is between"
                       : other.agent >= kMaxWarps ? "no thread has waited for its end"
                                                  : "no barrier is between";
  return llvm::formatv("which {0}{1} {2}{3}: {4}", who, program, verb, place, reason);
}

void simulator::watchGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                            uint64_t size, AccessKind kind, const GlobalAccessor &who,
                            const uint8_t *data) {
  Machine &machine = warp.machine;
  GlobalConflict conflict = machine.shadow->access(address, size, kind, who, data);
  if (LLVM_LIKELY(conflict.kind == Conflict::None))
    return;
  FindingKind found = conflict.kind == Conflict::Race       ? FindingKind::Race
                      : conflict.kind == Conflict::Unfenced ? FindingKind::UnorderedProxy
                                                            : FindingKind::Uninitialised;
  if (machine.reportAgain(found, instr))
    return;
  bool isCopy = who.isAsync || who.access.clock == kPending;
  std::string message =
      llvm::formatv("{0}{1} {2}, ", isCopy ? "begins a copy that " : "",
                    isWrite(kind) ? "writes" : "reads", describeElement(machine, conflict.address));
  if (found == FindingKind::Uninitialised)
    message += "which no thread has written";
  else
    message += describeOther(warp, conflict);
  if (found == FindingKind::UnorderedProxy)
    message.replace(message.rfind(": "), std::string::npos, ": no fence of the proxies is between");
  machine.report(found, instr, warp, static_cast<int>(lane), conflict.address, std::move(message));
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

void simulator::watchAtomic(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                            uint64_t size, AccessKind kind, const WarpAccess &access) {
  if (!warp.machine.shadow)
    return;
  // An atomic read may intentionally race with writes.
  if (kind == AccessKind::AtomicRead)
    return;
  GlobalAccessor who = warp.globalAccessor(instr, lane);
  who.reach = access.reach;
  watchGlobal(warp, instr, lane, address, size, kind, who, nullptr);
}

static Releases &getReleases(Warp &warp, Space space) {
  return space == Space::Shared ? warp.cta.cluster.releases : warp.machine.releases;
}

void simulator::acquireAt(Warp &warp, Space space, uint64_t address, const WarpAccess &access) {
  Releases &releases = getReleases(warp, space);
  auto found = releases.find(address);
  if (space == Space::Local || found == releases.end())
    return;
  const std::shared_ptr<const Release> &release = found->second;
  unsigned clusterSize = warp.machine.clusterSize;
  if (!reaches(access.reach, release->program, warp.cta.number, clusterSize))
    return;
  if (access.order == Ordering::Acquire || access.order == Ordering::AcquireRelease)
    return acquire(warp.times, warp.cta.number, *release, clusterSize);
  // A fence may come.
  constexpr size_t kMaxSeen = 1024;
  if (warp.seen.size() == kMaxSeen)
    warp.seen.erase(warp.seen.begin());
  if (!llvm::is_contained(warp.seen, release))
    warp.seen.push_back(release);
}

std::shared_ptr<const Release> simulator::makeRelease(Warp &warp, Reach reach) {
  auto release = std::make_shared<Release>();
  release->program = warp.cta.number;
  release->agent = warp.id;
  release->clock = warp.times.of[warp.id];
  release->reach = reach;
  release->times = warp.times;
  return release;
}

void simulator::releaseAt(Warp &warp, Space space, uint64_t address, bool isUpdate,
                          const std::shared_ptr<const Release> &release) {
  if (space == Space::Local)
    return;
  Releases &releases = getReleases(warp, space);
  auto found = releases.find(address);
  if (found == releases.end()) {
    if (release)
      releases[address] = release;
    return;
  }
  // A reader of an update's result has also read the value before.
  if (!isUpdate) {
    if (release)
      found->second = release;
    else
      releases.erase(found);
    return;
  }
  if (!release || found->second == release)
    return;
  const Release &before = *found->second;
  bool isKnown =
      before.program == release->program
          ? release->times.of[before.agent] >= before.clock
          : release->times.others.lookup(before.program, before.agent).clock >= before.clock;
  if (isKnown && !before.isMixed) {
    found->second = release;
    return;
  }
  auto mixed = std::make_shared<Release>(*release);
  mixed->isMixed = true;
  acquire(mixed->times, mixed->program, before, warp.machine.clusterSize);
  found->second = std::move(mixed);
}

void simulator::runFence(Warp &warp, const Instr &instr, Lanes) {
  for (const std::shared_ptr<const Release> &release : warp.seen)
    acquire(warp.times, warp.cta.number, *release, warp.machine.clusterSize);
  warp.seen.clear();
  warp.fenced = makeRelease(warp, static_cast<Reach>(instr.immediate));
  ++warp.times.of[warp.id];
}
