// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory of a program, with its accesses, their agents and times.
//
// For each byte, this records the last write and the reads since, with their agents and times.
// Every warp has a clock that advances when it synchronises, and the latest acquired time of each
// other warp. An access is ordered after another warp's if the warp has acquired that warp's time.
// Within a warp, it is ordered if the clock has advanced or the lane is the same. Programs of a
// cluster access each other's memory, so each access has its program, too.
//
// Two accesses, one of them a write, are a race unless one is ordered after the other, both are
// atomic, or both write the same value. Files: GlobalShadow.h has the rules of global memory.

#ifndef TESSERA_LIB_SIMULATOR_SHARED_H
#define TESSERA_LIB_SIMULATOR_SHARED_H

#include "Bytecode.h"
#include "Clocks.h"

#include <array>

namespace tessera::simulator {

/// The agent of an access. Lane kLanes means all lanes at once (ldmatrix, wgmma). If a copy reports
/// to a barrier, its agent is that barrier's, which may be in another program of the cluster than
/// the lane that started it.
struct Accessor {
  unsigned agent = 0;
  unsigned rank = 0; ///< of the agent's program in the cluster
  unsigned lane = 0;
  Clock clock = 0;
  /// The times that the agent has acquired which makes or started the access, and its program in
  /// the cluster.
  const Times *acquired = nullptr;
  unsigned observer = 0;
  uint32_t firstProgram = 0; ///< of the cluster
  uint32_t instr = 0;        ///< its number
  bool isAsync = false;      ///< by the asynchronous units
  bool isPending = false;    ///< ends only when a wait for it has
  /// Reads of unwritten memory are not reported: a loop may begin a dot that its last iteration
  /// drops. If it is not dropped, the result shows it.
  bool isSpeculative = false;
  /// An instruction on an mbarrier. Waiters acquire what arrivals release.
  bool isOnBarrier = false;
  /// An access to an mbarrier that was published, so that its initialisation and time are known.
  bool isPublished = false;
};

/// Atomic reads and writes at once; the other two do one of them.
enum class AccessKind : uint8_t { Read, Write, Atomic, AtomicRead, AtomicWrite };

inline bool isWrite(AccessKind kind) {
  return kind != AccessKind::Read && kind != AccessKind::AtomicRead;
}

/// The error of an access to a byte.
enum class Conflict : uint8_t { None, Uninitialised, Race, Unfenced };

/// A recorded access.
struct SharedRecord {
  Clock clock = 0;
  Lanes lanes = 0; ///< 0: there was none
  uint32_t agent : 6;
  uint32_t rank : 4;
  uint32_t instr : 22;

  SharedRecord() : agent(0), rank(0), instr(0) {}
  SharedRecord(Clock clock, Lanes lanes, const Accessor &who)
      : clock(clock), lanes(lanes), agent(who.agent), rank(who.rank), instr(who.instr) {}

  bool isOf(const Accessor &who) const { return agent == who.agent && rank == who.rank; }
};
static_assert(kAgents <= 64 && kMaxClusterSize <= 16);

struct SharedConflict {
  Conflict kind = Conflict::None;
  SharedRecord other;
  bool isOtherWrite = false;
  bool isOtherRunning = false; ///< an unfinished read by a copy or a wgmma
};

class SharedMemory {
public:
  explicit SharedMemory(size_t size) : bytes(size), shadows(size), pendingReads(size / 16 + 1) {}

  uint64_t size() const { return bytes.size(); }
  uint8_t *data(uint64_t address) { return bytes.data() + address; }

  /// Records an access to bytes in range, and returns its conflict. `data` has the bytes that a
  /// write will store. Writing the same value twice is no conflict, since threads may hold copies
  /// of an element.
  SharedConflict access(uint64_t address, unsigned size, AccessKind kind, const Accessor &who,
                        const uint8_t *data);
  /// Ends a copy of `agent` to these bytes.
  void complete(uint64_t address, unsigned size, unsigned agent, Clock clock);
  /// Starts an asynchronous read of 16 bytes, which no agent may overwrite before its end.
  void beginRead(uint64_t piece, uint32_t instr) {
    ++pendingReads[piece].count;
    pendingReads[piece].instr = instr;
  }
  void endRead(uint64_t piece, Accessor who);

  /// True if an earlier access is ordered before another one. With `isOver`, it suffices that it
  /// has ended, even if its bytes need not be visible.
  static bool isOrdered(const SharedRecord &earlier, const Accessor &who, bool isOver);

private:
  /// The contents of unwritten memory: a NaN in every type of floats.
  static constexpr uint8_t kRubbish = 0xff;

  struct Shadow {
    SharedRecord write, read;
    bool isInitialised = false;
    bool isAtomic = false;   ///< the last write was
    bool isAsync = false;    ///< the last write was
    bool hasReaders = false; ///< more than `read`
    uint32_t readers = 0;    ///< index of further readers, from 1
  };

  struct PendingRead {
    uint32_t count = 0;
    uint32_t instr = 0; ///< of the last
  };

  static bool isWriteOrdered(const Shadow &shadow, const Accessor &who, bool isWrite);
  void noteRead(Shadow &shadow, const Accessor &who, Lanes lanes);

  std::vector<uint8_t> bytes;
  std::vector<Shadow> shadows;
  std::vector<std::vector<SharedRecord>> readers; ///< of bytes that several warps have read
  std::vector<PendingRead> pendingReads;          ///< of each 16 bytes
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_SHARED_H
