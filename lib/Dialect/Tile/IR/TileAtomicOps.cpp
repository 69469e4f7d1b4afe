// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

/// (A1) and (A2): value and mask fit the pointers.
static LogicalResult verifyAccess(Operation *op, Value ptr, Type value, Value mask) {
  Type pointers = ptr.getType();
  Type wanted =
      withElementType(pointers, cast<PointerType>(getElementTypeOrSelf(pointers)).getPointee());
  if (value != wanted)
    return op->emitOpError("has a value of type ") << value << " for pointers of type " << pointers;
  if (mask && (getShape(mask.getType()) != getShape(pointers) ||
               getEncoding(mask.getType()) != getEncoding(pointers)))
    return op->emitOpError("has a mask of type ")
           << mask.getType() << " for pointers of type " << pointers;
  return success();
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using EffectList = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// All kinds read and write, since programs synchronise by them. So an atomic is neither repeated
/// nor dropped.
template <typename Op> static void getAtomicEffects(Op op, EffectList &effects) {
  OpOperand &place = op.getPtrMutable();
  effects.emplace_back(MemoryEffects::Read::get(), &place);
  effects.emplace_back(MemoryEffects::Write::get(), &place);
  if (op.getSem() == MemSemantic::Relaxed)
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void AtomicLoadOp::getEffects(EffectList &effects) { getAtomicEffects(*this, effects); }

void AtomicStoreOp::getEffects(EffectList &effects) { getAtomicEffects(*this, effects); }

void AtomicRMWOp::getEffects(EffectList &effects) { getAtomicEffects(*this, effects); }

void AtomicCASOp::getEffects(EffectList &effects) { getAtomicEffects(*this, effects); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult AtomicLoadOp::verify() {
  if (getSem() != MemSemantic::Relaxed && getSem() != MemSemantic::Acquire)
    return emitOpError("is ") << stringifyMemSemantic(getSem())
                              << "; an atomic load is relaxed or acquire";
  return verifyAccess(*this, getPtr(), getType(), getMask());
}

LogicalResult AtomicStoreOp::verify() {
  if (getSem() != MemSemantic::Relaxed && getSem() != MemSemantic::Release)
    return emitOpError("is ") << stringifyMemSemantic(getSem())
                              << "; an atomic store is relaxed or release";
  return verifyAccess(*this, getPtr(), getValue().getType(), getMask());
}

LogicalResult AtomicRMWOp::verify() {
  if (getValue().getType() != getType())
    return emitOpError("takes ") << getValue().getType() << " but gives " << getType();
  if (failed(verifyAccess(*this, getPtr(), getType(), getMask())))
    return failure();
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(getType()));
  AtomicKind kind = getKind();
  bool wantsFloat =
      kind == AtomicKind::FAdd || kind == AtomicKind::FMax || kind == AtomicKind::FMin;
  if (kind != AtomicKind::Exchange && isFloat != wantsFloat)
    return emitOpError() << stringifyAtomicKind(kind) << " does not take "
                         << getElementTypeOrSelf(getType());
  return success();
}

LogicalResult AtomicCASOp::verify() { return verifyAccess(*this, getPtr(), getType(), getMask()); }
