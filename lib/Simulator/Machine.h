// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The executor of the bytecode: the machine with its resident programs, a program's warps, and the
// frames of a warp.
//
// Lanes of a warp go their own ways at a branch. Of the resulting groups, the one at the earliest
// block runs. In the order of blocks, all of a loop precedes its continuation. So groups reconverge
// as early as possible.

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

/// Addresses that are no global memory: windows on the memory of the program and of the
/// thread.
constexpr uint64_t kSharedWindow = uint64_t(1) << 60;
constexpr uint64_t kLocalWindow = uint64_t(1) << 61;
constexpr uint64_t kWindowBytes = uint64_t(1) << 32;

/// In the address of shared memory of a cluster, the bits from here on are 1 more than the number
/// of a block in the cluster. They are 0 for the block's own memory.
constexpr unsigned kRankShift = 24;

struct Frame {
  const Code *code = nullptr;
  uint32_t firstRow = 0;
  uint32_t pc = 0;
  Lanes active = 0, live = 0;
  uint32_t where[kLanes]; ///< the next instruction of lanes that are not active
  const Instr *call = nullptr;
};

/// A tensor map: its address is what the kernel has.
struct TensorMap {
  cuda::TensorMapShape shape;
  cuda::TensorMapElement element = cuda::TensorMapElement::UInt8;
  unsigned elementBytes = 1, swizzleBytes = 0;
};

/// A tensor map that a program has made, in global memory.
struct MadeTensorMap {
  std::array<uint8_t, 128> bytes{}; ///< that TMA finds there
  const TensorMap *map = nullptr;
  /// The blocks that have fenced it since it was made: others may find what was there before.
  std::set<uint32_t> known;
};

enum class WarpState : uint8_t { Runnable, AtBarrier, AtClusterBarrier, Done };

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
  Accessor accessor(unsigned lane) const;
  GlobalAccessor globalAccessor(const Instr &instr, unsigned lane) const;
  /// Later accesses are distinguished from earlier ones.
  void tick() { ++times.of[id]; }
  /// All lanes are at one place, and their accesses to memory are ordered.
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
  /// Lanes that have come to the barrier of the cluster and not waited there.
  Lanes cameToCluster = 0;
  bool hasMetCluster = false; ///< all have come since
  bool wasRelaxed = false;    ///< it came to order no memory
  /// The release of a later relaxed write, and the acquire of a later fence.
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

/// A barrier in shared memory. Its phase is complete when no arrival and no byte is missing.
struct MBarrier {
  int64_t expected = 0, pending = 0; ///< arrivals
  int64_t bytes = 0;                 ///< that copies have yet to bring
  uint64_t phase = 0;                ///< how many are over
  unsigned agent = 0;                ///< that stands for the copies that report to it
  Clock firstClock = 0;              ///< of that, at its first phase
  Times times;                       ///< of who of its program has arrived in this one
  Times released;                    ///< of who arrived in the last one
  /// The same for other blocks of the cluster, as this block acquires it; null if for none.
  std::shared_ptr<Times> timesOfOthers, releasedByOthers;
  /// Its maker, and whether a fence for barriers has followed.
  SharedRecord maker;
  bool isFenced = false;
  /// A warp that has waited for that phase of the cluster's barrier knows that it was made.
  unsigned publishedIn = ~0u;

  /// When what arrives in this phase is over.
  Clock getClock() const { return firstClock + static_cast<Clock>(phase) + 1; }
};

/// A program, or one of those in whose cluster a program is run: a block of threads.
class Cta {
public:
  Cta(Machine &machine, Cluster &cluster, std::array<int32_t, 3> id, uint32_t number,
      unsigned numWarps, uint64_t sharedBytes)
      : machine(machine), cluster(cluster), id(id), number(number),
        rank(number - cluster.firstProgram), shared(sharedBytes), numWarps(numWarps) {}

  /// A warp comes to a barrier of `expected` warps, and waits unless it only arrives.
  void arrive(Warp &warp, unsigned barrier, unsigned expected, bool waits);
  bool isDone() const;
  /// Goes on to the next phase if this one is over.
  void completePhase(MBarrier &barrier);
  /// Somebody else than its threads touches its shared memory.
  void noteVisit(Visit visit);
  /// Its last thread has ended: reports visits that it has not waited for.
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
  unsigned numBarriers = 0;   ///< that have been made
  unsigned freeRegisters = 0; ///< that threads gave up

private:
  std::map<std::tuple<uint32_t, unsigned, unsigned>, Visit> visits;
};

class Machine {
public:
  /// `grid` and `cluster` are in blocks.
  Machine(const Image &image, const Code &kernel, std::array<int32_t, 3> grid,
          std::array<int32_t, 3> cluster, unsigned numWarps, unsigned entryRegisters,
          llvm::ArrayRef<uint64_t> args, std::vector<TensorMap> tensorMaps,
          const SimulatorOptions &options);

  void run();
  SimulatorReport takeReport();

  void report(FindingKind kind, const Instr &instr, const Warp &warp, int lane, uint64_t address,
              std::string message);
  /// Counts a finding of an instruction that has been reported; false if it has not.
  bool reportAgain(FindingKind kind, const Instr &instr);
  /// The reason why these bytes of global memory may not be accessed; null if they may.
  const char *checkGlobal(uint64_t address, uint64_t size, bool isWrite) const;
  /// The argument that an address is of; null if there is none such.
  const MemoryRegion *findRegion(uint64_t address) const;
  /// The number of a block, as the kernel knows it, and that of its cluster.
  std::array<int32_t, 3> getBlock(uint32_t number) const;
  std::array<int32_t, 3> getCluster(uint32_t number) const;
  /// How findings name a block: "program (1, 0, 0)", or "block 1 of program (0, 0, 0)".
  std::string describeBlock(uint32_t number) const;
  const Instr &getInstr(uint32_t number) const { return *instrs[number]; }
  /// Has copies to an address write what they have.
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
  /// In the order of the kernel's arguments.
  const std::vector<TensorMap> tensorMaps;
  /// Those that programs make, by address, and all that there have been: a copy may still go
  /// on by one that there is no more.
  std::map<uint64_t, MadeTensorMap> madeMaps;
  std::deque<TensorMap> mapsMade;
  uint64_t instructions = 0, laneOperations = 0;
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
  std::map<std::pair<FindingKind, uint32_t>, size_t> known;
  std::vector<Finding> findings;
  llvm::DenseMap<uint32_t, std::pair<mlir::Operation *, SharedAccess>> sharedAccesses;
  std::vector<const Instr *> instrs; ///< by number
  /// The copies of programs that have ended; the launch waits for them.
  std::vector<std::shared_ptr<BulkStore>> leftStores;
  std::vector<std::unique_ptr<Cluster>> resident;
};

/// Looks at an access to global memory by a lane, and reports what is wrong with it. The
/// bytes may be accessed, and a write has not been done: `data` is what is about to be there.
void watchGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, uint64_t size,
                 AccessKind kind, const GlobalAccessor &who, const uint8_t *data);

/// "file:line:column" of an operation.
std::string describeLocation(mlir::Operation *op);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MACHINE_H
