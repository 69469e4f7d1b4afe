// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Shared.h"

#include "llvm/ADT/STLExtras.h"

using namespace tessera::simulator;

static Lanes lanesOf(const Accessor &who) {
  return who.lane >= kLanes ? kAllLanes : Lanes(1) << who.lane;
}

bool SharedMemory::isOrdered(const SharedRecord &earlier, const Accessor &who, bool isOver) {
  if (earlier.lanes == 0)
    return true;
  if (earlier.clock == kPending)
    return false;
  if (earlier.rank != who.observer) {
    Acquired acquired = who.acquired->others.lookup(who.firstProgram + earlier.rank, earlier.agent);
    return earlier.clock <= (isOver ? std::max(acquired.clock, acquired.reads) : acquired.clock);
  }
  if (!earlier.isOf(who) || who.agent >= kMaxWarps)
    return earlier.clock <= who.acquired->of[earlier.agent];
  return earlier.clock < who.clock || (earlier.lanes & ~lanesOf(who)) == 0;
}

/// Several lanes may have written the same; to each of them it is its own write. A copy's write may
/// be overwritten once the copy is known to be complete.
bool SharedMemory::isWriteOrdered(const Shadow &shadow, const Accessor &who, bool isWrite) {
  const SharedRecord &write = shadow.write;
  return isOrdered(write, who, /*isOver=*/isWrite && write.agent >= kMaxWarps) ||
         (who.isPublished && !shadow.isAtomic) ||
         (!shadow.isAtomic && write.isOf(who) && write.clock == who.clock &&
          (lanesOf(who) & ~write.lanes) == 0);
}

void SharedMemory::noteRead(Shadow &shadow, const Accessor &who, Lanes lanes) {
  SharedRecord now(who.clock, lanes, who);
  SharedRecord &read = shadow.read;
  if (read.lanes == 0 || read.isOf(who)) {
    if (read.lanes != 0 && read.clock == who.clock)
      now.lanes |= read.lanes;
    read = now;
    return;
  }
  if (!shadow.hasReaders && isOrdered(read, who, /*isOver=*/true)) {
    read = now;
    return;
  }
  if (shadow.readers == 0) {
    readers.emplace_back();
    shadow.readers = static_cast<uint32_t>(readers.size());
  }
  std::vector<SharedRecord> &others = readers[shadow.readers - 1];
  if (!shadow.hasReaders)
    others.clear();
  shadow.hasReaders = true;
  for (SharedRecord &other : others)
    if (other.isOf(who)) {
      if (other.clock == who.clock)
        now.lanes |= other.lanes;
      other = now;
      return;
    }
  others.push_back(now);
}

/// The time up to which the writer's writes are visible to the asynchronous units.
static Clock getFenced(const SharedRecord &write, const Accessor &who) {
  if (write.rank == who.observer)
    return who.acquired->fenced[write.agent];
  return who.acquired->others.lookup(who.firstProgram + write.rank, write.agent).fencedShared;
}

SharedConflict SharedMemory::access(uint64_t address, unsigned size, AccessKind kind,
                                    const Accessor &who, const uint8_t *data) {
  SharedConflict conflict;
  auto report = [&](Conflict found, const SharedRecord &other, bool isOtherWrite) {
    if (conflict.kind == Conflict::None)
      conflict = {found, other, isOtherWrite, /*isOtherRunning=*/false};
  };
  Lanes lanes = lanesOf(who);
  for (uint64_t at = address; at < address + size; ++at) {
    Shadow &shadow = shadows[at];
    bool bothAtomic = kind == AccessKind::Atomic && shadow.isAtomic;
    bool isSame = data && shadow.write.lanes && shadow.write.clock != kPending &&
                  bytes[at] == data[at - address];
    if (!bothAtomic && !isSame && !isWriteOrdered(shadow, who, kind == AccessKind::Write))
      report(Conflict::Race, shadow.write, /*isOtherWrite=*/true);
    if (kind != AccessKind::Write && !shadow.isInitialised && !who.isSpeculative) {
      report(Conflict::Uninitialised, {}, /*isOtherWrite=*/false);
      shadow.isInitialised = true; // said once
    }
    if (who.isAsync && kind == AccessKind::Read && shadow.write.lanes && !shadow.isAsync &&
        shadow.write.clock > getFenced(shadow.write, who))
      report(Conflict::Unfenced, shadow.write, /*isOtherWrite=*/true);
    if (kind == AccessKind::Read) {
      noteRead(shadow, who, lanes);
      continue;
    }
    if (const PendingRead &pending = pendingReads[at / 16];
        pending.count && conflict.kind == Conflict::None) {
      conflict.kind = Conflict::Race;
      conflict.other.instr = pending.instr;
      conflict.isOtherRunning = true;
    }
    if (!isOrdered(shadow.read, who, /*isOver=*/true))
      report(Conflict::Race, shadow.read, /*isOtherWrite=*/false);
    if (shadow.hasReaders)
      for (const SharedRecord &reader : readers[shadow.readers - 1])
        if (!isOrdered(reader, who, /*isOver=*/true))
          report(Conflict::Race, reader, /*isOtherWrite=*/false);
    Lanes writers = lanes;
    if ((bothAtomic || isSame) && shadow.write.isOf(who) && shadow.write.clock == who.clock)
      writers |= shadow.write.lanes;
    shadow.write = SharedRecord(who.isPending ? kPending : who.clock, writers, who);
    shadow.read = {};
    shadow.hasReaders = false;
    shadow.isInitialised = true;
    shadow.isAtomic = kind == AccessKind::Atomic;
    shadow.isAsync = who.isAsync;
  }
  return conflict;
}

void SharedMemory::complete(uint64_t address, unsigned size, unsigned agent, Clock clock) {
  for (uint64_t at = address; at < address + size; ++at)
    if (shadows[at].write.clock == kPending && shadows[at].write.agent == agent)
      shadows[at].write.clock = clock;
}

void SharedMemory::endRead(uint64_t piece, Accessor who) {
  --pendingReads[piece].count;
  who.instr = pendingReads[piece].instr;
  for (uint64_t at = piece * 16; at < piece * 16 + 16; ++at)
    noteRead(shadows[at], who, lanesOf(who));
}
