// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The accesses of global memory in one launch, with their agents and times.
//
// For each piece of 4 bytes, this records the last write and the reads since: the program, the
// agent and its clock (Clocks.h), the lanes, and the instruction. Two accesses, one of them a
// write, are a race unless
//
//     - one thread makes both, one after the other;
//     - their program orders them: by a barrier of the warp between lanes, by a barrier of the
//       program between warps, or by a wait for the copy that makes one of them;
//     - atomics order them: one releases and the other acquires, at a scope with both programs;
//     - both are atomic, at scopes with both programs;
//     - the write does not change the value, so that any order reads the same;
//     - both are writes of one store of one program, one of whose values remains;
//     - the read takes part in synchronisation (volatile, relaxed, acquire), and expects either
//       value.
//
// So a race is found in any order of programs and warps. A copy's access ends only when the
// program has waited for the copy.
//
// Memory is recorded in pages, which are created on first access. If accesses to a page have
// smaller elements, its pieces are smaller, too.

#ifndef TESSERA_LIB_SIMULATOR_GLOBALSHADOW_H
#define TESSERA_LIB_SIMULATOR_GLOBALSHADOW_H

#include "Bytecode.h"
#include "Shared.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace tessera::simulator {

/// A recorded access.
struct GlobalAccess {
  uint32_t program = 0;
  Clock clock = 0;
  Lanes lanes = 0; ///< 0: there was none
  uint32_t agent : 8;
  uint32_t instr : 24;

  GlobalAccess() : agent(0), instr(0) {}
};

/// The agent of an access, and its kind.
struct GlobalAccessor {
  /// The recorded accesses. A copy's agent is not the warp that began it.
  GlobalAccess access;
  /// The lane that makes or started it, its warp and its program.
  uint32_t program = 0;
  unsigned warp = 0;
  Lanes lane = 0;
  /// The time of the last synchronisation of the warp's lanes.
  Clock lanesMet = 0;
  const Times *acquired = nullptr;
  uint32_t execution = 0;      ///< counts the executions of this instruction by the warp
  bool isAsync = false;        ///< by the asynchronous units
  Reach reach = Reach::Device; ///< of an atomic
};

struct GlobalConflict {
  Conflict kind = Conflict::None;
  uint64_t address = 0;
  GlobalAccess other;
  bool isOtherWrite = false;
};

class GlobalShadow {
public:
  /// `sites` has a number for each instruction, which instructions with the same source location
  /// share. `land(address)` makes pending copies to that address write their data.
  GlobalShadow(std::vector<uint32_t> sites, unsigned clusterSize,
               std::function<void(uint64_t address)> land)
      : sites(std::move(sites)), clusterSize(clusterSize), land(std::move(land)) {}

  /// These bytes have no value until they are written.
  void setUnwritten(uint64_t begin, uint64_t end) { unwritten.push_back({begin, end}); }

  /// Records an access, and returns its first conflict. `data` has the bytes that a plain write
  /// will store.
  GlobalConflict access(uint64_t address, uint64_t size, AccessKind kind, const GlobalAccessor &who,
                        const uint8_t *data);
  /// Pending accesses of an instruction of that program and agent have ended.
  void completeReads(uint64_t address, uint64_t size, const GlobalAccess &now);
  void completeWrites(uint64_t address, uint64_t size, const GlobalAccess &now);

private:
  enum Flag : uint8_t {
    kAtomic = 1,     ///< the last write was
    kNarrow = 2,     ///< ... for its own program, or its cluster
    kAsync = 4,      ///< ... by the asynchronous units
    kSilent = 8,     ///< no write has changed the value so far
    kReaders = 16,   ///< there are more readers than `read`
    kUnwritten = 32, ///< has no value
    kOfCluster = 64  ///< kNarrow: for its cluster
  };
  struct Piece {
    GlobalAccess write, read;
    uint32_t execution = 0; ///< of the write
    uint32_t readers = 0;   ///< index of further readers, from 1
    uint8_t flags = 0;
  };
  static constexpr unsigned kPageBits = 10;
  struct Page {
    unsigned shift = 2; ///< of a piece's size
    std::vector<Piece> pieces;
  };
  /// The most readers that are recorded for a piece. If several programs read, a write races with
  /// any other one, so few suffice.
  static constexpr size_t kMaxReaders = 8;
  using Readers = llvm::SmallVector<GlobalAccess, 2>;

  Page &getPage(uint64_t number);
  void refine(Page &page, unsigned shift);
  /// Calls `f(piece, its address)` for each piece of the bytes.
  template <typename F> void forEachPiece(uint64_t address, uint64_t size, F &&f);
  static bool isOrdered(const GlobalAccess &earlier, const GlobalAccessor &who);
  static bool isWriteOrdered(const Piece &piece, const GlobalAccessor &who);
  bool isOfOneStore(const Piece &piece, const GlobalAccessor &who) const;
  void noteRead(Piece &piece, const GlobalAccessor &who);

  std::vector<uint32_t> sites;
  unsigned clusterSize;
  std::function<void(uint64_t)> land;
  std::vector<std::pair<uint64_t, uint64_t>> unwritten;
  llvm::DenseMap<uint64_t, std::unique_ptr<Page>> pages;
  static constexpr size_t kRecent = 64;
  std::array<std::pair<uint64_t, Page *>, kRecent> recent{};
  std::vector<Readers> readers;
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_GLOBALSHADOW_H
