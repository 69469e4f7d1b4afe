// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes instructions that LLVM and NVVM lack as PTX. These are predicated accesses, accesses with
// an ordering, a scope or a hint, and some instructions of tensor cores and TMA. There is one
// instruction per call (a wait is one with a jump back to it), or a sequence of them for a dot. A
// reader of the LLVM dialect (the simulator) recognises each by its first words.
//
// The list of instructions is closed. The simulator decodes this very text. So it runs and checks
// exactly what ptxas gets, operands, modifiers and predicate included. A test of a dialect's
// operation would not find a mistake in the text.

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
  /// may be anything with effects on memory. With several instructions, no result has the register
  /// of an operand that it is not tied to.
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
