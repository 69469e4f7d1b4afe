// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses the statements of inline PTX, and chooses the decoder of each.

#ifndef TESSERA_LIB_SIMULATOR_INLINEPTX_H
#define TESSERA_LIB_SIMULATOR_INLINEPTX_H

#include "Decoder.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::simulator {

struct WarpAccess;

struct PTXOperand {
  enum Kind { Scalar, Immediate, Vector, Address } kind = Scalar;
  llvm::SmallVector<Register, 4> registers; ///< of an address, its base
  int64_t offset = 0;                       ///< of an address; an immediate's value
  unsigned width = 0;
  llvm::SmallVector<Register, 4> more; ///< what an address has besides: coordinates
};

struct PTXInstr {
  llvm::StringRef text;
  llvm::SmallVector<llvm::StringRef, 6> words; ///< of the opcode, between dots
  llvm::SmallVector<PTXOperand, 4> operands;
  Register predicate = kNoRegister;
  bool isNegated = false;
};

/// The text of one inline_asm.
class PTXText {
public:
  PTXText(Decoder &decoder, mlir::LLVM::InlineAsmOp op);
  void decode();

private:
  void bindOperands();
  void declare(llvm::StringRef text);
  void decodeStatement(llvm::StringRef statement);
  bool decodeLoop(const PTXInstr &instr, llvm::StringRef label);
  std::optional<PTXOperand> parseOperand(llvm::StringRef text);
  static llvm::SmallVector<llvm::StringRef> splitOperands(llvm::StringRef text);
  void emitMove(Register to, Register from);
  [[noreturn]] void refuse(llvm::StringRef statement) const;

  Decoder &decoder;
  mlir::LLVM::InlineAsmOp op;
  Registers results;
  llvm::SmallVector<std::pair<Register, unsigned>> places; ///< $0, $1, ... and their widths
  llvm::StringMap<std::pair<Register, unsigned>> names;
  llvm::StringMap<size_t> labels; ///< the number of the next instruction
};

unsigned getPTXWidth(llvm::StringRef type);

// True if the instruction is of the family; it is decoded then.
bool decodeMemoryPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeWarpgroupPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeAsyncPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeTransactionPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeBulkPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeClusterPTX(Decoder &decoder, const PTXInstr &instr);
bool decodeTensorMapPTX(Decoder &decoder, const PTXInstr &instr);
/// Which atomic operation an instruction names, and its type of floats; false if none.
bool readAtomicKind(Decoder &decoder, const PTXInstr &instr, WarpAccess &access);
/// Turns a try_wait from instruction `first` on into a wait until its result `over` is true.
/// Returns false if there are other instructions.
bool decodeWaitLoop(Decoder &decoder, size_t first, Register over);
bool decodeArithmeticPTX(Decoder &decoder, const PTXInstr &instr);

/// The handler of "add", "xor", ... ; null if there is none.
Handler findIntegerHandler(llvm::StringRef opcode, bool isSigned);
Handler findFloatHandler(Decoder &decoder, llvm::StringRef opcode, llvm::StringRef type);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_INLINEPTX_H
