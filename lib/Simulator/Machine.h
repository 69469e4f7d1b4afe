// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The executor of the bytecode: the machine with its resident programs, a program's warps, and the
// frames of a warp.
//
// Lanes of a warp may diverge at a branch. The group of lanes at the earliest block runs first. In
// the order of blocks, all of a loop precedes its continuation, so groups reconverge as early as
// possible.

#ifndef TESSERA_LIB_SIMULATOR_MACHINE_H
#define TESSERA_LIB_SIMULATOR_MACHINE_H

#include "Bytecode.h"
#include "Cluster.h"
#include "Copies.h"
#include "GlobalShadow.h"
#include "Shared.h"
#include "tessera/Simulator/Simulator.h"

#include "llvm/ADT/DenseMap.h"

#include <random>
#include <set>

namespace tessera::simulator {

/// Windows of addresses outside of global memory: shared memory of the program, and local memory of
/// the thread.
constexpr uint64_t kSharedWindow = uint64_t(1) << 60;
constexpr uint64_t kLocalWindow = uint64_t(1) << 61;
constexpr uint64_t kWindowBytes = uint64_t(1) << 32;

/// The position of the rank in an address of a cluster's shared memory. These bits are 0 for the
/// block's own memory; for another block, they are 1 plus its number in the cluster.
constexpr unsigned kRankShift = 24;

struct Frame {
  const Code *code = nullptr;
  uint32_t firstRow = 0;
  uint32_t pc = 0;
  Lanes active = 0, live = 0;
  uint32_t where[kLanes]; ///< the next instruction of lanes that are not active
  const Instr *call = nullptr;
};

/// A tensor map, whose address the kernel receives.
struct TensorMap {
  cuda::TensorMapShape shape;
  cuda::TensorMapElement element = cuda::TensorMapElement::UInt8;
  unsigned elementBytes = 1, swizzleBytes = 0;
};

/// A tensor map that a program has created in global memory.
struct MadeTensorMap {
  std::array<uint8_t, 128> bytes{}; ///< that TMA reads there
  const TensorMap *map = nullptr;
  /// The blocks that have fenced it since its creation; others may read its previous bytes.
  std::set<uint32_t> known;
};

enum class WarpState : uint8_t { Runnable, AtBarrier, AtClusterBarrier, Done };

/// The reason why a warp waits.
struct WarpWait {
  bool isSpinning = false;   ///< its last try to wait has failed
  bool repeats = false;      ///< it is to do the same instruction again
  const Instr *at = nullptr; ///< the barrier, or the instruction at which it spins
  const char *reason = "";   ///< why it spins
  unsigned barrier = 0;
};

/// A warp's arrival at the barrier of its cluster.
struct ClusterArrival {
  Lanes lanes = 0;         ///< that have arrived and not waited
  bool isComplete = false; ///< all warps of the cluster have arrived since
  bool isRelaxed = false;  ///< it orders no memory
};

/// Pieces of 16 bytes of shared memory that dots in flight read.
struct MatrixReads {
  std::vector<uint64_t> open; ///< by dots that are in no group yet
  std::deque<std::vector<uint64_t>> groups;
};

/// The local memory of a warp's threads, one thread after another.
struct LocalMemory {
  uint64_t threadBytes = 0;
  std::vector<uint8_t> bytes;
};

class Warp {
public:
  Warp(Machine &machine, Cta &cta, unsigned id, const Code &kernel, llvm::ArrayRef<uint64_t> args);

  /// Runs until it is blocked or done, or has made `accesses` accesses to memory.
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
  Accessor accessor(unsigned lane) const;
  GlobalAccessor globalAccessor(const Instr &instr, unsigned lane) const;
  /// Advances the clock, which separates later accesses from earlier ones.
  void tick() { ++times.of[id]; }
  /// Synchronises all lanes of the warp, which orders their accesses to memory.
  void meetLanes() {
    tick();
    lanesMet = times.of[id];
  }
  /// The number of this execution of an instruction.
  uint32_t countExecution(const Instr &instr);
  uint8_t *local(unsigned lane, uint64_t offset) {
    return localMemory.bytes.data() + lane * localMemory.threadBytes + offset;
  }
  /// Reports a finding unless all 32 lanes take part.
  bool checkWhole(const Instr &instr, Lanes lanes, const char *what);

  Machine &machine;
  Cta &cta;
  const unsigned id;
  WarpState state = WarpState::Runnable;
  WarpWait wait;
  Times times;
  Clock lanesMet = 0;
  ClusterArrival arrival;
  /// The release of a later relaxed write, and the acquire of a later fence.
  std::shared_ptr<const Release> fenced;
  std::vector<std::shared_ptr<const Release>> seen;
  LocalMemory localMemory;
  std::array<LaneCopies, kLanes> copies;
  std::array<LaneStores, kLanes> stores;
  /// Registers of a thread.
  unsigned registers = 0;
  MatrixReads matrixReads;

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
  std::vector<uint32_t> executions;
};

struct Barrier {
  unsigned arrived = 0; ///< warps
  unsigned expected = 0;
  std::vector<Warp *> waiting;
  Times times;
};

/// An mbarrier in shared memory. Its phase is complete when no arrival and no byte is missing.
struct MBarrier {
  int64_t expected = 0, pending = 0; ///< arrivals
  int64_t bytes = 0;                 ///< of pending copies
  uint64_t phase = 0;                ///< the number of complete phases
  unsigned agent = 0;                ///< that stands for the copies that report to it
  Clock firstClock = 0;              ///< of that agent, at its first phase
  Times times;                       ///< acquired from arrivals of this block in this phase
  Times released;                    ///< the same of the last phase
  /// The same for other blocks of the cluster; null if none has arrived.
  std::shared_ptr<Times> timesOfOthers, releasedByOthers;
  /// The access that initialised it; true if a fence for barriers has followed.
  SharedRecord maker;
  bool isFenced = false;
  /// A warp that has waited for this phase of the cluster's barrier may use it.
  unsigned publishedIn = ~0u;

  /// The time at which accesses that arrive in this phase have ended.
  Clock getClock() const { return firstClock + static_cast<Clock>(phase) + 1; }
};

/// A block of threads, which runs a program, or is one of a cluster that does.
class Cta {
public:
  Cta(Machine &machine, Cluster &cluster, std::array<int32_t, 3> id, uint32_t number,
      unsigned numWarps, uint64_t sharedBytes)
      : machine(machine), cluster(cluster), id(id), number(number),
        rank(number - cluster.firstProgram), shared(sharedBytes), numWarps(numWarps) {}

  /// A warp arrives at a barrier of `expected` warps, and waits if `waits` is set.
  void arrive(Warp &warp, unsigned barrier, unsigned expected, bool waits);
  bool isDone() const;
  /// Starts the next phase if this one is complete.
  void completePhase(MBarrier &barrier);
  /// Records an access to its shared memory by another block or a copy.
  void noteVisit(Visit visit);
  /// Called when its last thread has ended: reports accesses of others that it has not waited for.
  void end();

  Machine &machine;
  Cluster &cluster;
  std::array<int32_t, 3> id;
  uint32_t number; ///< of all blocks, those of a cluster one after another
  unsigned rank;   ///< in its cluster
  SharedMemory shared;
  unsigned numWarps;
  std::vector<std::unique_ptr<Warp>> warps;
  std::map<unsigned, Barrier> barriers;
  std::map<uint64_t, MBarrier> mbarriers;
  unsigned numBarriers = 0;   ///< that are initialised
  unsigned freeRegisters = 0; ///< that threads gave up

private:
  std::map<std::tuple<uint32_t, unsigned, unsigned>, Visit> visits;
};

/// The tensor maps of a launch.
struct TensorMaps {
  /// Those of the launch, in the order of the kernel's arguments.
  std::vector<TensorMap> given;
  /// Those that programs make, by address.
  std::map<uint64_t, MadeTensorMap> made;
  /// All that programs have made. A copy may still use one that has been replaced.
  std::deque<TensorMap> everMade;
};

struct ExecutedWork {
  uint64_t instructions = 0, laneOperations = 0;
};

/// The findings and counts of a report.
struct Observations {
  std::vector<Finding> findings;
  /// The index of a finding, by its kind and the number of the instruction.
  std::map<std::pair<FindingKind, uint32_t>, size_t> findingOf;
  llvm::DenseMap<uint32_t, std::pair<mlir::Operation *, SharedAccess>> sharedAccesses;
};

class Machine {
public:
  /// `grid` and `cluster` are in blocks. `slots`, which tables of arguments are in, outlives this.
  Machine(const Image &image, const Code &kernel, std::array<int32_t, 3> grid,
          std::array<int32_t, 3> cluster, unsigned numWarps, unsigned entryRegisters,
          llvm::ArrayRef<uint64_t> args, std::vector<TensorMap> tensorMaps,
          llvm::ArrayRef<uint64_t> slots, const SimulatorOptions &options);

  void run();
  SimulatorReport takeReport();

  void report(FindingKind kind, const Instr &instr, const Warp &warp, int lane, uint64_t address,
              std::string message);
  /// Counts a finding of an instruction that has been reported; false if it has not.
  bool reportAgain(FindingKind kind, const Instr &instr);
  /// The reason why these bytes of global memory may not be accessed; null if they may.
  const char *checkGlobal(uint64_t address, uint64_t size, bool isWrite) const;
  /// The region of the argument that has the address; null if there is none.
  const MemoryRegion *findRegion(uint64_t address) const;
  /// The ids of a block in the grid, and those of its cluster.
  std::array<int32_t, 3> getBlock(uint32_t number) const;
  std::array<int32_t, 3> getCluster(uint32_t number) const;
  /// The name of a block in findings: "program (1, 0, 0)", or "block 1 of program (0, 0, 0)".
  std::string describeBlock(uint32_t number) const;
  const Instr &getInstr(uint32_t number) const { return *instrs[number]; }
  /// Makes copies to an address write their data.
  void land(uint64_t address);
  uint64_t drawBits() { return random(); }
  /// The values of a kernel's arguments, a slot each.
  llvm::ArrayRef<uint64_t> getArguments() const { return args; }
  void noteShared(const Instr &instr, const char *name, unsigned wavefronts, unsigned ideal);

  const Image &image;
  const Code &kernel;
  const std::array<int32_t, 3> grid, cluster;
  const unsigned clusterSize; ///< blocks of a cluster
  const unsigned numWarps;
  const unsigned entryRegisters; ///< of a thread
  const SimulatorOptions &options;
  TensorMaps tensorMaps;
  ExecutedWork work;
  std::string printed; ///< the line that a kernel is printing
  /// Null if global memory is not watched.
  std::unique_ptr<GlobalShadow> shadow;
  Releases releases;

private:
  bool runSome(Cluster &cluster);
  void reportDeadlock(Cluster &cluster);
  void retire(Cluster &cluster);

  std::vector<uint64_t> args;
  std::vector<MemoryRegion> regions;
  std::mt19937_64 random;
  Observations observations;
  std::vector<const Instr *> instrs; ///< by number
  /// Pending copies of programs that have ended; the launch waits for them.
  std::vector<std::shared_ptr<BulkStore>> leftStores;
  std::vector<std::unique_ptr<Cluster>> resident;
};

/// Checks an access to global memory by a lane, and reports a conflict. The bytes must be
/// accessible. A write has not happened yet; `data` has its bytes.
void watchGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, uint64_t size,
                 AccessKind kind, const GlobalAccessor &who, const uint8_t *data);

/// "file:line:column" of an operation.
std::string describeLocation(mlir::Operation *op);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MACHINE_H
