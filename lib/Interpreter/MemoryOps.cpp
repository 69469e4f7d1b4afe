// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pointers, loads and stores. Memory is the process's own; lanes are taken in
// row-major order, so of two lanes that store to one address the later one wins.

#include "Program.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

static Tile runAddPtr(tile::AddPtrOp op, Program &p) {
  auto pointer = cast<tile::PointerType>(getElementTypeOrSelf(op.getType()));
  int64_t bytes = pointer.getPointeeBytes();
  unsigned width = getBitWidth(getElementTypeOrSelf(op.getOffset().getType()));
  return map(op.getType(), p.tile(op.getPtr()), p.tile(op.getOffset()),
             [&](uint64_t address, uint64_t offset) {
               return address + static_cast<uint64_t>(asSigned(offset, width)) * bytes;
             });
}

static Tile runLoad(tile::LoadOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr());
  const Tile *mask = op.getMask() ? &p.tile(op.getMask()) : nullptr;
  // A lane masked off reads `other`; without one, the 0 that a new tile holds.
  Tile result = op.getOther() ? p.tile(op.getOther()) : Tile(op.getType());
  for (size_t i = 0; i < result.size(); ++i)
    if (!mask || mask->bits[i])
      result.bits[i] = loadElement(pointers.bits[i], result.element());
  return result;
}

static void runStore(tile::StoreOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr()), &value = p.tile(op.getValue());
  const Tile *mask = op.getMask() ? &p.tile(op.getMask()) : nullptr;
  for (size_t i = 0; i < value.size(); ++i)
    if (!mask || mask->bits[i])
      storeElement(pointers.bits[i], value.element(), value.bits[i]);
}

/// The same bits under another type.
template <typename Op> static Tile retype(Op op, Program &p) {
  Tile result = p.tile(op.getSource());
  result.type = op.getType();
  return result;
}

void interpreter::addMemoryOps(OpTable &table) {
  table.addResult<tile::AddPtrOp>(runAddPtr);
  table.addResult<tile::PtrToIntOp>(retype<tile::PtrToIntOp>);
  table.addResult<tile::IntToPtrOp>(retype<tile::IntToPtrOp>);
  table.addResult<tile::BitcastOp>(retype<tile::BitcastOp>);
  table.addResult<tile::LoadOp>(runLoad);
  table.add<tile::StoreOp>(runStore);
}
