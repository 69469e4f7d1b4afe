// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel on its way through the named stages: what is the same for every target.

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

  /// Goes on from the text of the stage "llvmir".
  std::unique_ptr<CompiledKernel> compileText(llvm::StringRef text, llvm::StringRef fileName);

protected:
  /// Machine code of LLVM IR, and what the launcher asks of it.
  virtual std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code) = 0;
  /// Chooses the kernel, and brings the module to "tile-opt", the last stage that is the
  /// same for every target.
  void lowerTile(mlir::ModuleOp module);
  /// Brings the module to a stage by the passes that `build` adds. Does nothing for
  /// stages that lie before the module's own, and runs nothing for that one.
  void lower(mlir::ModuleOp module, llvm::StringRef stage,
             llvm::function_ref<void(mlir::OpPassManager &)> build);
  /// The module in LLVM IR, with what the kernel's launch needs to know written into it.
  /// The kernel alone is seen from outside.
  std::unique_ptr<llvm::Module> translate(mlir::ModuleOp module);
  /// Puts the user's edited LLVM IR in the place of ours, if there is any.
  void replaceByOverride(std::unique_ptr<llvm::Module> &code);

  /// True if anybody wants to see a stage.
  bool isShown() const { return options.keepStages || !options.dumpDir.empty(); }
  /// Keeps and dumps the text of a stage.
  void show(llvm::StringRef stage, const std::string &text);
  std::optional<std::string> readOverride(llvm::StringRef stage) const;
  /// Throws what LLVM has reported since the last call.
  void checkLLVM(llvm::StringRef step) const;
  /// The time since the last call goes to `stage`.
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
