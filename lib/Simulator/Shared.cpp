// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Shared.h"

#include "llvm/ADT/STLExtras.h"

using namespace tessera::simulator;

static Lanes lanesOf(const Accessor &who) {
  return who.lane >= kLanes ? kAllLanes : Lanes(1) << who.lane;
}

bool SharedMemory::isOrdered(const Access &earlier, const Accessor &who) {
  if (earlier.lanes == 0)
    return true;
  if (earlier.clock == kPending)
    return false;
  if (earlier.agent != who.agent || who.agent >= kMaxWarps)
    return earlier.clock <= who.heard->of[earlier.agent];
  return earlier.clock < who.clock || (earlier.lanes & ~lanesOf(who)) == 0;
}

/// Several lanes may have written the same; to each of them it is its own write.
bool SharedMemory::isWriteOrdered(const Shadow &shadow, const Accessor &who) {
  const Access &write = shadow.write;
  return isOrdered(write, who) || (!shadow.isAtomic && write.agent == who.agent &&
                                   write.clock == who.clock && (lanesOf(who) & ~write.lanes) == 0);
}

void SharedMemory::noteRead(Shadow &shadow, const Accessor &who, Lanes lanes) {
  Access now{who.clock, lanes, static_cast<uint8_t>(who.agent)};
  Access &read = shadow.read;
  if (read.lanes == 0 || read.agent == who.agent) {
    if (read.lanes != 0 && read.clock == who.clock)
      now.lanes |= read.lanes;
    read = now;
    return;
  }
  if (!shadow.hasReaders && isOrdered(read, who)) {
    read = now;
    return;
  }
  if (shadow.readers == 0) {
    readers.emplace_back();
    shadow.readers = static_cast<uint32_t>(readers.size());
  }
  std::vector<Access> &others = readers[shadow.readers - 1];
  if (!shadow.hasReaders)
    others.clear();
  shadow.hasReaders = true;
  for (Access &other : others)
    if (other.agent == who.agent) {
      if (other.clock == who.clock)
        now.lanes |= other.lanes;
      other = now;
      return;
    }
  others.push_back(now);
}

static std::string describe(const char *what, unsigned agent, Lanes lanes) {
  if (agent >= kMaxWarps)
    return std::string(what) + " an asynchronous copy";
  std::string text = std::string(what) + " warp " + std::to_string(agent);
  if ((lanes & (lanes - 1)) == 0)
    text += " lane " + std::to_string(__builtin_ctz(lanes));
  return text;
}

Conflict SharedMemory::access(uint64_t address, unsigned size, AccessKind kind, const Accessor &who,
                              const uint8_t *data, std::string *other) {
  Conflict conflict = Conflict::None;
  auto report = [&](Conflict found, const char *what, const Access &with) {
    if (conflict != Conflict::None)
      return;
    conflict = found;
    *other = describe(what, with.agent, with.lanes);
    if (with.clock == kPending)
      *other += ", which has not been waited for";
  };
  Lanes lanes = lanesOf(who);
  for (uint64_t at = address; at < address + size; ++at) {
    Shadow &shadow = shadows[at];
    bool bothAtomic = kind == AccessKind::Atomic && shadow.isAtomic;
    bool isSame = data && shadow.write.lanes && shadow.write.clock != kPending &&
                  bytes[at] == data[at - address];
    if (!bothAtomic && !isSame && !isWriteOrdered(shadow, who))
      report(Conflict::Race, "written by", shadow.write);
    if (kind != AccessKind::Write && !shadow.isInitialised && !who.isSpeculative) {
      if (conflict == Conflict::None)
        conflict = Conflict::Uninitialised;
      shadow.isInitialised = true; // said once
    }
    if (who.isAsync && kind == AccessKind::Read && shadow.write.lanes && !shadow.isAsync &&
        shadow.write.clock > who.heard->fenced[shadow.write.agent])
      report(Conflict::Unfenced, "written by", shadow.write);
    if (kind == AccessKind::Read) {
      noteRead(shadow, who, lanes);
      continue;
    }
    if (pendingReads[at / 16] && conflict == Conflict::None) {
      conflict = Conflict::Race;
      *other = "read by a wgmma or a copy that has not been waited for";
    }
    if (!isOrdered(shadow.read, who))
      report(Conflict::Race, "read by", shadow.read);
    if (shadow.hasReaders)
      for (const Access &reader : readers[shadow.readers - 1])
        if (!isOrdered(reader, who))
          report(Conflict::Race, "read by", reader);
    Lanes writers = lanes;
    if ((bothAtomic || isSame) && shadow.write.agent == who.agent &&
        shadow.write.clock == who.clock)
      writers |= shadow.write.lanes;
    shadow.write = {who.isPending ? kPending : who.clock, writers, static_cast<uint8_t>(who.agent)};
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

void SharedMemory::endRead(uint64_t piece, const Accessor &who) {
  --pendingReads[piece];
  for (uint64_t at = piece * 16; at < piece * 16 + 16; ++at)
    noteRead(shadows[at], who, lanesOf(who));
}
