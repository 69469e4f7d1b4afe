// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs the bytecode: the machine with its resident programs, a program's warps, and
// the frames of a warp.
//
// Lanes of a warp go their own ways at a branch. Of the groups that result, the one that
// stands at the earliest block runs, blocks being in an order in which all of a loop lies
// before what follows it; so groups meet again as early as they can.

#ifndef TESSERA_LIB_SIMULATOR_MACHINE_H
#define TESSERA_LIB_SIMULATOR_MACHINE_H

#include "Bytecode.h"
#include "GlobalShadow.h"
#include "Shared.h"
#include "tessera/Simulator/Simulator.h"

#include "llvm/ADT/DenseMap.h"

#include <random>

namespace tessera::simulator {

class Machine;
class Cta;

/// Addresses that are no global memory: windows on the memory of the program and of the
/// thread.
constexpr uint64_t kSharedWindow = uint64_t(1) << 60;
constexpr uint64_t kLocalWindow = uint64_t(1) << 61;
constexpr uint64_t kWindowBytes = uint64_t(1) << 32;

struct Frame {
  const Code *code = nullptr;
  uint32_t firstRow = 0;
  uint32_t pc = 0;
  Lanes active = 0, live = 0;
  uint32_t where[kLanes]; ///< the next instruction of lanes that are not active
  const Instr *call = nullptr;
};

/// A copy of a thread to shared memory that may not have arrived yet, nor have been read.
struct PendingCopy {
  const Instr *instr = nullptr;
  uint64_t address = 0;
  unsigned size = 0;
  const uint8_t *source = nullptr; ///< null if nothing is read
  unsigned filled = 0;             ///< bytes that are read; the rest are zeros
  bool isRead = false, isDone = false;
  std::array<uint8_t, 16> data;

  void read();
};

/// A tensor map: its address is what the kernel has.
struct TensorMap {
  cuda::TensorMapShape shape;
  unsigned elementBytes = 1, swizzleBytes = 0;
};

/// A copy of a box from shared memory to global, which goes on beside the program: it reads
/// at some time, and writes at some time after.
struct BulkStore {
  struct Row {
    uint64_t target = 0, offset = 0; ///< in global memory, and in `data`
    unsigned bytes = 0;
  };
  const Instr *instr = nullptr;
  std::vector<Row> rows;
  std::vector<uint64_t> pieces; ///< of 16 bytes of shared memory that are read
  std::function<void(std::vector<uint8_t> &data)> gather;
  std::vector<uint8_t> data;
  bool isRead = false, isDone = false;

  void read();
  void write();
};

/// Copies of a thread from shared memory, one after another.
struct LaneStores {
  struct Group {
    std::vector<std::shared_ptr<BulkStore>> stores;
    bool isRead = false; ///< it has been waited for that
  };
  Group open; ///< what is not in a group yet
  std::deque<Group> groups;
  const Instr *last = nullptr;

  bool isRead() const {
    return open.stores.empty() &&
           llvm::all_of(groups, [](const Group &group) { return group.isRead; });
  }
};

struct LaneCopies {
  std::vector<PendingCopy> open; ///< not in a group yet
  std::deque<std::vector<PendingCopy>> groups;
};

enum class WarpState : uint8_t { Runnable, AtBarrier, Done };

class Warp {
public:
  Warp(Machine &machine, Cta &cta, unsigned id, const Code &kernel, llvm::ArrayRef<uint64_t> args);

  /// Runs until it is blocked or done, or `accesses` accesses to memory are made.
  void run(unsigned accesses);

  const uint64_t *in(const Instr &instr, unsigned number) const {
    return row(instr.operands[number]);
  }
  uint64_t *out(const Instr &instr, unsigned number = 0) {
    return rows[frames.back().firstRow + instr.results[number]].lane;
  }
  const uint64_t *row(Register reg) const {
    return reg >= 0 ? rows[frames.back().firstRow + reg].lane : constants[~reg].lane;
  }
  unsigned threadOf(unsigned lane) const { return id * kLanes + lane; }
  Accessor accessor(unsigned lane) const { return {id, lane, times.of[id], &times}; }
  GlobalAccessor globalAccessor(const Instr &instr, unsigned lane) const;
  /// What comes after is told apart from what came before.
  void tick() { ++times.of[id]; }
  /// All lanes have come to one place, and know of each other's accesses to memory.
  void meetLanes() {
    tick();
    lanesMet = times.of[id];
  }
  /// The number of this execution of an instruction.
  uint32_t countExecution(const Instr &instr);
  uint8_t *local(unsigned lane, uint64_t offset) {
    return localMemory.data() + lane * localBytes + offset;
  }
  /// Reports unless all 32 lanes take part.
  bool checkWhole(const Instr &instr, Lanes lanes, const char *what);

  Machine &machine;
  Cta &cta;
  const unsigned id;
  WarpState state = WarpState::Runnable;
  bool isSpinning = false;        ///< its last try to wait has failed
  bool repeats = false;           ///< it is to do the same instruction again
  const Instr *waitsAt = nullptr; ///< the barrier, or what it spins at
  const char *waitsFor = "";      ///< what it spins for
  unsigned barrier = 0;
  Times times;
  Clock lanesMet = 0;
  /// What a later relaxed write releases, and what a later fence acquires.
  std::shared_ptr<const Release> fenced;
  std::vector<std::shared_ptr<const Release>> seen;
  uint64_t localBytes = 0;
  std::array<LaneCopies, kLanes> copies;
  std::array<LaneStores, kLanes> stores;
  /// Registers that a thread has.
  unsigned registers = 0;
  /// Pieces of 16 bytes of shared memory that dots are being made of.
  std::vector<uint64_t> openReads;
  std::deque<std::vector<uint64_t>> readGroups;

private:
  void pushFrame(const Code &code, Lanes lanes, const Instr *call);
  void takeBranch(const Instr &instr);
  void follow(const Edge &edge, Lanes lanes);
  void regroup(Frame &frame);
  void returnFrom(const Instr &instr);

  const std::deque<Row> &constants;
  std::vector<Row> rows;
  llvm::SmallVector<Frame, 2> frames;
  std::vector<Row> scratch;
  std::vector<uint8_t> localMemory;
  std::vector<uint32_t> executions;
};

struct Barrier {
  unsigned arrived = 0; ///< warps
  unsigned expected = 0;
  std::vector<Warp *> waiting;
  Times times;
};

/// A barrier in shared memory. Its phase is over when nobody and no byte is missing.
struct MBarrier {
  int64_t expected = 0, pending = 0; ///< arrivals
  int64_t bytes = 0;                 ///< that copies have yet to bring
  uint64_t phase = 0;                ///< how many are over
  unsigned agent = 0;                ///< that stands for the copies that report to it
  Clock firstClock = 0;              ///< of that, at its first phase
  Times times;                       ///< of who has arrived in this one
  Times released;                    ///< of who arrived in the last one

  /// When what arrives in this phase is over.
  Clock getClock() const { return firstClock + static_cast<Clock>(phase) + 1; }
};

/// A copy that reports to a barrier, and has not arrived.
struct BulkCopy {
  Warp *warp = nullptr;
  const Instr *instr = nullptr;
  uint64_t address = 0, barrier = 0;
  Times times;
  std::vector<uint8_t> data;
  /// Reads global memory; null once it has.
  std::function<void(std::vector<uint8_t> &data)> gather;

  void read();
};

/// A program: a block of threads.
class Cta {
public:
  Cta(Machine &machine, std::array<int32_t, 3> id, uint32_t number, unsigned numWarps,
      uint64_t sharedBytes)
      : machine(machine), id(id), number(number), shared(sharedBytes), numWarps(numWarps) {}

  /// A warp comes to a barrier of `expected` warps, and waits unless it only arrives.
  void arrive(Warp &warp, unsigned barrier, unsigned expected, bool waits);
  bool isDone() const;
  /// Goes on to the next phase if this one is over.
  void completePhase(MBarrier &barrier);
  /// Ends a bulk copy.
  void arriveBulk(size_t number);
  /// Begins one: it may read and arrive at once.
  void beginBulk(BulkCopy copy);
  void beginStore(std::shared_ptr<BulkStore> store);
  /// The asynchronous units go on, or do not.
  void stepEngines(bool isStuck);

  Machine &machine;
  std::array<int32_t, 3> id;
  uint32_t number; ///< in the grid
  SharedMemory shared;
  unsigned numWarps;
  std::vector<std::unique_ptr<Warp>> warps;
  std::map<unsigned, Barrier> barriers;
  std::map<uint64_t, MBarrier> mbarriers;
  unsigned numBarriers = 0; ///< that have been made
  std::vector<BulkCopy> bulkCopies;
  std::vector<std::shared_ptr<BulkStore>> bulkStores;
  unsigned freeRegisters = 0; ///< that threads gave up
  unsigned idleRuns = 0;      ///< of warps, one after another, that only waited
};

class Machine {
public:
  Machine(const Image &image, const Code &kernel, std::array<int32_t, 3> grid, unsigned numWarps,
          unsigned entryRegisters, llvm::ArrayRef<uint64_t> args, std::vector<TensorMap> tensorMaps,
          const SimulatorOptions &options);

  void run();
  SimulatorReport takeReport();

  void report(FindingKind kind, const Instr &instr, const Warp &warp, int lane, uint64_t address,
              std::string message);
  /// Counts a finding of an instruction that has been reported; false if it has not.
  bool reportAgain(FindingKind kind, const Instr &instr);
  /// Whether these bytes of global memory may be accessed.
  const char *checkGlobal(uint64_t address, uint64_t size, bool isWrite) const;
  /// The argument that an address is of; null if there is none such.
  const MemoryRegion *findRegion(uint64_t address) const;
  /// The number of a program, as the kernel knows it.
  std::array<int32_t, 3> getProgram(uint32_t number) const;
  const Instr &getInstr(uint32_t number) const { return *instrs[number]; }
  /// Has copies to an address write what they have.
  void land(uint64_t address);
  uint64_t drawBits() { return random(); }
  void noteShared(const Instr &instr, const char *name, unsigned wavefronts, unsigned ideal);

  const Image &image;
  const Code &kernel;
  const std::array<int32_t, 3> grid;
  const unsigned numWarps;
  const unsigned entryRegisters; ///< of a thread
  const SimulatorOptions &options;
  /// In the order of the kernel's arguments.
  const std::vector<TensorMap> tensorMaps;
  uint64_t instructions = 0, laneOperations = 0;
  std::string printed; ///< the line that a kernel is printing
  /// Null if global memory is not watched.
  std::unique_ptr<GlobalShadow> shadow;
  /// Of addresses that somebody has released something at.
  llvm::DenseMap<uint64_t, std::shared_ptr<const Release>> releases;

private:
  std::unique_ptr<Cta> makeCta(uint32_t number);
  bool runSome(Cta &cta);
  void reportDeadlock(Cta &cta);
  void retire(Cta &cta);

  std::vector<uint64_t> args;
  std::vector<MemoryRegion> regions;
  std::mt19937_64 random;
  std::map<std::pair<FindingKind, uint32_t>, size_t> known;
  std::vector<Finding> findings;
  llvm::DenseMap<uint32_t, std::pair<mlir::Operation *, SharedAccess>> sharedAccesses;
  std::vector<const Instr *> instrs; ///< by number
  /// Of programs that have ended; the launch waits for them.
  std::vector<std::shared_ptr<BulkStore>> leftStores;
  std::vector<std::unique_ptr<Cta>> resident;
};

/// Looks at an access to global memory by a lane, and reports what is wrong with it. The
/// bytes may be accessed, and a write has not been done: `data` is what is about to be there.
void watchGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, uint64_t size,
                 AccessKind kind, const GlobalAccessor &who, const uint8_t *data);

/// "file:line:column" of an operation.
std::string describeLocation(mlir::Operation *op);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MACHINE_H
