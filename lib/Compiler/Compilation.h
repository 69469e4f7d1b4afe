// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compilation of one kernel through the named stages: the part that all targets share.

#ifndef TESSERA_LIB_COMPILER_COMPILATION_H
#define TESSERA_LIB_COMPILER_COMPILATION_H

#include "tessera/Compiler/Compiler.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/LLVMContext.h"

#include <chrono>
#include <optional>

namespace llvm {
class Module;
} // namespace llvm

namespace tessera {

class Compilation {
public:
  Compilation(const CompileOptions &options, llvm::ArrayRef<llvm::StringLiteral> stageNames);
  virtual ~Compilation() = default;

  /// Continues from the text of the stage "llvmir".
  std::unique_ptr<CompiledKernel> compileText(llvm::StringRef text, llvm::StringRef fileName);

protected:
  /// Generates machine code, and the metadata that the launcher needs.
  virtual std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code) = 0;
  /// Chooses the kernel, and lowers the module to "tile-opt", the last stage that all targets
  /// share.
  void lowerTile(mlir::ModuleOp module);
  /// Lowers the module to a stage by the passes that `build` adds. Does nothing for stages before
  /// the module's own, and runs no passes for that one.
  void lower(mlir::ModuleOp module, llvm::StringRef stage,
             llvm::function_ref<void(mlir::OpPassManager &)> build);
  /// Translates the module to LLVM IR, and writes the kernel's metadata into it. Only the kernel
  /// has external linkage.
  std::unique_ptr<llvm::Module> translate(mlir::ModuleOp module);
  /// Replaces the LLVM IR by the user's edited one, if there is one.
  void replaceByOverride(std::unique_ptr<llvm::Module> &code);

  /// True if the options ask for the stages' text.
  bool isShown() const { return options.keepStages || !options.dumpDir.empty(); }
  /// Stores and dumps the text of a stage.
  void show(llvm::StringRef stage, const std::string &text);
  std::optional<std::string> readOverride(llvm::StringRef stage) const;
  /// Throws if LLVM has reported errors.
  void checkLLVM(llvm::StringRef step) const;
  /// Records the time since the last call as that of `stage`.
  void record(llvm::StringRef stage);

  const CompileOptions &options;
  llvm::ArrayRef<llvm::StringLiteral> stageNames;
  KernelMetadata metadata;
  std::vector<std::pair<std::string, std::string>> stages;
  llvm::LLVMContext llvmContext;
  bool hasForeignCode = true; ///< such that may not be valid
  bool seesMachine = true;    ///< so that the machine has to be the one that was asked for

private:
  void replaceByOverride(mlir::ModuleOp module, llvm::StringRef stage);

  std::string llvmErrors;
  std::chrono::steady_clock::time_point lastTime = std::chrono::steady_clock::now();
};

std::unique_ptr<CompiledKernel> compileForHost(mlir::ModuleOp module,
                                               const CompileOptions &options);
std::unique_ptr<CompiledKernel> compileForHost(llvm::StringRef llvmIR, llvm::StringRef fileName,
                                               const CompileOptions &options);
std::unique_ptr<CompiledKernel> compileForCUDA(mlir::ModuleOp module,
                                               const CompileOptions &options);
std::unique_ptr<CompiledKernel> compileForCUDA(llvm::StringRef llvmIR, llvm::StringRef fileName,
                                               const CompileOptions &options);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_COMPILATION_H
