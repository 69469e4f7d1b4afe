// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions that LLVM has no operation for, written as PTX: predicated accesses, and accesses
// with an ordering, a scope or a hint; what tensor cores and TMA need beyond NVVM. There is one
// instruction per call (a wait is one with a jump back to it). So a reader of the LLVM dialect (the
// simulator) recognises it by its first words.
//
// Which instructions is a closed list. Each is one that the simulator decodes from this very
// text: what it has run and watched is what ptxas gets, operands, modifiers and predicate
// included. A test of an instruction's operation would not see a text that says something else.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_INLINEPTX_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_INLINEPTX_H

#include "tessera/Conversion/TileGPUToLLVM/ThreadBuilder.h"

namespace tessera {

/// An instruction under construction. Results come first, `$0` up; then operands; a
/// result that keeps its initial value where the predicate is false is tied to it.
class InlinePTX {
public:
  explicit InlinePTX(ThreadBuilder &thread) : thread(thread) {}

  /// Adds a result of `type` (bits of 16, 32 or 64) and gives its name.
  std::string addResult(mlir::Type type);
  /// As addResult, with the value that it has if the instruction is not executed.
  std::string addResult(mlir::Value initial);
  /// Adds an operand and gives its name. All results come before the first operand.
  std::string addOperand(mlir::Value value);

  /// Emits `text` (with a ";") where `predicate` holds, always if that is null. The text
  /// may be anything with effects on memory.
  llvm::SmallVector<mlir::Value> emit(llvm::StringRef text, mlir::Value predicate = {});

  /// The constraint letter for values of a type.
  static llvm::StringRef getConstraint(mlir::Type type);

private:
  ThreadBuilder &thread;
  llvm::SmallVector<mlir::Type> resultTypes;
  llvm::SmallVector<mlir::Value> initials;
  llvm::SmallVector<unsigned> initialResults;
  llvm::SmallVector<mlir::Value> operands;
};

/// How the instructions begin that InlinePTX writes, each once; others are not emitted.
llvm::ArrayRef<llvm::StringLiteral> getInlineInstructions();

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_INLINEPTX_H
