// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module of LLVM and NVVM operations to bytecode. Each family of operations is
// decoded in a file of its own, next to the handlers that run it.

#ifndef TESSERA_LIB_SIMULATOR_DECODER_H
#define TESSERA_LIB_SIMULATOR_DECODER_H

#include "Bytecode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::simulator {

/// The registers of a value, one a scalar.
using Registers = llvm::SmallVector<Register, 2>;

class Decoder {
public:
  Decoder(mlir::ModuleOp module, Image &image);

  /// Takes apart every function that has a body.
  void run();

  // --- For the families ---

  const Registers &get(mlir::Value value);
  Register getScalar(mlir::Value value) { return get(value).front(); }
  /// The registers of scalars.
  Registers getEach(mlir::ValueRange values);
  /// Fresh registers for a result.
  Registers define(mlir::Value value);
  /// A result that is these registers already.
  void alias(mlir::Value value, Registers registers) { values[value] = std::move(registers); }
  Register newRegister() { return static_cast<Register>(code->numRegisters++); }
  Register constant(uint64_t bits);
  /// Rubbish, as an undefined value of that width.
  Register undefined(unsigned width);

  Instr &emit(Handler run, llvm::ArrayRef<Register> results, llvm::ArrayRef<Register> operands,
              Flow flow = Flow::Next);
  size_t getNumInstrs() const { return code->instrs.size(); }
  Instr &getInstr(size_t number) { return code->instrs[number]; }
  /// Has the instructions from number `first` on run only in lanes where it holds.
  void predicate(size_t first, Register predicate, bool isNegated);
  template <typename T> const T *keep(T detail) {
    auto kept = std::make_shared<T>(std::move(detail));
    image.details.push_back(kept);
    return kept.get();
  }
  const Code *findFunction(llvm::StringRef name) const;
  /// The place of a global: an address, or an offset in shared memory.
  std::optional<uint64_t> findGlobal(llvm::StringRef name) const;
  static uint64_t sizeOf(mlir::Type type);
  static uint64_t alignmentOf(mlir::Type type);
  uint32_t allocateLocal(uint64_t bytes, uint64_t alignment);

  /// Throws UserError E068: the simulator does not know `what`.
  [[noreturn]] void refuse(const llvm::Twine &what) const;

  mlir::ModuleOp getModule() const { return module; }

private:
  void placeGlobals();
  void decode(mlir::LLVM::LLVMFuncOp function);
  void decode(mlir::Operation &op);
  void decodeTerminator(mlir::Operation &op, const llvm::DenseMap<mlir::Block *, unsigned> &order);
  Edge makeEdge(mlir::Block *block, mlir::ValueRange operands,
                const llvm::DenseMap<mlir::Block *, unsigned> &order);

  mlir::ModuleOp module;
  Image &image;
  Code *code = nullptr;
  mlir::Operation *current = nullptr;
  llvm::DenseMap<mlir::Value, Registers> values;
  std::map<uint64_t, Register> constants;
  std::map<std::string, uint64_t> globals;
};

/// The scalars of a type, in order. An integer of 128 bits has two, the low one first.
llvm::SmallVector<mlir::Type> getScalars(mlir::Type type);
/// Bits of a scalar; pointers have 64, those to shared memory too.
unsigned getWidth(mlir::Type scalar);

// True if the operation is of the family; it is decoded then.
bool decodeInteger(Decoder &decoder, mlir::Operation &op);
bool decodeFloat(Decoder &decoder, mlir::Operation &op);
bool decodeMemory(Decoder &decoder, mlir::Operation &op);
bool decodeCalls(Decoder &decoder, mlir::Operation &op);
bool decodeWarp(Decoder &decoder, mlir::Operation &op);
/// A barrier of warps. Operands: its number, and how many threads if not all; `immediate`
/// 1 arrives and does not wait.
void runBarrier(Warp &warp, const Instr &instr, Lanes lanes);

/// A register such as %tid.x of inline PTX, read into another one; none if it is not known.
std::optional<Register> decodeSpecialRegister(Decoder &decoder, llvm::StringRef name);

bool decodeMatrix(Decoder &decoder, mlir::Operation &op);
bool decodeWarpgroup(Decoder &decoder, mlir::Operation &op);
bool decodeTransaction(Decoder &decoder, mlir::Operation &op);
bool decodeBulk(Decoder &decoder, mlir::Operation &op);
bool decodeCluster(Decoder &decoder, mlir::Operation &op);
bool decodeTensorMap(Decoder &decoder, mlir::Operation &op);
bool decodeAsync(Decoder &decoder, mlir::Operation &op);
bool decodeInlinePTX(Decoder &decoder, mlir::Operation &op);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_DECODER_H
