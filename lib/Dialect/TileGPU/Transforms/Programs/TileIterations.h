// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds loops over tiles whose iterations are independent, so that tiles may be assigned to
// programs in any order.
//
//     for tile in range(program_id(0), tiles, num_programs(0)):
//         row, column = tile // columns, tile % columns
//         store(c + (row * 128 + ...) * stride + column * 256 + ..., load(a, row), load(b, column))
//
// Iterations of two programs run in any order anyway. Iterations of one program run one after the
// other, and may depend on each other. They are independent if
//
//  1. only memory connects iterations, and an iteration depends on its program only by the tile's
//     number;
//  2. arrays that are loaded by other arguments than those of stores do not overlap the stored
//     ones, in all tiles. The kernel checks this, since a launch knows only where arrays without
//     masks begin;
//  3. elements that are stored, or loaded from a stored array, are in the tile's own cell of the
//     array: its rows are row * 128 + [0, 128), its columns column * 256 + [0, 256). The cells of
//     two tiles are disjoint if a row of the array ends before the next one begins;
//  4. each tile is one iteration of one program: the first tile's number is the program's id, and
//     the step is the number of programs.
//
// The kernel checks the conditions 2 to 4 on its arguments. The launch checks that accesses are of
// the boxes that the analysis found.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEITERATIONS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEITERATIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Analysis/Order/MemoryOrder.h"

#include <vector>

namespace tessera::tilegpu {

class TileIterations {
public:
  /// For a loop of the kernel's block over numbers of tiles (i32), with the row and the column that
  /// its body computes, and the number of columns. Nothing if iterations may depend on each other.
  static std::optional<TileIterations> find(mlir::scf::ForOp loop, mlir::Value row,
                                            mlir::Value column, mlir::Value columns);

  /// Adds the launch conditions. False if there are conditions, but launches may not check them.
  bool addConditions(bool assumeApart) const;
  /// An i1: true if the other conditions hold, computed from values in front of the loop.
  mlir::Value emitMayChange(mlir::OpBuilder &builder, mlir::Location loc) const;

private:
  /// The conditions on an array of cells.
  struct Cells {
    int64_t columns = 0;       ///< elements from one tile of a row to the next
    LaunchExpr stride, extent; ///< from row to row; of a row, null if it ends with the last tile
  };

  class Emitter;

  TileIterations(mlir::scf::ForOp loop, mlir::Value row, mlir::Value column, mlir::Value columns)
      : loop(loop), row(row), column(column), columns(columns) {}
  bool addAccesses(AccessAnalysis &analysis);
  bool hasKnownEnd(const BoxAccess &box) const;

  mlir::scf::ForOp loop;
  mlir::Value row, column, columns;
  std::vector<BoxAccess> boxes;                      ///< that accesses are taken to be of
  std::vector<std::pair<unsigned, unsigned>> others; ///< two of them that have to be apart
  std::vector<Cells> arrays;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEITERATIONS_H
