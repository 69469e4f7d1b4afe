// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulator runs GPU code on the CPU, and reports mistakes of the code.
//
// It takes a kernel at the last MLIR stage ("llvm": LLVM and NVVM operations and inline PTX). It
// runs every program of a grid, a warp at a time, 32 lanes in lock step. It finds mistakes that a
// GPU hides: a kernel that lacks a barrier still gives the right answer most of the time. Vector
// clocks compare every access to shared and global memory with all others. So a race is found in
// any order of the warps. The order is random, by a seed.
//
//     out of bounds         an access outside of the launch's arrays or the program's shared memory
//     misaligned            an address that is no multiple of the access's size
//     uninitialised         a read of unwritten memory: shared memory, or arrays declared unwritten
//     race                  two unordered accesses, one of them a write: by two warps without a
//                           barrier, by two lanes without a barrier of the warp, by a copy before
//                           the wait for it, or by two programs without atomics (GlobalShadow.h
//                           lists the exceptions)
//     divergence            a barrier, a shuffle or a vote that lanes of a warp do not reach
//     deadlock              warps that wait for an event that cannot happen
//     unordered proxy       a plain write that the asynchronous units read without a fence
//     reused barrier        a write where an mbarrier is that was not invalidated
//     block not running     an access to shared memory of another block of the cluster, which may
//                           not have started or may have ended; or a copy to a block that does not
//                           end before the block does
//     persistent kernel     user code that reads its block's id, in a kernel whose blocks run
//                           several programs each
//
// The run continues after a finding: a read out of bounds gives arbitrary bits, and a write there
// is dropped. Each instruction is reported once, with a count.
//
// Copies are asynchronous. A copy to shared memory (cp.async, bulk, by tensor map) reads at some
// time between its start and its end, and its bytes arrive then. A copy to global memory reads
// shared memory at some time before the wait for the read. It writes at some time before the wait
// for the whole copy or, without one, before the end of the launch. The options choose the time: by
// the seed, as early as possible, or as late. Before its end is known, reading a copy's destination
// or writing its source is a race at any time.
//
// Time, caches and the weak order of global memory are not simulated: stores are visible at once.
// Programs of a grid are interleaved, so one may wait for another.
//
// Results follow the machine's documentation. An approximate instruction gives the correctly
// rounded result, and nothing is contracted. Undefined values of LLVM are fixed arbitrary bits.

#ifndef TESSERA_SIMULATOR_SIMULATOR_H
#define TESSERA_SIMULATOR_SIMULATOR_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Runtime/CUDA/TensorMap.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Host memory that a kernel may access.
struct MemoryRegion {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool isReadOnly = false;
  bool isUnwritten = false;  ///< it has no values until the kernel writes it
  unsigned elementBytes = 1; ///< for findings
  std::string name = {};     ///< of the argument, if there is one
};

/// The time at which asynchronous copies read, write and arrive.
enum class CopyTimes : uint8_t { Random, Early, Late };

struct SimulatorOptions {
  /// The seed of the order in which warps run.
  uint64_t seed = 0;
  /// Called about twenty times a second; if it returns true, Cancelled is thrown.
  bool (*isInterrupted)() = nullptr;
  /// Blocks of a cluster along each axis; all 0: those of the kernel's nvvm.cluster_dim.
  std::array<int32_t, 3> cluster = {0, 0, 0};
  /// The number of programs that run at the same time; others wait until one ends.
  int resident = 2;
  /// The number of instructions of a warp after which a launch is aborted.
  uint64_t maxInstructions = uint64_t(1) << 32;
  CopyTimes copies = CopyTimes::Random;
  /// True if races in global memory and reads of its unwritten words are reported.
  bool watchesGlobal = true;
  /// The regions of global memory that may be accessed; all of it if there are none.
  std::vector<MemoryRegion> memory;
  /// The recipes of the tensor maps behind the arguments.
  std::vector<cuda::TensorMapRecipe> tensorMaps;
  /// The conditions of the launch, none of which may be negative.
  std::vector<cuda::LaunchExpression> launchConditions;
  /// Arrays that must not overlap.
  std::vector<cuda::ArraysApart> arraysApart;
  /// If it is not 0, so many programs of each of two SMs run the whole grid. The extents of the
  /// grid are three arguments in front of the tensor maps.
  int persistentPrograms = 0;
  /// The first argument of each table of arguments behind the tensor maps.
  std::vector<int> argumentTables;
  /// Receives each line of a kernel's device_print; if empty, lines go to standard output.
  std::function<void(llvm::StringRef line)> print;
};

enum class FindingKind {
  OutOfBounds,
  Misaligned,
  Uninitialised,
  Race,
  Divergence,
  Deadlock,
  UnorderedProxy,
  ReusedBarrier,
  PersistentKernel,
  BlockNotRunning,
};

/// "out of bounds", "race", ...
llvm::StringRef getName(FindingKind kind);

/// A mistake of a kernel, as first observed.
struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string location;           ///< "file:line:column", empty if unknown
  std::array<int32_t, 3> program; ///< a cluster where there are clusters
  int block = -1;                 ///< in the cluster; -1 if there are none
  int thread = -1;                ///< in the block
  uint64_t address = 0;           ///< in shared memory from its start
  std::string message;            ///< one sentence, without the above
  uint64_t count = 1;             ///< how often this instruction made the mistake
  std::string array;              ///< the argument that has the address; empty if none has
  int64_t element = -1;           ///< counted from the array's first byte
};

/// The use of shared memory by one instruction.
struct SharedAccess {
  std::string location;
  std::string instruction; ///< "load", "store", "ldmatrix", ...
  uint64_t executions = 0; ///< by a warp
  uint64_t wavefronts = 0; ///< of the 32 banks
  uint64_t ideal = 0;      ///< wavefronts without bank conflicts
};

struct SimulatorReport {
  std::vector<Finding> findings;
  std::vector<SharedAccess> sharedAccesses;
  uint64_t instructions = 0;   ///< of warps
  uint64_t laneOperations = 0; ///< of lanes that took part

  ///     {"findings": [{"kind", "kernel", "location", "program", "block", "thread", "address",
  ///                    "message", "count", "array", "element"}],
  ///      "shared": [{"location", "instruction", "executions", "wavefronts", "ideal"}],
  ///      "instructions", "lane_operations"}
  std::string toJSON() const;
};

/// The text of a finding in one line: place, kind, kernel, program, thread, message.
std::string describe(const Finding &finding);

/// Runs `kernel`, a function of `module` with the attribute nvvm.kernel (the only one if the name
/// is empty), for every program of the grid. A program is a cluster of blocks if the kernel is for
/// clusters, and otherwise a block. `args` has one 8-byte slot an argument, as in
/// tsr_kernel_launch.
///
/// Throws UserError for: no such kernel, another number of arguments, a bad grid, a failed
/// assertion (E065), an unknown instruction (E068), arguments without possible tensor maps (E070).
SimulatorReport simulate(mlir::ModuleOp module, llvm::StringRef kernel, std::array<int32_t, 3> grid,
                         llvm::ArrayRef<uint64_t> args, const SimulatorOptions &options = {});

/// Throws UserError (E068) unless the simulator knows all instructions of the functions of
/// `module`.
void checkInstructions(mlir::ModuleOp module);

/// The wavefronts of the 32 banks for an access of `bytes` at the address of each lane of `lanes`,
/// and the fewest that so many bytes can take.
std::pair<unsigned, unsigned> countWavefronts(const uint64_t *addresses, uint32_t lanes,
                                              unsigned bytes);

} // namespace tessera

#endif // TESSERA_SIMULATOR_SIMULATOR_H
