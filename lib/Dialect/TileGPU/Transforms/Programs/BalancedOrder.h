// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assigns programs to the blocks of a persistent kernel if programs take longer with a higher id
// along axis 0 of the grid, as in causal attention.
//
// A GPU starts the next program when a block ends. Blocks of a persistent kernel get theirs
// beforehand, so all of them need about the same total. Programs are dealt like cards, the longest
// first, from block 0 to the last one and back. In two rounds, each block gets a long program and a
// short one:
//
//     blocks            0  1  2  3
//     round 0           8  8  7  7      of two rows of programs, 1 to 8 units long
//     round 1           5  5  6  6
//     round 2           4  4  3  3
//     round 3           1  1  2  2      18 units each
//
// Only as many programs are sorted at a time as blocks run in four rounds, neighbours in the grid,
// or in two if rows have eight programs at most.
// Those of a row read the same tiles (the keys of a head), and the L2 cache would not hold the
// tiles of the whole grid. The remainder is dealt with the last of these groups, so that a partial
// round has short programs. With 128 rows of 16 programs, 132 blocks are busy for 0.99 of the time.
// It is 0.98 with groups of two rounds, and 0.56 with groups of one, which cannot balance. If the
// GPU itself starts the longest programs first, SMs are busy for 0.92 to 0.98.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_BALANCEDORDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_BALANCEDORDER_H

#include "mlir/IR/Builders.h"

namespace tessera::tilegpu {

/// The programs to be dealt, as unsigned numbers (i32).
struct BalancedDeal {
  BalancedDeal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value programs,
               mlir::Value width, mlir::Value blocks);

  mlir::Value programs; ///< how many there are; below 2^31, and a multiple of `width`
  mlir::Value width;    ///< how many programs a row has: along axis 0
  mlir::Value blocks;   ///< how many blocks do them

  /// How many programs are sorted at a time, and the number of the last of these groups. The same
  /// for all programs.
  mlir::Value inGroup, lastGroup;
};

/// A program's number along axis 0, and the row of programs that it is in.
struct PlaceInGrid {
  mlir::Value inRow, row;
};

/// The program that comes as number `turn`: block b does 0 + b, `blocks` + b, 2 * `blocks` + b, and
/// so on. Each program below `programs` comes for one turn below that.
PlaceInGrid emitBalancedPlace(mlir::OpBuilder &builder, mlir::Location loc,
                              const BalancedDeal &deal, mlir::Value turn);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_BALANCEDORDER_H
