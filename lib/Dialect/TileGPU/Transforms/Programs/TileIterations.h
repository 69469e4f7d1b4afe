// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over tiles, and whether their iterations are independent, so that tiles may be assigned to
// programs in any order.
//
//     for tile in range(program_id(0), tiles, num_programs(0)):
//         row, column = tile // columns, tile % columns
//         store(c + (row * 128 + ...) * stride + column * 256 + ..., load(a, row), load(b, column))
//
// Iterations of two programs come in any order anyway; those of one come one after the other, and
// may depend on each other. If they do not, any order of all tiles will do, dealt to whichever
// programs. They do not where
//
//  1. nothing but memory is passed on from one to the next, and an iteration knows nothing of its
//     program but the tile's number,
//  2. what is loaded by another argument than what is stored lies apart from that, in all tiles. No
//     launch is asked: it knows of arrays without masks no more than where they begin;
//  3. what is stored, and loaded from the same array, lies in a cell of the array that is the
//     tile's own: its rows are row * 128 + [0, 128), its columns column * 256 + [0, 256). The cells
//     of two tiles have no element in common if a row of the array ends before the next one begins;
//  4. each tile is one iteration of one program: the first one's number is the program's, and the
//     step is the number of programs.
//
// The kernel checks the conditions 2 to 4 on its arguments. The launch checks that accesses are of
// the boxes that they seem to be.

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

  /// Asks launches for what has to hold there. False if they may not be asked, and something has.
  bool addConditions(bool assumeApart) const;
  /// True if all the rest holds, an i1, computed from what is known in front of the loop.
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
