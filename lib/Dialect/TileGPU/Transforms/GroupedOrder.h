// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that change places, so that those beside each other have tiles of few rows and few
// columns. Tiles come row by row. In groups of three rows, with five columns and 17 programs:
//
//     programs   0  3  6  9 12     in place of   0  1  2  3  4
//                1  4  7 10 13                   5  6  7  8  9
//                2  5  8 11 14                  10 11 12 13 14
//               15 16                           15 16

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_GROUPEDORDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_GROUPEDORDER_H

#include "mlir/IR/Builders.h"

#include <cstdint>

namespace tessera::tilegpu {

/// What neighbours load for a dot, in bytes: an operand that is the same for all tiles of a row,
/// and one that is for all of a column.
struct SharedOperands {
  int64_t ofRow = 0, ofColumn = 0;
};

/// How many rows of tiles a group has for neighbours to load least; 1 for no groups.
unsigned chooseGroupRows(SharedOperands operands);

/// The number that a program takes in place of its own (all i32, unsigned). Each number below
/// `programs` comes for one `program` below it, whatever `columns` and `rows` are: what is no whole
/// group, all of it where there are more columns than programs, stays as it is. There are fewer
/// rows in a group where `rows` are more than all programs have.
mlir::Value emitGroupedPlace(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value program,
                             mlir::Value programs, mlir::Value columns, unsigned rows);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_GROUPEDORDER_H
