// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses checked against the memory behind the kernel's arguments.

#include "Program.h"

#include "tessera/Support/AccessFault.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

void Program::failAccess(Operation *op, StringRef access, unsigned argument, uint64_t pointer,
                         int64_t bytes, int64_t offset, bool wraps) {
  AccessFault fault;
  fault.access = access.str();
  fault.kernel = kernel.getName().str();
  llvm::copy(id, fault.program);
  fault.argument = static_cast<int>(argument);
  fault.pointer = static_cast<int64_t>(pointer);
  if (argument < options.memory.size())
    fault.memory = options.memory[argument];
  fault.elementBytes = bytes;
  fault.offset = offset;
  fault.wraps = wraps;
  fault.location = describeLocation(op->getLoc());
  throw describeAccessFault(fault);
}

static Tile runCheckAccess(tile::CheckAccessOp op, Program &p) {
  const Tile &pointers = p.tile(op.getPtr());
  const Tile *mask = op.getMask() ? &p.tile(op.getMask()) : nullptr;
  const Tile *exact = op.getExact() && p.options.reportWraps ? &p.tile(op.getExact()) : nullptr;
  unsigned argument = op.getArgument();
  ArgumentMemory memory =
      argument < p.options.memory.size() ? p.options.memory[argument] : ArgumentMemory();
  uint64_t base = p.scalar(op.getBase());
  int64_t bytes = cast<tile::PointerType>(pointers.element()).getPointeeBytes();
  Tile result(op.getType());
  for (size_t i = 0; i < result.size(); ++i) {
    if (mask && !mask->bits[i])
      continue;
    auto address = static_cast<int64_t>(pointers.bits[i]);
    auto offset = static_cast<int64_t>(pointers.bits[i] - base);
    if (exact && static_cast<int64_t>(exact->bits[i]) != offset)
      p.failAccess(op, op.getAccess(), argument, base, bytes, static_cast<int64_t>(exact->bits[i]),
                   /*wraps=*/true);
    if (address < memory.begin || address > memory.end - bytes)
      p.failAccess(op, op.getAccess(), argument, base, bytes, offset, /*wraps=*/false);
    result.bits[i] = 1;
  }
  return result;
}

void interpreter::addCheckOps(OpTable &table) {
  table.addResult<tile::CheckAccessOp>(runCheckAccess);
}
