// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics. As with a store, the pointers fix the shape.

#include "MemoryOptions.h"

#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

using Semantic = tile::MemSemantic;

static constexpr Semantic kAllSemantics[] = {Semantic::Relaxed, Semantic::Acquire,
                                             Semantic::Release, Semantic::AcquireRelease};

/// Checks what all atomics share: a writable pointer, a number that fits its shape,
/// and a bool mask.
static ValueType checkAtomic(const Operand &ptr, const Operand &value, const Operand &mask,
                             StringRef user) {
  ValueType pointer = requirePointer(ptr, user);
  requireWritable(pointer, user);
  if (!isNumberOperand(value))
    throw UserError("E047", ("the operand of " + user + " is " + value.describe()).str(),
                    "pass a number or a tile");
  checkMask(mask, user);
  checkBroadcastsTo(value, pointer, "a value");
  checkBroadcastsTo(mask, pointer, "a mask");
  return pointer;
}

tile::AtomicKind tessera::chooseAtomicKind(StringRef kind, DType dtype, StringRef user) {
  using K = tile::AtomicKind;
  bool floats = isFloat(dtype), isSigned = isSignedInteger(dtype);
  std::optional<K> chosen;
  if (kind == "add")
    chosen = floats ? K::FAdd : K::Add;
  else if (kind == "max")
    chosen = floats ? K::FMax : isSigned ? K::Max : K::UMax;
  else if (kind == "min")
    chosen = floats ? K::FMin : isSigned ? K::Min : K::UMin;
  else if (kind == "and")
    chosen = K::And;
  else if (kind == "or")
    chosen = K::Or;
  else if (kind == "xor")
    chosen = K::Xor;
  else if (kind == "xchg")
    chosen = K::Exchange;
  else
    throw InternalError(("unknown atomic " + kind).str());

  bool bitwise = kind == "and" || kind == "or" || kind == "xor";
  bool supported = !(bitwise && floats);
  if (getBitWidth(dtype) < 32)
    supported &= kind == "add" && (dtype == DType::FP16 || dtype == DType::BF16);
  if (!supported)
    throw UserError("E047", (user + " of " + getName(dtype)).str(),
                    bitwise ? "it takes integers of 32 and 64 bits"
                    : kind == "add"
                        ? "it takes integers and floats of 32 and 64 bits, fp16 and bf16"
                        : "it takes integers and floats of 32 and 64 bits");
  return *chosen;
}

TileValue MemoryBuilder::atomicRMW(StringRef kind, const Operand &ptr, const Operand &value,
                                   const Operand &mask, StringRef sem, StringRef scope) {
  std::string user = ("atomic_" + kind).str();
  ValueType pointer = checkAtomic(ptr, value, mask, user);
  tile::AtomicKind atomicKind = chooseAtomicKind(kind, pointer.dtype, user);
  Semantic semantic = parseMemSemantic(sem, Semantic::AcquireRelease, kAllSemantics);
  tile::MemScope memScope = parseMemScope(scope);
  ValueType type = ValueType::number(pointer.dtype, pointer.shape);
  Value operand = elementsFor(value, pointer.dtype, pointer.shape);
  Value maskValue = maskOf(mask, pointer.shape);
  return {create<tile::AtomicRMWOp>(ir(type), atomicKind, ptr.value().ir, operand, maskValue,
                                    semantic, memScope),
          type};
}

TileValue MemoryBuilder::atomicCAS(const Operand &ptr, const Operand &compare, const Operand &value,
                                   const Operand &mask, StringRef sem, StringRef scope) {
  ValueType pointer = checkAtomic(ptr, value, mask, "atomic_cas");
  checkAtomic(ptr, compare, Operand(), "atomic_cas");
  if (getBitWidth(pointer.dtype) < 16)
    throw UserError("E047", ("atomic_cas of " + getName(pointer.dtype)).str(),
                    "it takes elements of 16, 32 and 64 bits");
  Semantic semantic = parseMemSemantic(sem, Semantic::AcquireRelease, kAllSemantics);
  tile::MemScope memScope = parseMemScope(scope);
  ValueType type = ValueType::number(pointer.dtype, pointer.shape);
  Value expected = elementsFor(compare, pointer.dtype, pointer.shape);
  Value desired = elementsFor(value, pointer.dtype, pointer.shape);
  Value maskValue = maskOf(mask, pointer.shape);
  return {create<tile::AtomicCASOp>(ir(type), ptr.value().ir, expected, desired, maskValue,
                                    semantic, memScope),
          type};
}

TileValue MemoryBuilder::atomicLoad(const Operand &ptr, const Operand &mask, StringRef sem,
                                    StringRef scope) {
  ValueType pointer = requirePointer(ptr, "atomic_load");
  checkMask(mask, "atomic_load");
  checkBroadcastsTo(mask, pointer, "a mask");
  Semantic semantic =
      parseMemSemantic(sem, Semantic::Acquire, {Semantic::Acquire, Semantic::Relaxed});
  tile::MemScope memScope = parseMemScope(scope);
  ValueType type = ValueType::number(pointer.dtype, pointer.shape);
  Value maskValue = maskOf(mask, pointer.shape);
  return {create<tile::AtomicLoadOp>(ir(type), ptr.value().ir, maskValue, semantic, memScope),
          type};
}

void MemoryBuilder::atomicStore(const Operand &ptr, const Operand &value, const Operand &mask,
                                StringRef sem, StringRef scope) {
  ValueType pointer = checkAtomic(ptr, value, mask, "atomic_store");
  Semantic semantic =
      parseMemSemantic(sem, Semantic::Release, {Semantic::Release, Semantic::Relaxed});
  tile::MemScope memScope = parseMemScope(scope);
  Value stored = elementsFor(value, pointer.dtype, pointer.shape);
  create<tile::AtomicStoreOp>(ptr.value().ir, stored, maskOf(mask, pointer.shape), semantic,
                              memScope);
}
