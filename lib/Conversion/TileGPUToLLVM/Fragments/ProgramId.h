// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which program of the grid a thread works for.
//
// A GPU begins blocks (or clusters) in the order of their numbers, those along axis 0 first. A
// program mostly has its block's numbers. Along an axis in `tilegpu.reversed_axes`, the first block
// runs the last program.
//
// With `tilegpu.grouped_rows`, rows of the grid (programs that differ only along axis 0) run in
// groups: first the first program of each row of the group, then the second ones, and so on. A
// group has as many rows as it takes to give every SM something to do, so that no more rows are in
// work at once than without. With 4 programs a row, 3 rows a group, and axis 0 reversed, where a
// program's place says how long it takes:
//
//     blocks     0  1  2  3    4  5  6  7    8  9 10 11
//     programs  3a 3b 3c 2a   2b 2c 1a 1b   1c 0a 0b 0c    of rows a, b and c

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H

#include "Fragment.h"

namespace tessera {

/// The program's number along an axis of the grid (i32), in the kernel that `op` is in.
mlir::Value emitProgramId(ThreadBuilder &thread, mlir::Operation *op, unsigned axis);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H
