// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScalarMemory.h"

#include "StripAtomics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

/// As in buffers, but the 8-bit floats, which LLVM does not know, are bytes.
Type getMemoryType(Type element) {
  Type stored = strips::getStoredType(element);
  if (isa<FloatType>(stored) && stored.getIntOrFloatBitWidth() == 8)
    return IntegerType::get(element.getContext(), 8);
  return stored;
}

static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value toMemory(OpBuilder &b, Location loc, Value value, Type stored) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == stored)
    return value;
  Type type = withElement(value.getType(), stored);
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::BitcastOp::create(b, loc, type, value);
}

Value fromMemory(OpBuilder &b, Location loc, Value value, Type element) {
  if (isa<tile::PointerType>(element))
    element = b.getI64Type();
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  if (element.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  return arith::BitcastOp::create(b, loc, withElement(value.getType(), element), value);
}

LLVM::AtomicOrdering getAtomicOrdering(tile::MemSemantic semantic) {
  switch (semantic) {
  case tile::MemSemantic::Relaxed:
    return LLVM::AtomicOrdering::monotonic;
  case tile::MemSemantic::Acquire:
    return LLVM::AtomicOrdering::acquire;
  case tile::MemSemantic::Release:
    return LLVM::AtomicOrdering::release;
  case tile::MemSemantic::AcquireRelease:
    return LLVM::AtomicOrdering::acq_rel;
  }
  llvm_unreachable("a memory ordering of the tile dialect");
}

static LLVM::AtomicBinOp getBinOp(tile::AtomicKind kind) {
  switch (kind) {
  case tile::AtomicKind::Add:
    return LLVM::AtomicBinOp::add;
  case tile::AtomicKind::FAdd:
    return LLVM::AtomicBinOp::fadd;
  case tile::AtomicKind::And:
    return LLVM::AtomicBinOp::_and;
  case tile::AtomicKind::Or:
    return LLVM::AtomicBinOp::_or;
  case tile::AtomicKind::Xor:
    return LLVM::AtomicBinOp::_xor;
  case tile::AtomicKind::Max:
    return LLVM::AtomicBinOp::max;
  case tile::AtomicKind::Min:
    return LLVM::AtomicBinOp::min;
  case tile::AtomicKind::UMax:
    return LLVM::AtomicBinOp::umax;
  case tile::AtomicKind::UMin:
    return LLVM::AtomicBinOp::umin;
  case tile::AtomicKind::FMax:
    return LLVM::AtomicBinOp::fmax;
  case tile::AtomicKind::FMin:
    return LLVM::AtomicBinOp::fmin;
  case tile::AtomicKind::Exchange:
    return LLVM::AtomicBinOp::xchg;
  }
  llvm_unreachable("an atomic of the tile dialect");
}

/// `build` where `mask` holds (null: always); else `other`, or 0.
static Value buildMasked(OpBuilder &b, Location loc, Value mask, Type type, Value other,
                         function_ref<Value(OpBuilder &)> build) {
  if (!mask)
    return build(b);
  if (!type) {
    auto ifOp = scf::IfOp::create(b, loc, mask, /*withElseRegion=*/false);
    OpBuilder yes = ifOp.getThenBodyBuilder();
    build(yes);
    return {};
  }
  if (!other)
    other = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  auto ifOp = scf::IfOp::create(b, loc, type, mask, /*withElseRegion=*/true);
  OpBuilder yes = ifOp.getThenBodyBuilder(), no = ifOp.getElseBodyBuilder();
  scf::YieldOp::create(yes, loc, build(yes));
  scf::YieldOp::create(no, loc, other);
  return ifOp.getResult(0);
}

LLVM::AtomicOrdering getFailureOrdering(LLVM::AtomicOrdering ordering) {
  bool acquires =
      ordering == LLVM::AtomicOrdering::acquire || ordering == LLVM::AtomicOrdering::acq_rel;
  return acquires ? LLVM::AtomicOrdering::acquire : LLVM::AtomicOrdering::monotonic;
}

Value buildScalarAccess(OpBuilder &b, Operation *op, ValueRange operands) {
  Location loc = op->getLoc();
  // The value that meets memory says what memory holds.
  Type valueType = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(1).getType();
  Type element = getElementTypeOrSelf(valueType);
  Type memory = getMemoryType(element);
  unsigned bytes = memory.getIntOrFloatBitWidth() / 8;
  auto operandAt = [&](Value original) -> Value {
    for (auto [operand, replacement] : llvm::zip_equal(op->getOperands(), operands))
      if (original && operand == original)
        return replacement;
    return {};
  };
  Value address = operands[0];
  auto pointer = [&](OpBuilder &at) -> Value {
    return LLVM::IntToPtrOp::create(at, loc, LLVM::LLVMPointerType::get(at.getContext()), address);
  };
  auto stored = [&](OpBuilder &at, Value value) {
    return toMemory(at, loc, operandAt(value), memory);
  };
  auto finish = [&](Value result) { return fromMemory(b, loc, result, element); };

  return TypeSwitch<Operation *, Value>(op)
      .Case([&](tile::LoadOp load) {
        Value other = load.getOther() ? stored(b, load.getOther()) : Value();
        return finish(
            buildMasked(b, loc, operandAt(load.getMask()), memory, other, [&](OpBuilder &at) {
              return LLVM::LoadOp::create(at, loc, memory, pointer(at), bytes,
                                          load.getIsVolatile());
            }));
      })
      .Case([&](tile::StoreOp store) {
        return buildMasked(b, loc, operandAt(store.getMask()), {}, {}, [&](OpBuilder &at) {
          LLVM::StoreOp::create(at, loc, stored(at, store.getValue()), pointer(at), bytes);
          return Value();
        });
      })
      .Case([&](tile::AtomicLoadOp load) {
        return finish(
            buildMasked(b, loc, operandAt(load.getMask()), memory, {}, [&](OpBuilder &at) {
              return LLVM::LoadOp::create(at, loc, memory, pointer(at), bytes, false, false, false,
                                          false, getAtomicOrdering(load.getSem()));
            }));
      })
      .Case([&](tile::AtomicStoreOp store) {
        return buildMasked(b, loc, operandAt(store.getMask()), {}, {}, [&](OpBuilder &at) {
          LLVM::StoreOp::create(at, loc, stored(at, store.getValue()), pointer(at), bytes, false,
                                false, false, getAtomicOrdering(store.getSem()));
          return Value();
        });
      })
      .Case([&](tile::AtomicRMWOp atomic) {
        return finish(buildMasked(
            b, loc, operandAt(atomic.getMask()), memory, {}, [&](OpBuilder &at) -> Value {
              Value place = pointer(at), value = stored(at, atomic.getValue());
              // Only this program may access the address, and a program is one thread.
              if (atomic.getScope() == tile::MemScope::CTA) {
                Value old = LLVM::LoadOp::create(at, loc, memory, place, bytes);
                Value next = buildAtomicCombination(at, loc, atomic.getKind(), old, value);
                LLVM::StoreOp::create(at, loc, next, place, bytes);
                return old;
              }
              return LLVM::AtomicRMWOp::create(at, loc, getBinOp(atomic.getKind()), place, value,
                                               getAtomicOrdering(atomic.getSem()));
            }));
      })
      .Case([&](tile::AtomicCASOp atomic) {
        // Bits are compared, not numbers.
        Type bits = b.getIntegerType(bytes * 8);
        LLVM::AtomicOrdering ordering = getAtomicOrdering(atomic.getSem());
        auto exchange = [&](OpBuilder &at) -> Value {
          auto asBits = [&](Value value) -> Value {
            value = stored(at, value);
            return value.getType() == bits ? value : arith::BitcastOp::create(at, loc, bits, value);
          };
          Value both = LLVM::AtomicCmpXchgOp::create(
              at, loc, pointer(at), asBits(atomic.getCompare()), asBits(atomic.getValue()),
              ordering, getFailureOrdering(ordering));
          Value old = LLVM::ExtractValueOp::create(at, loc, both, ArrayRef<int64_t>{0});
          return bits == memory ? old : arith::BitcastOp::create(at, loc, memory, old);
        };
        return finish(buildMasked(b, loc, operandAt(atomic.getMask()), memory, {}, exchange));
      });
}

} // namespace tessera
