// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the LLVM dialect to LLVM IR, and from there to code.

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

/// Throws InternalError if something in the module has no translation or, if asked to `verify`,
/// is no valid LLVM IR.
std::unique_ptr<llvm::Module> translateToLLVMIR(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                bool verify = true);

/// Throws UserError (E062) with the place if the text is no valid LLVM IR: only a file
/// that a user has edited is ever read.
std::unique_ptr<llvm::Module> parseLLVMIR(llvm::StringRef text, llvm::StringRef fileName,
                                          llvm::LLVMContext &context);

/// True if no function has more than one block.
bool isStraight(const llvm::Module &module);

/// Makes every function one for the machine's CPU, with vectors of up to `vectorBits`.
void setTarget(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef cpu,
               llvm::StringRef features, int vectorBits);

enum class OptimizationLevel {
  /// The passes that loops of explicit vectors still need, in half the time of O3.
  Lite,
  /// The passes of O3 for a function, without those that vectorize: the code here has vectors
  /// already.
  Max,
};
void optimize(llvm::Module &module, llvm::TargetMachine &machine, OptimizationLevel level);

/// Makes each masked store of which a constant mask leaves one lane a store of that element.
void storeSingleLanes(llvm::Module &module);

/// If a module has many gathers and scatters that the machine does lane by lane, makes them calls
/// of one function for each kind: their code would take seconds to generate.
void outlineLaneAccesses(llvm::Module &module, llvm::TargetMachine &machine);

/// A relocatable object. The module is spent afterwards.
std::string emitObject(llvm::Module &module, llvm::TargetMachine &machine);
/// The same as assembly.
std::string emitAssembly(llvm::Module &module, llvm::TargetMachine &machine);

std::string printLLVMIR(const llvm::Module &module);

} // namespace tessera

#endif // TESSERA_TARGET_LLVMIR_LLVMIR_H
