// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulator: GPU code run on the CPU, and watched.
//
// It takes a kernel at the last MLIR stage ("llvm": LLVM and NVVM operations and our inline PTX).
// It runs every program of a grid, a warp at a time, 32 lanes in lock step. It finds mistakes that
// a GPU hides: without a barrier, a kernel on a GPU still gives the right answer most of the time.
// Vector clocks check every access to shared and global memory against all others. So a race is
// found in any order of the warps. The order is random, by a seed.
//
//   out of bounds   an access outside the launch's arrays or the program's shared memory
//   misaligned      an address that is no multiple of the access's size
//   uninitialised   a read of unwritten memory: shared memory, or what is
//                   said to hold nothing
//   race            two accesses of memory, one of them a write, that nothing orders: by two
//                   warps without a barrier, by two lanes without one of the warp, by a
//                   copy that was not waited for, or by two programs without atomics
//                   (GlobalShadow.h has what is no race)
//   divergence      a barrier, a shuffle or a vote that lanes of a warp are missing from
//   deadlock        warps that wait for what will never happen
//   unordered proxy memory written as usual, read by the asynchronous units without a fence
//   block not running  a block of a cluster touches shared memory of another one, which may
//                   not have begun or may have ended; or a copy is not over when the block
//                   ends to which it goes
//   persistent kernel code of the user reads the number of its block, in a kernel whose blocks
//                   do the work of several programs each
//
// A finding does not end the run: a read out of bounds gives rubbish, a write is dropped.
// An instruction is reported once, with the number of times.
//
// Copies go on beside their program. A copy to shared memory (cp.async, bulk, by tensor map) reads
// at some time between its start and its end, and its bytes arrive then. A copy to global memory
// reads shared memory at some time before the wait for the read. It writes at some time before the
// wait for the whole, or, without one, before the end of the launch. The seed says when, or it is
// as early as can be, or as late. To read what a copy brings, or to overwrite what it reads, before
// its end is known is a race in any case.
//
// Not simulated: time, caches, and the weak order of global memory: what threads store is seen at
// once. Programs of a grid are interleaved, so that one may wait for another.
//
// Values are those of the machine's documentation: where an instruction is approximate,
// the result is the rounded one; nothing is contracted. A value that LLVM calls undefined
// is rubbish of a fixed kind.

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

/// Memory of the host that a kernel may touch.
struct MemoryRegion {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool isReadOnly = false;
  bool isUnwritten = false;  ///< it holds nothing until the kernel writes it
  unsigned elementBytes = 1; ///< for what is said of it
  std::string name = {};     ///< of the argument, if there is one
};

/// When copies that go on beside their program read, write and arrive.
enum class CopyTimes : uint8_t { Random, Early, Late };

struct SimulatorOptions {
  /// The seed of the order in which warps run.
  uint64_t seed = 0;
  /// Asked some twenty times a second; where it is true, Cancelled is thrown.
  bool (*isInterrupted)() = nullptr;
  /// Blocks of a cluster along each axis; all 0: as the kernel says, by nvvm.cluster_dim.
  std::array<int32_t, 3> cluster = {0, 0, 0};
  /// How many programs run at the same time; those beyond wait for one to end.
  int resident = 2;
  /// Instructions of a warp after which a launch is given up.
  uint64_t maxInstructions = uint64_t(1) << 32;
  CopyTimes copies = CopyTimes::Random;
  /// True if races in global memory and reads of its unwritten words are reported.
  bool watchesGlobal = true;
  /// The regions of global memory that may be accessed; all of it if there are none.
  std::vector<MemoryRegion> memory;
  /// The recipes of the arguments behind those that are given.
  std::vector<cuda::TensorMapRecipe> tensorMaps;
  /// The conditions for that, none of which may be negative.
  std::vector<cuda::LaunchExpression> launchConditions;
  /// Arrays that must not overlap, either.
  std::vector<cuda::ArraysApart> arraysApart;
  /// If it is not 0, so many programs of each of two SMs run the whole grid. The extents of the
  /// grid are three arguments in front of the tensor maps.
  int persistentPrograms = 0;
  /// Takes each line of a kernel's device_print. Standard output if empty.
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
  uint64_t count = 1;             ///< how often this instruction did it
  std::string array;              ///< the argument whose element it is; empty if it is of none
  int64_t element = -1;           ///< counted from the array's first byte
};

/// How a kernel used shared memory, an instruction.
struct SharedAccess {
  std::string location;
  std::string instruction; ///< "load", "store", "ldmatrix", ...
  uint64_t executions = 0; ///< by a warp
  uint64_t wavefronts = 0; ///< turns of the 32 banks that they took
  uint64_t ideal = 0;      ///< turns, had no two lanes met in a bank
};

struct SimulatorReport {
  std::vector<Finding> findings;
  std::vector<SharedAccess> sharedAccesses;
  uint64_t instructions = 0;   ///< of warps
  uint64_t laneOperations = 0; ///< of lanes that took part

  /// {"findings": [{"kind", "kernel", "location", "program", "block", "thread", "address",
  ///  "message", "count", "array", "element"}], "shared": [{"location", "instruction",
  ///  "executions", "wavefronts", "ideal"}], "instructions", "lane_operations"}
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

/// The turns that the 32 banks take for an access of `bytes` at the address of each lane
/// of `lanes`, and the fewest that so many bytes can take.
std::pair<unsigned, unsigned> countWavefronts(const uint64_t *addresses, uint32_t lanes,
                                              unsigned bytes);

} // namespace tessera

#endif // TESSERA_SIMULATOR_SIMULATOR_H
