// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GroupedOrder.h"

#include "UnsignedBuilder.h"

using namespace mlir;
using namespace tessera::tilegpu;

/// SMs of which L2 is asked for the same once, about: a GPC has 16 or 18, of which some are off.
/// docs/Notebook.md has what was measured ("Tiles that neighbours share").
static constexpr unsigned kNeighbours = 16;

unsigned tessera::tilegpu::chooseGroupRows(SharedOperands operands) {
  auto getBytes = [&](unsigned rows) {
    return rows * operands.ofRow + kNeighbours / rows * operands.ofColumn;
  };
  unsigned best = 1;
  for (unsigned rows = 2; rows <= kNeighbours; rows *= 2)
    if (getBytes(rows) < getBytes(best))
      best = rows;
  return best;
}

Value tessera::tilegpu::emitGroupedPlace(OpBuilder &builder, Location loc, Value program,
                                         Value programs, Value columns, unsigned rows) {
  UnsignedBuilder emit(builder, loc);
  Value one = emit.constant(1);
  // Of more columns than programs (of a negative number, too) there is no group of two rows.
  Value width = emit.max(emit.min(columns, programs), one);
  Value height = emit.min(emit.constant(rows), emit.div(programs, width));
  Value size = emit.mul(width, height);
  auto [group, inGroup] = emit.divide(program, size);
  auto [column, row] = emit.divide(inGroup, height);
  Value place = emit.add(emit.mul(emit.add(emit.mul(group, height), row), width), column);
  Value inGroups = emit.mul(emit.div(programs, size), size);
  place = emit.select(emit.isLess(program, inGroups), place, program);
  // It is below the number of programs, which nobody could prove.
  return emit.min(place, emit.sub(programs, one));
}
