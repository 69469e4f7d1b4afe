// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses to global memory with a predicate, a hint or an ordering: one instruction each, as
// PTX. LLVM 22 has branches for the first, drops hints, and the ordering and scope of atomics.

#include "InlinePTX.h"
#include "NVIDIAHooks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// An eviction priority is a hint about L1; an instruction has it or a cache operator.
static std::string getModifier(const AccessHints &hints, bool isLoad) {
  switch (hints.cache) {
  case tile::CacheModifier::None:
    break;
  case tile::CacheModifier::CA:
    return isLoad ? ".ca" : "";
  case tile::CacheModifier::CG:
    return ".cg";
  case tile::CacheModifier::CS:
    return ".cs";
  case tile::CacheModifier::CV:
    return isLoad ? ".cv" : "";
  case tile::CacheModifier::WB:
    return isLoad ? "" : ".wb";
  case tile::CacheModifier::WT:
    return isLoad ? "" : ".wt";
  }
  switch (hints.evict) {
  case tile::EvictionPolicy::Normal:
    return "";
  case tile::EvictionPolicy::First:
    return ".L1::evict_first";
  case tile::EvictionPolicy::Last:
    return ".L1::evict_last";
  }
  return "";
}

static std::string getSuffix(AccessWords words) {
  return (words.count == 1 ? "" : ".v" + std::to_string(words.count)) + ".b" +
         std::to_string(words.bits);
}

static std::string braced(ArrayRef<std::string> names) {
  return names.size() == 1 ? names.front() : "{" + llvm::join(names, ", ") + "}";
}

bool NVIDIAHooks::isPlain(const AccessHints &hints, bool isLoad) const {
  return !hints.isVolatile && getModifier(hints, isLoad).empty();
}

SmallVector<Value> NVIDIAHooks::emitLoad(ThreadBuilder &thread, Value address, AccessWords words,
                                         const AccessHints &hints, ArrayRef<Value> initial,
                                         Value predicate) const {
  InlinePTX instruction(thread);
  SmallVector<std::string> names;
  for (unsigned i = 0; i < words.count; ++i)
    names.push_back(predicate ? instruction.addResult(initial[i])
                              : instruction.addResult(words.getType(thread)));
  std::string from = instruction.addOperand(address);
  std::string operation =
      hints.isVolatile ? "ld.volatile.global" : "ld.global" + getModifier(hints, /*isLoad=*/true);
  return instruction.emit(operation + getSuffix(words) + " " + braced(names) + ", [" + from + "];",
                          predicate);
}

void NVIDIAHooks::emitStore(ThreadBuilder &thread, Value address, AccessWords words,
                            const AccessHints &hints, ArrayRef<Value> values,
                            Value predicate) const {
  InlinePTX instruction(thread);
  std::string to = instruction.addOperand(address);
  SmallVector<std::string> names;
  for (Value value : values)
    names.push_back(instruction.addOperand(value));
  instruction.emit("st.global" + getModifier(hints, /*isLoad=*/false) + getSuffix(words) + " [" +
                       to + "], " + braced(names) + ";",
                   predicate);
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static StringRef getScope(AtomicOrder order) {
  static constexpr llvm::StringLiteral scopes[] = {".cta", ".gpu", ".sys"};
  if (order.isOfCluster)
    return ".cluster";
  return scopes[static_cast<unsigned>(order.scope)];
}

static std::string getOrdering(AtomicOrder order) {
  static constexpr llvm::StringLiteral sems[] = {".relaxed", ".acquire", ".release", ".acq_rel"};
  return (sems[static_cast<unsigned>(order.semantic)] + getScope(order)).str();
}

static unsigned getWidth(Type type) {
  return isa<LLVM::LLVMPointerType>(type) ? 64 : type.getIntOrFloatBitWidth();
}

/// The operation and type of an `atom` for a kind; empty where there is none.
static std::string getAtomic(tile::AtomicKind kind, Type type, const GPUMachine &machine) {
  unsigned width = getWidth(type);
  std::string bits = std::to_string(width);
  if (kind == tile::AtomicKind::FAdd) {
    if (type.isF32() || type.isF64())
      return ".add.f" + bits;
    if (type.isF16())
      return ".add.noftz.f16";
    return type.isBF16() && machine.hasBF16Atomics ? ".add.noftz.bf16" : "";
  }
  if (width < 32)
    return "";
  switch (kind) {
  case tile::AtomicKind::Add:
    return ".add.u" + bits;
  case tile::AtomicKind::And:
    return ".and.b" + bits;
  case tile::AtomicKind::Or:
    return ".or.b" + bits;
  case tile::AtomicKind::Xor:
    return ".xor.b" + bits;
  case tile::AtomicKind::Max:
    return ".max.s" + bits;
  case tile::AtomicKind::Min:
    return ".min.s" + bits;
  case tile::AtomicKind::UMax:
    return ".max.u" + bits;
  case tile::AtomicKind::UMin:
    return ".min.u" + bits;
  case tile::AtomicKind::Exchange:
    return ".exch.b" + bits;
  case tile::AtomicKind::FAdd:
  case tile::AtomicKind::FMax:
  case tile::AtomicKind::FMin:
    return "";
  }
  return "";
}

bool NVIDIAHooks::hasAtomic(tile::AtomicKind kind, Type type) const {
  return !getAtomic(kind, type, machine).empty();
}

/// The result is kept even if unused: `red` takes no ordering above release, and ptxas turns an
/// `atom` without a use into it.
SmallVector<Value> NVIDIAHooks::emitAtomic(ThreadBuilder &thread, tile::AtomicKind kind,
                                           AtomicOrder order, Value address, ArrayRef<Value> values,
                                           Value predicate) const {
  Type type = values.front().getType(), inRegister = type;
  // Floats as what the instruction takes.
  if (kind != tile::AtomicKind::FAdd || !(type.isF32() || type.isF64()))
    inRegister = thread.intType(std::max(16u, getWidth(type)));
  InlinePTX ptx(thread);
  SmallVector<std::string> results, operands;
  for (size_t i = 0; i < values.size(); ++i)
    results.push_back(predicate ? ptx.addResult(thread.zero(inRegister))
                                : ptx.addResult(inRegister));
  std::string where = ptx.addOperand(address);
  for (Value value : values)
    operands.push_back(ptx.addOperand(thread.bitcast(value, inRegister)));
  std::string operation = getAtomic(kind, type, machine);
  if (values.size() > 1) // in front of the type
    operation.insert(operation.rfind('.'), ".v" + std::to_string(values.size()));
  SmallVector<Value> old =
      ptx.emit("atom" + getOrdering(order) + ".global" + operation + " " + braced(results) + ", [" +
                   where + "], " + braced(operands) + ";",
               predicate);
  for (Value &value : old)
    value = thread.bitcast(value, type);
  return old;
}

void NVIDIAHooks::emitFence(ThreadBuilder &thread, AtomicOrder order) const {
  InlinePTX(thread).emit(("fence.acq_rel" + getScope(order) + ";").str());
}

Value NVIDIAHooks::emitCompareAndSwap(ThreadBuilder &thread, AtomicOrder order, Value address,
                                      Value compare, Value value, Value predicate) const {
  Type bits = compare.getType();
  InlinePTX instruction(thread);
  std::string result =
      predicate ? instruction.addResult(thread.constant(bits, 0)) : instruction.addResult(bits);
  std::string where = instruction.addOperand(address);
  std::string expected = instruction.addOperand(compare);
  std::string desired = instruction.addOperand(value);
  std::string text = "atom" + getOrdering(order) + ".global.cas.b" +
                     std::to_string(bits.getIntOrFloatBitWidth()) + " " + result + ", [" + where +
                     "], " + expected + ", " + desired + ";";
  return instruction.emit(text, predicate).front();
}

Value NVIDIAHooks::emitAtomicLoad(ThreadBuilder &thread, AtomicOrder order, Value address,
                                  unsigned width, Value predicate) const {
  Type bits = thread.intType(std::max(16u, width));
  InlinePTX instruction(thread);
  std::string result =
      predicate ? instruction.addResult(thread.constant(bits, 0)) : instruction.addResult(bits);
  std::string where = instruction.addOperand(address);
  std::string text = "ld" + getOrdering(order) + ".global.b" + std::to_string(width) + " " +
                     result + ", [" + where + "];";
  return instruction.emit(text, predicate).front();
}

void NVIDIAHooks::emitAtomicStore(ThreadBuilder &thread, AtomicOrder order, Value address,
                                  unsigned width, Value value, Value predicate) const {
  InlinePTX ptx(thread);
  std::string where = ptx.addOperand(address), what = ptx.addOperand(value);
  ptx.emit("st" + getOrdering(order) + ".global.b" + std::to_string(width) + " [" + where + "], " +
               what + ";",
           predicate);
}

void NVIDIAHooks::emitPrefetch(ThreadBuilder &thread, Value address, Value bytes,
                               Value predicate) const {
  InlinePTX instruction(thread);
  std::string text = "cp.async.bulk.prefetch.L2.global [" + instruction.addOperand(address) + "], ";
  instruction.emit(text + instruction.addOperand(bytes) + ";", predicate);
}
