// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GroupedOrder.h"

#include "Facts/UnsignedBuilder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

unsigned tessera::tilegpu::chooseGroupRows(SharedOperands operands, int64_t atOnce) {
  auto getBytes = [&](unsigned rows) {
    return rows * operands.ofRow + llvm::divideCeil(atOnce, rows) * operands.ofColumn;
  };
  unsigned best = 1;
  // A small gain is not worth groups of twice the height, which leave larger remainders.
  for (unsigned rows = 2; rows <= kMaxGroupRows; rows *= 2)
    // Not of a GPU: five per cent.
    if (getBytes(rows) * 20 < getBytes(best) * 19)
      best = rows;
  return best;
}

Value tessera::tilegpu::emitGroupedPlace(OpBuilder &builder, Location loc, Value program,
                                         Value programs, Value columns, unsigned rows) {
  UnsignedBuilder emit(builder, loc);
  Value one = emit.constant(1);
  // With more columns than programs (or a negative number), there is no group of two rows.
  Value width = emit.max(emit.min(columns, programs), one);
  // One division is enough: a group's rows are a power of two.
  Value shift = emit.constant(0), last = emit.sub(width, one);
  for (unsigned each = 1; each <= llvm::Log2_32(rows); ++each) {
    Value fits = emit.isLess(last, emit.shiftRight(programs, emit.constant(each)));
    shift = emit.select(fits, emit.constant(each), shift);
  }
  Value size = emit.shiftLeft(width, shift);
  // A quotient that is always defined: a producer warp may recompute it.
  Value group =
      builder.createOrFold<tile::DivIntOp>(loc, tile::Signedness::Unsigned, program, size);
  Value first = emit.mul(group, size);
  Value inGroup = emit.sub(program, first);
  Value column = emit.shiftRight(inGroup, shift);
  Value row = emit.sub(inGroup, emit.shiftLeft(column, shift));
  Value place = emit.add(first, emit.add(emit.mul(row, width), column));
  // No more than programs behind the group's first one.
  Value isWhole = emit.isLess(emit.sub(size, one), emit.sub(programs, first));
  place = emit.select(isWhole, place, program);
  // It is below the number of programs, which analyses cannot prove.
  return emit.min(place, emit.sub(programs, one));
}
