// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The id of the program that a thread works for.
//
// A GPU starts blocks (or clusters) in the order of their ids, axis 0 fastest. By default a program
// has the id of its block. Along an axis in `tilegpu.reversed_axes`, the first block runs the last
// program.
//
// A row of the grid is the programs that differ only along axis 0. With `tilegpu.grouped_rows`,
// rows run in groups: first the first program of each row of the group, then the second ones, and
// so on. A group has a power of two of rows, the fewest that occupy every SM. Smaller groups of the
// other rows come first, since at the end they would leave SMs idle. An example has 4 programs a
// row, two rows in a large group and axis 0 reversed, where later programs of a row take longer:
//
//     blocks     0  1  2  3    4  5  6  7    8  9 10 11
//     programs  3a 2a 1a 0a   3b 3c 2b 2c   1b 1c 0b 0c    of rows a, b and c
//
// A quotient finds a row's numbers along axes 1 and 2. Kernels without dots have short programs,
// and do without it: their groups have rows of one number along axis 2. As many programs as run at
// once are the most.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H

#include "Fragment.h"

namespace tessera {

/// An attribute on kernels whose programs are short.
inline constexpr llvm::StringLiteral kShortProgramsAttr = "tessera.short_programs";

/// The program's number along an axis of the grid (i32), in the kernel that `op` is in.
mlir::Value emitProgramId(ThreadBuilder &thread, mlir::Operation *op, unsigned axis);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_PROGRAMID_H
