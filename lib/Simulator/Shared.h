// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory of a program, and who touched it when.
//
// Each byte records its last write and the reads since, with their agents and times. Every warp has
// a clock that advances where it synchronises, and knows the latest acquired time of each other
// warp. An access is ordered after another one if the warp has acquired the other warp's time.
// Within a warp, it is ordered if the clock has advanced or the lane is the same. Programs of a
// cluster reach each other's memory, so each access has the program that made it, too.

#ifndef TESSERA_LIB_SIMULATOR_SHARED_H
#define TESSERA_LIB_SIMULATOR_SHARED_H

#include "Bytecode.h"
#include "Clocks.h"

#include <array>

namespace tessera::simulator {

/// The agent of an access. Lane kLanes stands for all of them at once (ldmatrix, wgmma). A copy
/// that reports to a barrier is of that barrier's agent, which may be of another program of the
/// cluster than who began it.
struct Accessor {
  unsigned agent = 0;
  unsigned rank = 0; ///< of the agent's program in the cluster
  unsigned lane = 0;
  Clock clock = 0;
  /// The knowledge of the agent that makes or began the access, and its program in the cluster.
  const Times *heard = nullptr;
  unsigned observer = 0;
  uint32_t firstProgram = 0; ///< of the cluster
  uint32_t instr = 0;        ///< its number
  bool isAsync = false;      ///< by way of the asynchronous units
  bool isPending = false;    ///< over only when it has been waited for
  /// Reads of unwritten memory are not reported: a loop may begin a dot that its last iteration
  /// drops. If it is not dropped, the result shows it.
  bool isSpeculative = false;
  /// At a barrier, whose waiters acquire it.
  bool isArrival = false;
  /// Of a barrier, whose maker and time are known.
  bool isPublished = false;
};

/// An atomic reads and writes at once, unless it says otherwise.
enum class AccessKind : uint8_t { Read, Write, Atomic, AtomicRead, AtomicWrite };

inline bool isWrite(AccessKind kind) {
  return kind != AccessKind::Read && kind != AccessKind::AtomicRead;
}

/// The error of an access to a byte.
enum class Conflict : uint8_t { None, Uninitialised, Race, Unfenced };

/// An access as shared memory remembers it.
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
  bool isOtherRunning = false; ///< a read by a copy or a wgmma that has not been waited for
};

class SharedMemory {
public:
  explicit SharedMemory(size_t size) : bytes(size), shadows(size), pendingReads(size / 16 + 1) {}

  uint64_t size() const { return bytes.size(); }
  uint8_t *data(uint64_t address) { return bytes.data() + address; }

  /// Notes an access to bytes in range, and says what is wrong with it. `data` is what a
  /// write is about to put there: writing the same twice is no conflict, as threads that hold
  /// the same elements do.
  SharedConflict access(uint64_t address, unsigned size, AccessKind kind, const Accessor &who,
                        const uint8_t *data);
  /// Ends a copy of `agent` to these bytes.
  void complete(uint64_t address, unsigned size, unsigned agent, Clock clock);
  /// An asynchronous read of 16 bytes, which no agent may overwrite before its end.
  void beginRead(uint64_t piece, uint32_t instr) {
    ++pendingReads[piece].count;
    pendingReads[piece].instr = instr;
  }
  void endRead(uint64_t piece, Accessor who);

  /// True if an earlier access comes before another one. `isOver`: it is enough that it is
  /// known to be over, though what it wrote need not be seen.
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
    uint32_t readers = 0;    ///< where those are, counted from 1
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
