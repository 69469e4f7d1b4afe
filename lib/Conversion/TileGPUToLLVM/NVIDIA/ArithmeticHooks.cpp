// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix multiply-accumulate, functions and conversions. mma.sync is NVVM's op; wgmma is PTX,
// since NVVM has no form with an operand in registers and none whose scale is a value.

#include "InlinePTX.h"
#include "NVIDIAHooks.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

static Value callIntrinsic(ThreadBuilder &thread, StringRef name, Type result,
                           ValueRange operands) {
  return thread
      .create<LLVM::CallIntrinsicOp>(result, thread.getBuilder().getStringAttr(name), operands)
      .getResult(0);
}

/// PTX's name of the elements that an MMA multiplies.
static StringRef getElementName(Type element) {
  if (element.isF64())
    return "f64";
  if (element.isF16())
    return "f16";
  if (element.isBF16())
    return "bf16";
  if (element.isF32())
    return "tf32";
  if (element.isInteger(8))
    return "s8";
  return isa<Float8E5M2Type>(element) ? "e5m2" : "e4m3";
}

/// For 8-bit floats, which NVVM's op does not support.
static Value emitFloat8MMA(ThreadBuilder &thread, const WarpMMA &mma, Type result,
                           ArrayRef<Value> words) {
  std::string name = "llvm.nvvm.mma.m16n8k32.row.col.f32." + getElementName(mma.element).str() +
                     "." + getElementName(mma.elementB).str() + ".f32";
  return callIntrinsic(thread, name, result, words);
}

static Value emitMMA(ThreadBuilder &thread, const WarpMMA &mma, Type result, ArrayRef<Value> wordsA,
                     ArrayRef<Value> wordsB, ArrayRef<Value> accumulator) {
  NVVM::MMATypes type = *NVVM::symbolizeMMATypes(getElementName(mma.element));
  std::optional<NVVM::MMAIntOverflow> overflow;
  if (type == NVVM::MMATypes::s8)
    overflow = NVVM::MMAIntOverflow::wrapped;
  std::array<int64_t, 3> shape = {mma.m, mma.n, mma.k};
  return thread.create<NVVM::MmaOp>(
      result, wordsA, wordsB, accumulator, ArrayRef<int64_t>(shape), /*b1Op=*/std::nullopt,
      overflow, std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
}

SmallVector<Value> NVIDIAHooks::emitWarpMMA(ThreadBuilder &thread, const WarpMMA &mma,
                                            ArrayRef<Value> wordsA, ArrayRef<Value> wordsB,
                                            ArrayRef<Value> accumulator) const {
  SmallVector<Type> types(ValueRange(accumulator).getTypes());
  Type result = LLVM::LLVMStructType::getLiteral(thread.getBuilder().getContext(), types);
  bool isFloat8 = isa<FloatType>(mma.element) && mma.element.getIntOrFloatBitWidth() == 8;
  Value made =
      isFloat8
          ? emitFloat8MMA(thread, mma, result,
                          llvm::to_vector(llvm::concat<const Value>(wordsA, wordsB, accumulator)))
          : emitMMA(thread, mma, result, wordsA, wordsB, accumulator);
  SmallVector<Value> results;
  for (unsigned index = 0; index < types.size(); ++index)
    results.push_back(thread.create<LLVM::ExtractValueOp>(made, index));
  return results;
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

// wgmma is asynchronous, which LLVM does not model: the operands must be in their registers when
// the instruction is issued, and the accumulator may be read only after the wait. So the wait has
// all affected words as tied operands and results, and no use can move across. The fence and the
// instructions of a dot are one text of assembly. LLVM takes long for a text that has an
// accumulator as operands and results, which may be 128 registers.

/// PTX of one instruction. `words` has the names of its accumulator's words by their numbers,
/// `name` gives those of other operands.
static std::string printWarpgroupMMA(const WarpgroupMMA &mma,
                                     const llvm::MapVector<int64_t, std::string> &words,
                                     llvm::function_ref<std::string(Value)> name) {
  auto list = [](auto &&range, auto print) {
    return "{" + llvm::join(llvm::map_range(range, print), ", ") + "}";
  };
  std::string text =
      "wgmma.mma_async.sync.aligned.m64n" + std::to_string(mma.n) + "k" + std::to_string(mma.k);
  text += mma.accumulator.isF16() ? ".f16" : mma.accumulator.isF32() ? ".f32" : ".s32";
  text += "." + getElementName(mma.elementA).str() + "." + getElementName(mma.elementB).str();
  text += " " + list(mma.numbers, [&](int64_t number) { return words.lookup(number); }) + ", ";
  text += mma.descriptorA ? name(mma.descriptorA) : list(mma.wordsA, name);
  text += ", " + name(mma.descriptorB);
  text += ", " + name(mma.accumulates);
  if (!mma.elementA.isInteger(8))
    text += ", 1, 1";
  if (mma.elementA.getIntOrFloatBitWidth() == 16) {
    if (mma.descriptorA)
      text += mma.isKMajorA ? ", 0" : ", 1";
    text += mma.isKMajorB ? ", 0" : ", 1";
  }
  return text + ";";
}

void NVIDIAHooks::emitWarpgroupMMAs(ThreadBuilder &thread, ArrayRef<WarpgroupMMA> mmas,
                                    Words accumulators) const {
  InlinePTX assembly(thread);
  llvm::MapVector<int64_t, std::string> words;
  for (const WarpgroupMMA &mma : mmas)
    for (int64_t number : mma.numbers)
      if (auto [entry, isNew] = words.try_emplace(number); isNew)
        entry->second = assembly.addResult(accumulators[number]);
  llvm::DenseMap<Value, std::string> names;
  auto name = [&](Value value) {
    auto [entry, isNew] = names.try_emplace(value);
    if (isNew)
      entry->second = assembly.addOperand(value);
    return entry->second;
  };
  std::string text = "wgmma.fence.sync.aligned;";
  for (const WarpgroupMMA &mma : mmas)
    text += "\n" + printWarpgroupMMA(mma, words, name);
  SmallVector<Value> results = assembly.emit(text);
  for (auto [entry, result] : llvm::zip_equal(words, results))
    accumulators[entry.first] = result;
}

void NVIDIAHooks::emitWarpgroupCommit(ThreadBuilder &thread) const {
  thread.create<NVVM::WgmmaGroupSyncAlignedOp>();
}

void NVIDIAHooks::emitWarpgroupWait(ThreadBuilder &thread, unsigned pending,
                                    ArrayRef<Words> words) const {
  InlinePTX instruction(thread);
  for (Words list : words)
    for (Value word : list)
      instruction.addResult(word);
  SmallVector<Value> results =
      instruction.emit("wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";");
  size_t next = 0;
  for (Words list : words)
    for (Value &word : list)
      word = results[next++];
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value NVIDIAHooks::emitFastFunction(ThreadBuilder &thread, FastFunction function, Value x) const {
  Type type = x.getType();
  switch (function) {
  case FastFunction::Exp2:
    return callIntrinsic(thread, "llvm.nvvm.ex2.approx", type, x);
  case FastFunction::Exp2Flushing:
    return callIntrinsic(thread, "llvm.nvvm.ex2.approx.ftz", type, x);
  case FastFunction::Sqrt:
    return callIntrinsic(thread, "llvm.nvvm.sqrt.approx.f", type, x);
  case FastFunction::Rsqrt:
    return callIntrinsic(thread, "llvm.nvvm.rsqrt.approx.f", type, x);
  case FastFunction::Reciprocal:
    return thread.create<NVVM::RcpApproxFtzF32Op>(type, x);
  }
  llvm_unreachable("covered switch");
}

bool NVIDIAHooks::isReciprocal(Operation *op) const { return isa<NVVM::RcpApproxFtzF32Op>(op); }

Value NVIDIAHooks::emitFastDivide(ThreadBuilder &thread, Value lhs, Value rhs) const {
  return callIntrinsic(thread, "llvm.nvvm.div.full", lhs.getType(), {lhs, rhs});
}

Value NVIDIAHooks::emitToInt32(ThreadBuilder &thread, Value x, bool isSigned) const {
  return callIntrinsic(thread, isSigned ? "llvm.nvvm.f2i.rz" : "llvm.nvvm.f2ui.rz",
                       thread.intType(32), x);
}

Value NVIDIAHooks::emitToF64TowardZero(ThreadBuilder &thread, Value x, bool isSigned) const {
  return callIntrinsic(thread, isSigned ? "llvm.nvvm.ll2d.rz" : "llvm.nvvm.ull2d.rz",
                       thread.getBuilder().getF64Type(), x);
}

Value NVIDIAHooks::emitToFloat8Pair(ThreadBuilder &thread, Value upper, Value lower,
                                    bool isE4M3) const {
  return callIntrinsic(thread, isE4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn",
                       thread.intType(16), {upper, lower});
}

Value NVIDIAHooks::emitToHalfPair(ThreadBuilder &thread, Type type, Value upper,
                                  Value lower) const {
  return callIntrinsic(thread, type.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn",
                       VectorType::get({2}, type), {upper, lower});
}
