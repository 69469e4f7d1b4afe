// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The accesses of global memory in one launch, with their agents and times.
//
// Each piece of 4 bytes remembers its last write and reads since: the program, the agent
// and its clock (Clocks.h), the lanes, and the instruction. Two accesses, one of them a
// write, are a race unless
//   - a thread makes both, one after the other;
//   - its program orders them: a barrier, of the warp between lanes, of the program between
//     warps, or a wait for the copy that makes one of them;
//   - atomics do: what was released was acquired, at a scope that reaches both programs;
//   - both are atomic;
//   - the write does not change what is there: who looks sees the same in any order;
//   - both are writes of one store of one program, which leaves one of its values;
//   - the read is one that takes part in synchronisation (volatile, relaxed, acquire): it
//     sees one value or the other, and knows that.
// So a race is found in whatever order programs and warps took their turns. A copy's access
// is not over until the copy has been waited for.
//
// Memory is watched in pages, made where it is touched. A page in which smaller elements are
// touched has smaller pieces.

#ifndef TESSERA_LIB_SIMULATOR_GLOBALSHADOW_H
#define TESSERA_LIB_SIMULATOR_GLOBALSHADOW_H

#include "Bytecode.h"
#include "Shared.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace tessera::simulator {

/// An access as memory remembers it.
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
  /// The lane that makes it or began it, its warp and its program.
  uint32_t program = 0;
  unsigned warp = 0;
  Lanes lane = 0;
  /// Since when lanes of the warp have not been brought together.
  Clock lanesMet = 0;
  const Times *heard = nullptr;
  uint32_t execution = 0;      ///< how often the warp has done this instruction
  bool isAsync = false;        ///< by way of the asynchronous units
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
  /// `sites`: of each instruction, a number that instructions of one place in the source
  /// share. `land(address)`: has pending copies to that address write what they have.
  GlobalShadow(std::vector<uint32_t> sites, unsigned clusterSize,
               std::function<void(uint64_t address)> land)
      : sites(std::move(sites)), clusterSize(clusterSize), land(std::move(land)) {}

  /// These bytes hold nothing until they are written.
  void setUnwritten(uint64_t begin, uint64_t end) { unwritten.push_back({begin, end}); }

  /// Notes an access, and says what is wrong with it first. `data` is what a plain write is
  /// about to put there.
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
    kSilent = 8,     ///< no write has changed anything so far
    kReaders = 16,   ///< there were more than `read`
    kUnwritten = 32, ///< holds nothing
    kOfCluster = 64  ///< kNarrow: for its cluster
  };
  struct Piece {
    GlobalAccess write, read;
    uint32_t execution = 0; ///< of the write
    uint32_t readers = 0;   ///< where more are, counted from 1
    uint8_t flags = 0;
  };
  static constexpr unsigned kPageBits = 10;
  struct Page {
    unsigned shift = 2; ///< of a piece's size
    std::vector<Piece> pieces;
  };
  /// Readers that are remembered of a piece. If several programs read, any other one races with a
  /// write, so few of them suffice.
  static constexpr size_t kMostReaders = 8;
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
