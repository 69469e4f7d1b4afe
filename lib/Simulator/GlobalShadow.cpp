// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GlobalShadow.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

GlobalShadow::Page &GlobalShadow::getPage(uint64_t number) {
  auto &[known, page] = recent[number % kRecent];
  if (page && known == number)
    return *page;
  std::unique_ptr<Page> &found = pages[number];
  if (!found) {
    found = std::make_unique<Page>();
    found->pieces.resize(size_t(1) << (kPageBits - found->shift));
    uint64_t first = number << kPageBits, last = first + (uint64_t(1) << kPageBits);
    for (auto [begin, end] : unwritten) {
      begin = std::max(begin, first);
      end = std::min(end, last);
      if (begin >= end)
        continue;
      if ((begin | end) & 3)
        refine(*found, 0);
      for (uint64_t at = begin; at < end; at += uint64_t(1) << found->shift)
        found->pieces[(at - first) >> found->shift].flags |= kUnwritten;
    }
  }
  known = number;
  page = found.get();
  return *page;
}

/// Pieces become several that remember the same.
void GlobalShadow::refine(Page &page, unsigned shift) {
  if (page.shift <= shift)
    return;
  std::vector<Piece> pieces;
  pieces.reserve(page.pieces.size() << (page.shift - shift));
  for (const Piece &piece : page.pieces)
    for (unsigned i = 0; i < 1u << (page.shift - shift); ++i) {
      pieces.push_back(piece);
      if (i == 0 || !piece.readers)
        continue;
      readers.push_back(Readers(readers[piece.readers - 1]));
      pieces.back().readers = static_cast<uint32_t>(readers.size());
    }
  page.pieces = std::move(pieces);
  page.shift = shift;
}

template <typename F> void GlobalShadow::forEachPiece(uint64_t address, uint64_t size, F &&f) {
  uint64_t end = address + size;
  while (address < end) {
    uint64_t number = address >> kPageBits, base = number << kPageBits;
    uint64_t last = std::min(end, base + (uint64_t(1) << kPageBits));
    Page &page = getPage(number);
    uint64_t odd = (address | last) & 3;
    if (odd)
      refine(page, odd & 1 ? 0 : 1);
    uint64_t step = uint64_t(1) << page.shift;
    Piece *piece = &page.pieces[(address - base) >> page.shift];
    for (; address < last; address += step)
      f(*piece++, address, step);
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

bool GlobalShadow::isOrdered(const GlobalAccess &earlier, const GlobalAccessor &who) {
  if (earlier.lanes == 0)
    return true;
  if (earlier.clock == kPending)
    return false;
  if (earlier.program != who.program)
    return earlier.clock <= who.acquired->others.lookup(earlier.program, earlier.agent).clock;
  if (earlier.agent != who.warp)
    return earlier.clock <= who.acquired->of[earlier.agent];
  return (earlier.lanes & ~who.lane) == 0 || earlier.clock < who.lanesMet;
}

/// Several lanes may have written the same; to each of them it is its own write.
bool GlobalShadow::isWriteOrdered(const Piece &piece, const GlobalAccessor &who) {
  const GlobalAccess &write = piece.write;
  return isOrdered(write, who) ||
         (!(piece.flags & kAtomic) && write.program == who.program && write.agent == who.warp &&
          write.clock != kPending && (who.lane & ~write.lanes) == 0);
}

bool GlobalShadow::isOfOneStore(const Piece &piece, const GlobalAccessor &who) const {
  const GlobalAccess &write = piece.write;
  return write.program == who.program && piece.execution == who.execution &&
         sites[write.instr] == sites[who.access.instr];
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void GlobalShadow::noteRead(Piece &piece, const GlobalAccessor &who) {
  GlobalAccess now = who.access;
  auto isOfSame = [&](const GlobalAccess &other) {
    return other.program == now.program && other.agent == now.agent &&
           (other.clock == kPending) == (now.clock == kPending);
  };
  // Lanes that have not met since are all still there.
  auto replace = [&](GlobalAccess &other) {
    if (other.lanes != 0 && (other.clock == now.clock || other.clock >= who.lanesMet)) {
      // A report names one read: the one of all these lanes, if there is one.
      if ((now.lanes & ~other.lanes) == 0)
        now.instr = other.instr;
      now.lanes |= other.lanes;
    }
    other = now;
  };
  GlobalAccess &read = piece.read;
  if (read.lanes == 0 || isOfSame(read))
    return replace(read);
  if (!(piece.flags & kReaders)) {
    if (isOrdered(read, who)) {
      read = now;
      return;
    }
    if (piece.readers == 0) {
      readers.emplace_back();
      piece.readers = static_cast<uint32_t>(readers.size());
    }
    readers[piece.readers - 1].clear();
    piece.flags |= kReaders;
  }
  Readers &others = readers[piece.readers - 1];
  for (GlobalAccess &other : others)
    if (isOfSame(other))
      return replace(other);
  if (others.size() == kMaxReaders)
    others.erase(others.begin());
  others.push_back(now);
}

GlobalConflict GlobalShadow::access(uint64_t address, uint64_t size, AccessKind kind,
                                    const GlobalAccessor &who, const uint8_t *data) {
  GlobalConflict conflict;
  auto report = [&](Conflict found, uint64_t at, const GlobalAccess &with, bool isWrite) {
    if (conflict.kind == Conflict::None)
      conflict = {found, at, with, isWrite};
  };
  forEachPiece(address, size, [&](Piece &piece, uint64_t at, uint64_t bytes) {
    auto isSame = [&] {
      return data && !(piece.flags & kUnwritten) &&
             std::memcmp(reinterpret_cast<const void *>(at), data + (at - address), bytes) == 0;
    };
    if (kind == AccessKind::Read) {
      if (piece.flags & kUnwritten)
        report(Conflict::Uninitialised, at, {}, false);
      if (piece.write.lanes) {
        const GlobalAccess &write = piece.write;
        if (!(piece.flags & kSilent) && !isWriteOrdered(piece, who))
          report(Conflict::Race, at, write, true);
        else if (who.isAsync && !(piece.flags & kAsync)) {
          Clock fenced = write.program == who.program
                             ? who.acquired->fencedGlobal[write.agent]
                             : who.acquired->others.lookup(write.program, write.agent).fenced;
          if (write.clock > fenced)
            report(Conflict::Unfenced, at, write, true);
        }
      }
      noteRead(piece, who);
      return;
    }
    bool isAtomic = kind != AccessKind::Write;
    Reach other = !(piece.flags & kNarrow)   ? Reach::Device
                  : piece.flags & kOfCluster ? Reach::Cluster
                                             : Reach::Program;
    bool bothAtomic =
        isAtomic && piece.flags & kAtomic &&
        reaches(std::min(other, who.reach), piece.write.program, who.program, clusterSize);
    if (kind == AccessKind::Atomic && piece.flags & kUnwritten)
      report(Conflict::Uninitialised, at, {}, false);
    if (piece.write.clock == kPending && piece.write.lanes)
      land(at);
    bool same = isSame();
    if (!bothAtomic && !same && piece.write.lanes && !isWriteOrdered(piece, who) &&
        (isAtomic || !isOfOneStore(piece, who)))
      report(Conflict::Race, at, piece.write, true);
    if (!same) {
      if (!isOrdered(piece.read, who))
        report(Conflict::Race, at, piece.read, false);
      if (piece.flags & kReaders)
        for (const GlobalAccess &reader : readers[piece.readers - 1])
          if (!isOrdered(reader, who))
            report(Conflict::Race, at, reader, false);
    }
    bool isSilent = same && (!piece.write.lanes || piece.flags & kSilent);
    GlobalAccess now = who.access;
    if ((bothAtomic || same) && piece.write.program == now.program &&
        piece.write.agent == now.agent && piece.write.clock == now.clock)
      now.lanes |= piece.write.lanes;
    piece.write = now;
    piece.execution = who.execution;
    piece.read = {};
    piece.flags = (isAtomic ? kAtomic : 0) |
                  (isAtomic && who.reach != Reach::Device ? kNarrow : 0) |
                  (isAtomic && who.reach == Reach::Cluster ? kOfCluster : 0) |
                  (who.isAsync ? kAsync : 0) | (isSilent ? kSilent : 0);
  });
  return conflict;
}

void GlobalShadow::completeReads(uint64_t address, uint64_t size, const GlobalAccess &now) {
  auto complete = [&](GlobalAccess &read) {
    if (read.clock == kPending && read.program == now.program && read.agent == now.agent)
      read.clock = now.clock;
  };
  forEachPiece(address, size, [&](Piece &piece, uint64_t, uint64_t) {
    complete(piece.read);
    if (piece.flags & kReaders)
      llvm::for_each(readers[piece.readers - 1], complete);
  });
}

void GlobalShadow::completeWrites(uint64_t address, uint64_t size, const GlobalAccess &now) {
  forEachPiece(address, size, [&](Piece &piece, uint64_t, uint64_t) {
    GlobalAccess &write = piece.write;
    if (write.clock == kPending && write.program == now.program && write.agent == now.agent &&
        write.lanes == now.lanes && write.instr == now.instr)
      write.clock = now.clock;
  });
}
