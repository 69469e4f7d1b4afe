// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reorders programs so that programs with adjacent ids have tiles of few rows and few columns. By
// default, tiles are row by row. In groups of two rows, with five columns and 17 programs:
//
//     programs   0  2  4  6  8     in place of   0  1  2  3  4
//                1  3  5  7  9                   5  6  7  8  9
//               10 11 12 13 14                  10 11 12 13 14
//               15 16                           15 16

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_GROUPEDORDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_GROUPEDORDER_H

#include "mlir/IR/Builders.h"

#include <cstdint>

namespace tessera::tilegpu {

/// The bytes of a dot's operands: the one that is the same for all tiles of a row, and the one for
/// all of a column.
struct SharedOperands {
  int64_t ofRow = 0, ofColumn = 0;
};

/// The rows of the largest groups. Not of a GPU: a limit of the search.
inline constexpr unsigned kMaxGroupRows = 16;

/// The rows of tiles in a group (a power of two) for which `atOnce` concurrent programs together
/// load the least; 1 for no groups.
unsigned chooseGroupRows(SharedOperands operands, int64_t atOnce);

/// The id that replaces a program's own (all i32, unsigned). This is a permutation of the ids below
/// `programs`, at most 2^31 - 1, for any `columns`: ids outside of whole groups do not change.
/// `rows` is a power of two. If all programs have fewer rows, a group has the largest power of two
/// that fits.
mlir::Value emitGroupedPlace(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value program,
                             mlir::Value programs, mlir::Value columns, unsigned rows);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_GROUPEDORDER_H
