// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses that each program makes, at addresses that a launch can compute: a kernel without a mask
// shows by them that its last program leaves an array, before anything runs.
//
//     i = program_id(0) * BLOCK + arange(0, BLOCK);  load(x + i)
//
//     argument 0, offset program:0 * 128, dimension of 128 elements with the stride 1
//
// An access in a loop is there twice, with the loop's first iteration and with its last one. One
// under a condition is not there, nor is one whose address depends on a loaded value.

#ifndef TESSERA_ANALYSIS_BOXES_CERTAINACCESS_H
#define TESSERA_ANALYSIS_BOXES_CERTAINACCESS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

#include <string>

namespace tessera {

/// Texts are those of ProgramBound.h, and mean the exact number in one program. Sums are lists of
/// terms.
struct CertainAccess {
  using Sum = llvm::SmallVector<std::string, 2>;
  /// Elements 0 to `extent - 1` that are also less than `upper` and not less than `-lower`; none
  /// of the two where the mask has no such bound.
  struct Dim {
    int64_t extent;
    Sum stride; ///< in elements
    std::optional<Sum> upper, lower;
  };
  tile::AccessOpInterface op;
  unsigned argument;
  int64_t elementBytes;
  Sum offset; ///< of the tile's first element, in elements
  llvm::SmallVector<Dim, 2> dims;
  /// Where one of them is negative, the access is not made.
  llvm::SmallVector<Sum, 1> guards;
};

/// Those of a kernel, in its order; only the first ones of a long kernel.
llvm::SmallVector<CertainAccess, 0> findCertainAccesses(tile::FuncOp kernel);

} // namespace tessera

#endif // TESSERA_ANALYSIS_BOXES_CERTAINACCESS_H
