// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry point of the compiler. It compiles a module of IR, with options, to a kernel that can
// be launched.
//
// All state is in the module's MLIRContext and in locals, so different threads may compile kernels
// of different contexts at once. The compiler installs no signal handler, and writes only the files
// that the options name.

#ifndef TESSERA_COMPILER_COMPILER_H
#define TESSERA_COMPILER_COMPILER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Support/ThreadCache.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>

namespace tessera {

/// The names of the stages, in order. A stage is the whole input of the next step, so each can be
/// dumped, edited and resumed from.
///
///     tile      as the front-end built it
///     tile-opt  after the target-free tile pipeline
///     strips    loops of hardware vectors: no tile is left
///     llvm      the LLVM dialect
///     llvmir    optimised LLVM IR
///     asm       assembly, for reading (cannot be resumed from)
///     object    a relocatable object
extern const llvm::ArrayRef<llvm::StringLiteral> kStages;

/// The stages of a kernel for an NVIDIA GPU.
///
///     tile, tile-opt   as above
///     tilegpu          every tile has a layout, shared memory is allocated
///     llvm, llvmir     as above
///     ptx              NVIDIA's virtual assembly
///     cubin            machine code
extern const llvm::ArrayRef<llvm::StringLiteral> kCUDAStages;

/// The options of a compilation (the JSON of tsr_compile).
struct CompileOptions {
  std::string target = "cpu"; ///< "cpu" or "cuda"
  /// "host", or a CPU name that LLVM knows ("x86-64-v3").
  std::string cpu = "host";
  /// Changes to the CPU's features: "+avx2,-avx512f".
  std::string features;
  /// Figures in place of those in the CPU's row of the table, behind its name:
  /// "znver4:bits=256+l1=32768/8". Empty: none. Ignored if `deterministic`.
  std::string cpuRow;
  /// The same bits for any vector width (architecture.md, decision 9).
  bool deterministic = false;
  bool debug = false;
  /// Emit source lines for debuggers into code for the CPU.
  bool lineInfo = false;
  /// Allow fusing a * b + c to one rounding.
  bool fpFusion = true;
  /// Threads of a launch that sets none; 0 is the host's default.
  int numThreads = 0;
  /// Spend several times as long in LLVM ("max") or not ("lite").
  bool tuneMax = false;
  /// For the target "cuda": the architecture, and the warps of a program, a power of two up to 32.
  /// `ptxas` and `libdevice` are paths; if empty, the usual places are searched.
  std::string arch = "sm_90a";
  int numWarps = 4;
  /// The blocks of a cluster, which run a program together.
  int numCTAs = 1;
  /// The blocks of a cluster may divide the program's tiles, or its sums.
  bool divideTiles = true, divideSums = true;
  int numStages = 3; ///< of a pipelined loop that does not say
  /// True for the variant of a kernel for launches whose loops are short.
  bool shortLoops = false;
  /// True if launches may make tensor maps; otherwise a kernel receives its arguments only.
  bool tensorMaps = true;
  /// True if exponentials of f32 below 2^-126 may be 0.
  bool flushResults = true;
  /// Fail if a verifier refuses a planned schedule. For tests and fuzzers.
  bool strictSchedules = false;
  /// For tests: the number of plans of each loop to refuse, from the first on.
  int refusedPlans = 0;
  std::string ptxas;
  std::string libdevice;
  int ptxasTimeout = 300; ///< seconds
  int maxRegisters = 0;   ///< of a thread; 0: ptxas decides
  /// The kernel to compile; may be empty if the module has only one.
  std::string entry;
  /// The stage that the module is of.
  std::string startStage = "tile";
  /// The stage that `lowerForCUDA` brings a module to: "llvm", or "tilegpu" for its schedule alone.
  std::string lastStage = "llvm";
  /// The folder to which each stage is written as `<kernel>.<stage>.<suffix>`, if not empty.
  std::string dumpDir;
  /// The folder whose file of that name replaces the stage, if not empty.
  std::string overrideDir;
  /// The folder to which a failing pass writes a reproducer, if not empty.
  std::string reproducerDir;
  /// Store the text of every stage in the kernel.
  bool keepStages = false;

  /// Throws UserError (E062) for an unknown key, a wrong type or an unknown value.
  static CompileOptions parse(llvm::StringRef json);
};

/// A context in which modules of any stage can be built, parsed and compiled:
/// multi-threading off, dialects loaded on first use.
std::unique_ptr<mlir::MLIRContext> createContext();

/// The same, but reuses a context of this thread if there is one.
ThreadCache<mlir::MLIRContext>::Owner takeContext();

/// Compiles the module's kernel. The module is lowered in place.
///
/// If the module uses an op that the target lacks (a diagnostic contains "not supported on the
/// CPU"), throws UserError (E030) with the diagnostic's location. If a pass fails otherwise, throws
/// InternalError, with a reproducer if the options ask for one.
std::unique_ptr<CompiledKernel> compile(mlir::ModuleOp module, const CompileOptions &options);

/// Lowers a kernel for a GPU to its last stage that is MLIR, "llvm", for the simulator, or to
/// `options.lastStage`. Throws as `compile` does.
void lowerForCUDA(mlir::ModuleOp module, const CompileOptions &options);

/// The tensor maps that each launch of a kernel for a GPU makes from its arguments, and the
/// conditions for them. Empty if the module, of the stage "llvm", has no such attributes.
struct LaunchRecipes {
  std::vector<cuda::TensorMapRecipe> tensorMaps;
  std::vector<cuda::LaunchExpression> conditions;
  std::vector<cuda::ArraysApart> arraysApart;
  int64_t mostPrograms = 0; ///< along an axis of the grid; 0: any number
  std::vector<std::string> programBounds;
  int persistentPrograms = 0; ///< of an SM, that do all of the grid; 0: each its own
  std::optional<cuda::DivisibleSum> divisibleSum;
  std::vector<int> argumentTables; ///< the first argument of each
  std::vector<std::string> shortLoops;
};
LaunchRecipes readLaunchRecipes(mlir::ModuleOp module);

/// Compiles a kernel from the text of a stage that is not MLIR: "llvmir".
std::unique_ptr<CompiledKernel> compileText(llvm::StringRef text, llvm::StringRef fileName,
                                            const CompileOptions &options);

/// JSON about the host: CPU, features, vector bits, threads and who provides them.
std::string getHostInfo();

} // namespace tessera

#endif // TESSERA_COMPILER_COMPILER_H
