// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of GPUs: the resources of a streaming multiprocessor (SM), the instructions, and their
// costs. Passes choose instructions, tiles, stages and registers by this table. No pass compares
// names, and no size of a GPU is written elsewhere (tools/dev/check_conventions.py checks that).
//
// A GPU is a row of the table in GPUMachine.cpp. A number that is the same on all rows is a
// constant of the class, so that arrays and layouts can be sized by it. A GPU that differs there
// needs work in the layouts, and the compiler finds the places.
//
// A row says three kinds of things. Limits: CUDA's programming guide, "Compute Capabilities", and
// what the driver gives a block. Instructions: the PTX ISA, each one's "Target ISA Notes";
// python/test/runtime/test_gpu_machines.py asks ptxas whether that is so. Rates and costs are the
// vendor's figures and measurements on an H200 (notes/Notebook.md). Rows without measurements have
// the H200's costs, and say so.

#ifndef TESSERA_MACHINE_GPUMACHINE_H
#define TESSERA_MACHINE_GPUMACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// The vendor of a GPU, which decides about target hooks, code generator and driver.
enum class GPUVendor { NVIDIA };

/// The elements that a matrix multiply-accumulate (MMA) instruction multiplies.
enum class MMAElement { F16, BF16, TF32, F64, I8, F8 };
unsigned getBits(MMAElement element);

/// The executor of an MMA instruction: one warp (mma.sync), or the four of a warpgroup with
/// operands in shared memory (wgmma).
enum class MMAKind { Warp, Warpgroup };

/// An MMA instruction, D = A * B + C with A of m x k and B of k x n elements.
struct MMAInstruction {
  int64_t m;
  int64_t n, maxN; ///< columns: multiples of n, up to maxN
  int64_t minK, k; ///< steps: those of the smallest form, and of the largest
  int64_t rate;    ///< multiply-adds that an SM does in a cycle

  /// Cycles of an SM for a dot of these extents.
  int64_t getCycles(int64_t rows, int64_t columns, int64_t steps) const {
    return rows * columns * steps / rate;
  }
};

/// The costs of exchanging elements, in instructions of a warp. LayoutCosts.cpp chooses layouts by
/// it.
struct ExchangeCosts {
  double barrier;    ///< of all warps, with what it takes to wait
  double exchange;   ///< a shuffle or a wavefront of shared memory, with its addresses
  double shuffle;    ///< a shuffle alone
  double meetWarps;  ///< what waiting for other warps adds to an exchange through memory
  double meetLanes;  ///< the same within a warp
  double meetBlocks; ///< a barrier of a cluster
  double remote;     ///< of how many loads from the own memory is one from another block's
  double atomic;     ///< on shared memory, for an element
  double access;     ///< issuing an access to global memory
  double sector;     ///< each sector that it moves
  double line;       ///< each line that it looks up
  double globalAtomic, atomicSector; ///< issue and sector of an atomic, which L2 executes
  double function; ///< an exponential, a quotient, and other functions of an element
};

struct GPUMachine {
  llvm::StringRef name; ///< of the architecture: "sm_90a"
  GPUVendor vendor;
  /// NVIDIA's compute capability times ten. For names, drivers' rules and `tl.target_info`; a
  /// pass asks for what it needs.
  unsigned capability;
  /// Code for this row runs on GPUs of just this capability, and may use what others lack.
  bool isSpecific;
  unsigned ptxVersion; ///< the newest that LLVM writes for it: 90 for PTX 9.0
  /// True if code for it has run on such a GPU; of other rows, it has been assembled.
  bool hasRun;

  //===--------------------------------------------------------------------===//
  // Threads and memory
  //===--------------------------------------------------------------------===//

  static constexpr unsigned kWarpSize = 32;
  /// Warps that own a quarter of an SM each and issue wgmma, setmaxnreg and tcgen05 together.
  static constexpr unsigned kWarpsOfWarpgroup = 4;
  static constexpr unsigned kMaxThreads = 1024; ///< of a block
  static constexpr unsigned kMaxWarps = kMaxThreads / kWarpSize;
  /// Barriers of a block that a number names (bar.sync, bar.arrive).
  static constexpr unsigned kNamedBarriers = 16;

  /// SMs of the largest GPU of the row that has been sold widely. How many a GPU has is known at a
  /// launch; this says about which programs of a grid come next.
  unsigned numSMs;

  /// SMs of which L2 is asked for the same once, about: a GPC has 16 or 18, of which some are off.
  /// Measured on an H100 (notes/Notebook.md, "Tiles that neighbours share").
  static constexpr unsigned kNeighbourSMs = 16;

  unsigned maxThreadsOfSM;
  unsigned maxBlocksOfSM;

  /// Registers of 32 bits. A warp is given them in steps of kRegisterStep a thread.
  static constexpr int64_t kRegisters = 64 << 10; ///< of an SM
  static constexpr int64_t kMaxRegisters = 255;   ///< of a thread
  static constexpr int64_t kRegisterStep = 8;
  static constexpr int64_t kRegisterBytes = 4;
  /// The registers that setmaxnreg can give a thread.
  static constexpr int64_t kMinTransferredRegisters = 24, kMaxTransferredRegisters = 256;
  /// The most that a thread can be given: of a whole step.
  static constexpr int64_t kMaxAllocatedRegisters = kMaxRegisters / kRegisterStep * kRegisterStep;

  int64_t l2Bytes; ///< of the second-level cache, of the GPU that numSMs is of
  int64_t sharedBytesOfSM;
  /// The maximum of a block, with the opt-in that the launcher sets.
  int64_t sharedBytes;
  /// That each block takes for the driver.
  static constexpr int64_t kReservedSharedBytes = 1 << 10;

  // Shared memory has banks of one word; an access takes a wavefront for each word that some
  // bank has to give.
  static constexpr unsigned kBanks = 32, kBankBytes = 4;
  /// Global memory moves in sectors, and is looked up in lines.
  static constexpr unsigned kSectorBytes = 32, kLineBytes = 128;
  /// The widest access of a thread. (From sm_100 on there are loads of 32 bytes, unused here.)
  static constexpr int64_t kMaxAccessBytes = 16;

  //===--------------------------------------------------------------------===//
  // Instructions
  //===--------------------------------------------------------------------===//

  bool hasStoreMatrix;      ///< stmatrix; ldmatrix is on all rows
  bool hasTMA;              ///< cp.async.bulk.tensor, and the barriers that count its bytes
  bool hasTensorMapReplace; ///< tensormap.replace: a kernel can make tensor maps
  bool hasTensorMemory;     ///< tcgen05; nothing uses it yet
  bool hasRegisterTransfer; ///< setmaxnreg: warpgroups hand registers to others
  bool hasDependentLaunch;  ///< griddepcontrol: programmatic dependent launch (PDL)
  bool hasElect;            ///< elect.sync
  bool hasBF16Arithmetic;   ///< add, mul, and conversions of integers; fma is on all rows
  bool hasBF16Atomics;      ///< atom.add.noftz.bf16
  bool hasVectorAtomics;    ///< atom.add.v4.f32 and the like: 16 bytes of f32, f16 or bf16
  bool hasFloat8Conversion; ///< cvt from f32 and to f16, of e4m3 and e5m2
  bool hasFloat8WarpMMA;    ///< mma.sync of e4m3 and e5m2; ptxas has others multiply f16 for it
  bool hasWarpReduceF32;    ///< redux.sync of f32; of 32-bit integers it is on all rows

  /// Widths of cp.async, in bytes. Only the widest can pass the first-level cache by.
  static constexpr int64_t kMinAsyncCopyBytes = 4, kMaxAsyncCopyBytes = 16;

  /// A box that one TMA instruction moves: elements along a dimension, the unit of its inner
  /// rows in bytes, and dimensions.
  static constexpr int64_t kMaxBoxElements = 256, kBoxRowBytes = 16, kMaxTensorMapRank = 5;
  /// The bits of shared addresses that swizzles of TMA and wgmma change lie below this.
  static constexpr int64_t kSwizzleAlignment = 1024;
  /// An mbarrier, and buffers that TMA fills, begin at multiples of these.
  static constexpr int64_t kMBarrierBytes = 8, kTMAAlignment = 128;

  /// Blocks of a cluster that every GPU of this row can place; 1: there are no clusters.
  unsigned maxClusterSize;

  /// The MMA instruction of a kind for elements, if there is one.
  std::optional<MMAInstruction> findMMA(MMAKind kind, MMAElement element) const;
  bool hasWarpgroupMMA() const { return warpgroupMMARate != 0; }

  //===--------------------------------------------------------------------===//
  // Rates and costs
  //===--------------------------------------------------------------------===//

  /// Multiply-adds of 16-bit elements that an SM does in a cycle by mma.sync and by wgmma (0: there
  /// is none). For narrower and wider elements, the rate is proportionally higher and lower.
  int64_t warpMMARate, warpgroupMMARate;
  int64_t warpMMARateF64;
  static constexpr int64_t kRateBits = 16;

  /// Cycles of a dot with so many elements, each a sum of `depth` products of operands of so many
  /// bits, at one of these rates.
  static int64_t getDotCycles(int64_t elements, int64_t depth, int64_t bits, int64_t rate) {
    return elements * depth * bits / (kRateBits * rate);
  }

  int64_t f32Rate;      ///< multiply-adds of f32 that an SM's threads do in a cycle
  int64_t f16Rate;      ///< the same of f16 and bf16, two in a register
  int64_t functionRate; ///< exponentials, reciprocals, ... that an SM does in a cycle
  int64_t issueRate;    ///< instructions of threads that an SM does in a cycle

  int64_t sharedBandwidth; ///< bytes of shared memory that an SM moves in a cycle
  int64_t l2Bandwidth;     ///< that an SM gets from the second-level cache, most others being idle
  int64_t multicastBandwidth; ///< of tiles that come to an SM by multicast in a cycle
  /// Cycles from an access to its data: of shared memory, the second-level cache, memory.
  int64_t sharedLatency, l2Latency, memoryLatency;

  ExchangeCosts costs;

  //===--------------------------------------------------------------------===//
  // Derived properties
  //===--------------------------------------------------------------------===//

  /// Shared memory that each of so many blocks can have of an SM.
  int64_t getSharedBytes(int64_t blocks) const {
    return (sharedBytes + kReservedSharedBytes) / blocks - kReservedSharedBytes;
  }

  /// The shared memory of a block up to which the first-level cache has more than its minimum. The
  /// two largest sizes of shared memory that the driver sets on these GPUs are 32 KB apart.
  int64_t getSharedBytesBesideCache() const {
    constexpr int64_t kLastStep = 32 << 10;
    return sharedBytesOfSM - kLastStep - kReservedSharedBytes;
  }

  /// Blocks of so many threads, registers a thread and bytes of shared memory that an SM has room
  /// for, by these alone; one, if none.
  int64_t countBlocks(int64_t threads, int64_t registers, int64_t bytes) const {
    int64_t blocks = kRegisters / (threads * registers);
    while (blocks > 1 && getSharedBytes(blocks) < bytes)
      --blocks;
    return blocks > 1 ? blocks : 1;
  }

  /// Cycles from an access of memory to its data while all SMs load. They are two to three times
  /// those of a single SM (notes/Notebook.md, "Copies that are there in time").
  int64_t getBusyMemoryLatency() const { return 3 * memoryLatency; }

  /// The same of a tile that two blocks copy to each other: each waits until the other one has left
  /// the slot, too (notes/Notebook.md, "Two blocks instead of two sums").
  int64_t getMulticastLatency() const { return 5 * memoryLatency; }

  /// Bytes that an SM gets from the second-level cache in a cycle where all SMs load.
  int64_t getBusyL2Bandwidth() const { return l2Bandwidth * 13 / 16; }

  /// Registers that a thread can have where so many threads share an SM, in whole steps.
  static constexpr int64_t getRegisters(int64_t threads) {
    int64_t most = kRegisters / threads;
    most = most < kMaxRegisters ? most : kMaxRegisters;
    return most / kRegisterStep * kRegisterStep;
  }

  //===--------------------------------------------------------------------===//
  // Looking up
  //===--------------------------------------------------------------------===//

  /// The row of this name; null if there is none.
  static const GPUMachine *find(llvm::StringRef name);
  /// "sm_80, sm_86, ... or sm_120a", for messages.
  static std::string listNames();
  /// The target of a module that names none: the oldest row.
  static const GPUMachine &getDefault();
  /// The row whose code a GPU of this compute capability runs best; null if there is none.
  static const GPUMachine *findForCapability(unsigned major, unsigned minor);
  /// All rows, the oldest first.
  static llvm::ArrayRef<GPUMachine> getTable();
};

} // namespace tessera

#endif // TESSERA_MACHINE_GPUMACHINE_H
