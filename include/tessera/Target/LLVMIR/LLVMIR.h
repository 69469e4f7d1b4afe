// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Translates the LLVM dialect to LLVM IR, and optimises and compiles LLVM IR.

#ifndef TESSERA_TARGET_LLVMIR_LLVMIR_H
#define TESSERA_TARGET_LLVMIR_LLVMIR_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace tessera {

/// Translates a module. Throws InternalError if an op has no translation or, with `verify`, if the
/// result is not valid LLVM IR.
std::unique_ptr<llvm::Module> translateToLLVMIR(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                bool verify = true);

/// Parses text that a user has edited. Throws UserError (E062) with the location if it is not valid
/// LLVM IR.
std::unique_ptr<llvm::Module> parseLLVMIR(llvm::StringRef text, llvm::StringRef fileName,
                                          llvm::LLVMContext &context);

/// True if no function has more than one block.
bool isStraight(const llvm::Module &module);

/// Sets the CPU, the features and the widest vectors (`vectorBits`) of every function.
void setTarget(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef cpu,
               llvm::StringRef features, int vectorBits);

enum class OptimizationLevel {
  /// The passes that loops of explicit vectors still need, in half the time of O3.
  Lite,
  /// O3's passes for functions without the vectorizers, since the code is vectorised.
  Max,
};
void optimize(llvm::Module &module, llvm::TargetMachine &machine, OptimizationLevel level);

/// Replaces each masked store whose constant mask has one lane on by a store of that element.
void storeSingleLanes(llvm::Module &module);

/// If a module has many gathers and scatters that the machine lacks, replaces them by calls of one
/// function for each kind. Expanding each of them would take seconds.
void outlineLaneAccesses(llvm::Module &module, llvm::TargetMachine &machine);

/// A relocatable object. The module is spent afterwards.
std::string emitObject(llvm::Module &module, llvm::TargetMachine &machine);
/// The same as assembly.
std::string emitAssembly(llvm::Module &module, llvm::TargetMachine &machine);

std::string printLLVMIR(const llvm::Module &module);

} // namespace tessera

#endif // TESSERA_TARGET_LLVMIR_LLVMIR_H
