// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics. Programs and lanes run one after the other, so an atomic is a load and a store, and
// orderings and scopes need no code.

#include "Program.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

/// The larger float, or the number where one is NaN.
static double largerNumber(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
}
static double smallerNumber(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
}

uint64_t interpreter::combineAtomic(tile::AtomicKind kind, Type element, uint64_t old,
                                    uint64_t value) {
  unsigned width = getBitWidth(element);
  switch (kind) {
  case tile::AtomicKind::Add:
    return truncate(old + value, width);
  case tile::AtomicKind::And:
    return old & value;
  case tile::AtomicKind::Or:
    return old | value;
  case tile::AtomicKind::Xor:
    return old ^ value;
  case tile::AtomicKind::Max:
    return asSigned(old, width) < asSigned(value, width) ? value : old;
  case tile::AtomicKind::Min:
    return asSigned(value, width) < asSigned(old, width) ? value : old;
  case tile::AtomicKind::UMax:
    return std::max(old, value);
  case tile::AtomicKind::UMin:
    return std::min(old, value);
  case tile::AtomicKind::FAdd:
    return encodeFloat(element, decodeFloat(element, old) + decodeFloat(element, value));
  case tile::AtomicKind::FMax:
    return encodeFloat(element,
                       largerNumber(decodeFloat(element, old), decodeFloat(element, value)));
  case tile::AtomicKind::FMin:
    return encodeFloat(element,
                       smallerNumber(decodeFloat(element, old), decodeFloat(element, value)));
  case tile::AtomicKind::Exchange:
    return value;
  }
  llvm_unreachable("covered switch");
}

/// Calls `lane(i)` for the lanes that the mask leaves on.
template <typename Op, typename F> static void forEachLane(Op op, Program &p, F lane) {
  size_t count = p.tile(op.getPtr()).size();
  const Tile *mask = op.getMask() ? &p.tile(op.getMask()) : nullptr;
  for (size_t i = 0; i < count; ++i)
    if (!mask || mask->bits[i])
      lane(i);
}

static Tile runAtomicLoad(tile::AtomicLoadOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr());
  Tile result(op.getType());
  forEachLane(op, p,
              [&](size_t i) { result.bits[i] = loadElement(pointers.bits[i], result.element()); });
  return result;
}

static void runAtomicStore(tile::AtomicStoreOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr()), &value = p.tile(op.getValue());
  forEachLane(op, p,
              [&](size_t i) { storeElement(pointers.bits[i], value.element(), value.bits[i]); });
}

/// A lane that is masked off returns 0.
static Tile runAtomicRMW(tile::AtomicRMWOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr()), &value = p.tile(op.getValue());
  Type element = value.element();
  Tile result(op.getType());
  forEachLane(op, p, [&](size_t i) {
    uint64_t old = loadElement(pointers.bits[i], element);
    storeElement(pointers.bits[i], element,
                 combineAtomic(op.getKind(), element, old, value.bits[i]));
    result.bits[i] = old;
  });
  return result;
}

/// Bits are compared, so a NaN matches itself and -0 does not match +0.
static Tile runAtomicCAS(tile::AtomicCASOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr()), &compare = p.tile(op.getCompare()),
             &value = p.tile(op.getValue());
  Type element = value.element();
  Tile result(op.getType());
  forEachLane(op, p, [&](size_t i) {
    result.bits[i] = loadElement(pointers.bits[i], element);
    if (result.bits[i] == compare.bits[i])
      storeElement(pointers.bits[i], element, value.bits[i]);
  });
  return result;
}

void interpreter::addAtomicOps(OpTable &table) {
  table.addResult<tile::AtomicLoadOp>(runAtomicLoad);
  table.add<tile::AtomicStoreOp>(runAtomicStore);
  table.addResult<tile::AtomicRMWOp>(runAtomicRMW);
  table.addResult<tile::AtomicCASOp>(runAtomicCAS);
}
