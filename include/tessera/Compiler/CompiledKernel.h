// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled kernel: its machine code, and the metadata that launches, users and the disk cache
// need.

#ifndef TESSERA_COMPILER_COMPILEDKERNEL_H
#define TESSERA_COMPILER_COMPILEDKERNEL_H

#include "tessera/Compiler/KernelAccess.h"
#include "tessera/Compiler/KernelFamily.h"
#include "tessera/Runtime/CUDA/DivisibleSum.h"
#include "tessera/Runtime/CUDA/LaunchLimits.h"
#include "tessera/Runtime/CUDA/ProgramBound.h"
#include "tessera/Runtime/CUDA/TensorMap.h"
#include "tessera/Support/AccessFault.h"
#include "tessera/Support/Remark.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

namespace host {
class LoadedObject;
class ShownCode;
struct LaunchableKernel;
} // namespace host
namespace cuda {
class LoadedKernel;
} // namespace cuda

/// A kernel argument, which takes one 8-byte slot.
struct KernelArgument {
  std::string type;      ///< "ptr<f32>", "i32", "f32", ...
  bool isLoaded = false; ///< a load may read through it
  bool isStored = false; ///< a store or an atomic may write through it
};

/// A source location that can fail at run time: an assertion, or a checked access.
struct KernelSite {
  std::string message; ///< of an assertion
  std::string file;
  int line = 0;
  int column = 0;
  std::string access; ///< "load", "store" or "atomic"; empty for an assertion
  int argument = 0;   ///< that it is made through
  int bytes = 0;      ///< of an element
  bool wraps = false; ///< whether it is the offset that is wrong
};

struct StageTime {
  std::string stage;
  double milliseconds = 0;
};

/// The value of `assembler` if there was no ptxas. The GPU's driver then assembles the PTX at the
/// first launch, so there is no cubin, and the number of registers is unknown before.
inline constexpr llvm::StringLiteral kDriverAssembles = "driver";

/// The properties of a compiled kernel besides its code.
struct KernelMetadata {
  std::string name;
  std::string target;   ///< "cpu" or "cuda"
  std::string cpu;      ///< the CPU it was compiled for: a HostTarget's name
  std::string features; ///< with these features, "+avx,+avx2,..."
  std::string machine;  ///< the row of the table of CPUs, as HostMachine prints it
  int abiVersion = 0;   ///< host::kHostABIVersion when it was compiled
  int numThreads = 0;   ///< of a launch that names none; 0 is the host's default
  int vectorBits = 0;   ///< width of the strips it was made of
  int64_t scratchBytes = 0;
  std::string arch;     ///< of a kernel for "cuda", as the rest up to spillBytes: "sm_90a"
  int capability = 0;   ///< 90
  int numWarps = 0;     ///< of one block, those that only copy included
  int numCTAs = 1;      ///< blocks of a cluster, which do a program together
  int sharedBytes = 0;  ///< dynamic shared memory
  int numStages = 0;    ///< tiles in the longest ring that loops copy to ahead; 0 if there is none
  int numRegisters = 0; ///< of a thread, as ptxas has it
  int spillBytes = 0;   ///< that a thread stores because registers ran out
  /// The release of ptxas that made the cubin of a kernel for "cuda"; empty if it is unknown, or
  /// kDriverAssembles.
  std::string assembler;
  std::vector<KernelArgument> arguments;
  /// The tensor maps that a launch on a GPU passes behind the arguments, and conditions of every
  /// launch. A condition's value must not be negative, so that maps are valid and indices do not
  /// wrap.
  std::vector<cuda::TensorMapRecipe> tensorMaps;
  std::vector<cuda::LaunchExpression> launchConditions;
  std::vector<cuda::ArraysApart> arraysApart;
  /// The maximum number of programs along an axis of the grid; 0: no limit.
  int64_t mostPrograms = 0;
  /// Integers that must not be negative in any program (ProgramBound.h).
  std::vector<std::string> programBounds;
  /// The programs an SM of a persistent kernel; 0 if the kernel is not persistent. A persistent
  /// kernel receives the grid's extents in front of the tensor maps.
  int persistentPrograms = 0;
  /// The first argument of each table of arguments, which a launch passes behind the tensor maps.
  std::vector<int> argumentTables;
  /// True if its programs themselves wait for earlier kernels of the stream.
  bool waitsForStream = false;
  /// A sum of dots that clusters could divide, of a kernel without clusters.
  std::optional<cuda::DivisibleSum> divisibleSum;
  /// Integers of which none is negative if the kernel's loops are short; none: it has no variant
  /// for these.
  std::vector<std::string> shortLoops;
  /// True if a program may loop until another one has written something.
  bool waitsForPrograms = false;
  /// The text of the KernelSkeleton of a kernel for "cuda".
  std::string work;
  std::vector<KernelSite> sites;
  /// Accesses that a launch can check before it runs, of a kernel without checks of its own.
  std::vector<KernelAccess> certainAccesses;
  /// Milliseconds spent to reach each stage, in order, and to load the object.
  std::vector<StageTime> stageTimes;
  std::vector<Remark> remarks;

  /// The metadata as JSON. Extents, strides and conditions are sums, [[factor, [argument, its
  /// bits],
  /// ...], ...]:
  ///
  ///     {"name", "target", "cpu", "features", "machine", "vector_bits", "abi_version",
  ///      "num_threads", "scratch_bytes", "arch", "capability", "num_warps", "num_ctas",
  ///      "shared_bytes", "num_stages", "num_registers", "spill_bytes", "assembler", "arguments":
  ///      [{"type", "loaded", "stored"}], "tensor_maps": [{"base", "element", "bytes", "swizzle",
  ///                       "dims": [{"extent", "stride", "box"}]}],
  ///      "launch_conditions", "program_bounds": [text], "persistent_programs",
  ///      "argument_tables": [argument], "waits_for_stream", "waits_for_programs", "work",
  ///      "short_loops": [text], "divisible_sum": {"upper", "lower", "step", "iteration_cycles",
  ///      "busy_cycles",
  ///                        "meet_cycles", "wait_cycles", "exchange_cycles", "pair_cycles"} or
  ///                        null,
  ///      "sites": [{"message", "file", "line", "column", "access", "argument", "bytes", "wraps"}],
  ///      "certain_accesses": [{"access", "argument", "bytes", "file", "line", "column", "masked",
  ///                            "offset", "dims": [{"extent", "stride", "upper", "lower"}],
  ///                            "guards"}],
  ///      "stage_ms": [[stage, ms]],
  ///      "remarks": [{"kind", "message", "file", "line", "column", "values": {name: value}}]}
  std::string toJSON() const;
  /// The same, if `json` is that of the same metadata with other stage times. This takes less time.
  std::string toJSON(llvm::StringRef json) const;
  /// Throws InternalError if `json` is not what toJSON wrote.
  static KernelMetadata fromJSON(llvm::StringRef json);
};

/// The symbol of a kernel in its object. It differs from the kernel's name, which may be that of a
/// library function.
std::string getKernelSymbol(llvm::StringRef name);

class CompiledKernel final : public FamilyMember {
public:
  /// Loads the object into this process; a cubin or PTX waits for its first launch. `stages` maps
  /// names to text or bytes. `knownJSON` is that of the metadata with other stage times, or empty.
  CompiledKernel(KernelMetadata metadata, std::string object,
                 std::vector<std::pair<std::string, std::string>> stages,
                 llvm::StringRef knownJSON = {});
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel &) = delete;
  CompiledKernel &operator=(const CompiledKernel &) = delete;

  const KernelMetadata &getMetadata() const { return metadata; }
  /// The assumptions of the kernel about a launch, as JSON with the fields of tessera_limits, or
  /// null if there are none. An array's `first` may be null. A formula is [[operation, bits,
  /// number], ...] without its end:
  ///
  ///     {"most_programs", "counts_programs", "conditions": [formula], "apart": [[array, array]],
  ///      "maps": [{"array", "element", "swizzle_bytes"}]}
  ///     array: {"argument", "element_bytes", "dims": [{"extent", "stride", "box", "first"}]}
  std::string describeLimits() const;
  /// The metadata as JSON; lives as long as the kernel.
  const std::string &getMetadataJSON() const { return metadataJSON; }
  /// Text or bytes of a named stage, if the kernel has it ("object" always).
  std::optional<llvm::StringRef> getStage(llvm::StringRef name) const;

  /// True if this machine has all features of the kernel's CPU.
  bool canRun() const { return missingFeature.empty(); }

  /// Runs a grid and returns when it is done. Several threads may call it at once. `numThreads` 0
  /// is the metadata's number, or the host's default. If `isInterrupted` returns true between
  /// programs, this throws Cancelled. A kernel compiled with `debug` checks its accesses against
  /// `memory`, the range behind each argument; empty if unknown.
  ///
  /// Throws UserError for a failed assertion (E065) or an access outside of that memory (E080,
  /// E081). Also throws it for a wrong number of arguments (E051) or a bad grid (E052). Throws
  /// LaunchRefused (E070) if another variant of the kernel can run the launch.
  void launch(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args, int numThreads = 0,
              bool (*isInterrupted)() = nullptr, llvm::ArrayRef<ArgumentMemory> memory = {}) const;

  /// Puts a grid on a stream of a GPU and returns. Throws UserError (E051, E052), also if the GPU
  /// or its driver refuses (E066). Throws LaunchRefused if a launch condition does not hold (E070),
  /// or if no cluster of the kernel fits (E066): another variant can run the launch.
  void launchCUDA(int device, void *stream, llvm::ArrayRef<int32_t> grid,
                  llvm::ArrayRef<uint64_t> args) const;

  /// Throws UserError (E088) if a launch will certainly access elements outside of an argument's
  /// memory. Runs nothing, and takes microseconds.
  void checkCertainAccesses(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args,
                            llvm::ArrayRef<ArgumentMemory> memory) const;

  /// True if a launch is within the limits that the kernel was compiled for, and all tensor maps
  /// can be made. Otherwise the launch fails with E070.
  bool accepts(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args) const noexcept override;

  cuda::Division chooseDivision(int device, llvm::ArrayRef<int32_t> grid,
                                llvm::ArrayRef<uint64_t> args) const noexcept override;

  /// The driver's facts about the kernel on a GPU, a thread's: {"num_registers", "local_bytes",
  /// "log"}. The log is empty unless the driver has assembled the PTX. Loads the kernel there.
  /// Throws UserError (E054, E066).
  std::string getDeviceFacts(int device) const;
  /// The registers of a thread: of a kernel that the driver assembles those on this device, 0 if
  /// the device is -1.
  int countRegisters(int device) const;

  /// Shows the functions of a kernel for the CPU to perf and gdb during its lifetime
  /// (Target/Host/ShownCode.h). Must not be called during a launch.
  void show(bool toPerf, bool toGDB);

  /// The kernel as bytes for the disk cache (metadata and object, no other stage).
  std::string serialize() const;
  /// Loads bytes that `serialize` wrote. Throws InternalError if they are damaged or of another
  /// version.
  static std::unique_ptr<CompiledKernel> deserialize(llvm::StringRef bytes);

private:
  void checkLaunch(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args) const;
  bool isWithinLimits(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args) const noexcept;
  /// The error for a launch that exceeds the limits by which the kernel's indices do not wrap;
  /// nothing if it is within these.
  std::optional<LaunchRefused> describeWrap(llvm::ArrayRef<int32_t> grid,
                                            llvm::ArrayRef<uint64_t> args) const;

  KernelMetadata metadata;
  std::string metadataJSON;
  std::string object; ///< a relocatable object, a cubin, or PTX
  std::vector<std::pair<std::string, std::string>> stages;
  std::unique_ptr<host::LoadedObject> loaded;
  std::unique_ptr<host::ShownCode> shown;
  std::unique_ptr<host::LaunchableKernel> launchable;
  std::unique_ptr<cuda::LoadedKernel> onGPU;
  std::shared_ptr<const cuda::LaunchLimits> limits;
  tessera_limits limitTables; ///< those of `limits`
  std::vector<cuda::ProgramBound> shortLoops;
  std::string missingFeature; ///< of this machine's CPU; empty if the kernel can run
};

} // namespace tessera

#endif // TESSERA_COMPILER_COMPILEDKERNEL_H
