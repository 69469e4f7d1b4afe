// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flags that a loop carries for its next iteration, though a comparison of a number that it also
// carries gives them:
//
//     is_last = k_tiles == 1                        the same comparison of the first number
//     for ...:
//         if is_last: ...                           is_last = k == k_tiles - 1, in each iteration
//         k = where(is_last, 0, k + 1)
//         is_last = k == k_tiles - 1
//
// A comparison in place of the flag shows which number decides: FlatCounter and StridedCounter read
// comparisons.

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_CARRIEDFLAGS_H
#define TESSERA_DIALECT_TILE_TRANSFORMS_CARRIEDFLAGS_H

#include "FlatCounter.h"

namespace tessera::tile {

class CarriedFlag {
public:
  /// The first such flag of a loop whose pure invariants are hoisted.
  static std::optional<CarriedFlag> find(mlir::scf::ForOp loop);

  /// Replaces the flag by the comparison. The loop carries what is constant in its place.
  void rewrite(mlir::scf::ForOp loop) const;

private:
  bool holds(mlir::Value number, mlir::Value flag) const;
  bool holdsFor(const OffsetValue &number, mlir::Value flag) const;
  bool deriveFrom(mlir::scf::ForOp loop, mlir::Value number, mlir::Value flag);

  unsigned flag = 0, number = 0; ///< of the loop's carried values
  /// The flag is "number + offset PREDICATE bound".
  mlir::arith::CmpIPredicate predicate = mlir::arith::CmpIPredicate::eq;
  llvm::APInt offset;
  mlir::Value bound;
};

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_CARRIEDFLAGS_H
