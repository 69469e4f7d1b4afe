// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter of a flat loop that goes up or down from any start, by 1 or more, and starts again
// where it reaches a bound. It wraps behind a step, or before the iteration that uses it:
//
//     k += 64                                      if left == 0: left = n
//     if k >= K: k = 0                             ...
//                                                  left -= 1
//
// Its period is the number of steps. Where it goes by more than 1, that is at least 1, and the
// bound is compared by an order. Beside it, a counter from 0 in steps of 1 replaces it, which
// FlatCounter finds.

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_STRIDEDCOUNTER_H
#define TESSERA_DIALECT_TILE_TRANSFORMS_STRIDEDCOUNTER_H

#include "FlatCounter.h"

namespace tessera::tile {

class StridedCounter {
public:
  /// The counter of a loop whose pure invariants are hoisted. The loop stays as it is.
  static std::optional<StridedCounter> find(mlir::scf::ForOp loop);

  /// Carries a counter in steps of 1 in its place. The loop is replaced.
  mlir::scf::ForOp rewrite(mlir::scf::ForOp loop) const;

private:
  /// When a comparison holds, and if it asks for equality.
  struct Test {
    Moment moment;
    bool isEqual;
  };

  static std::optional<StridedCounter> find(mlir::scf::ForOp loop, unsigned number);
  bool findBound(mlir::scf::ForOp loop, bool startsIfTrue);
  bool isOnlyCounted(mlir::scf::ForOp loop) const;
  Test classify(mlir::arith::CmpIOp compare, mlir::Value argument) const;
  mlir::Value emitPeriod(mlir::OpBuilder &builder, mlir::Location loc) const;

  unsigned number = 0; ///< of the loop's carried value
  mlir::arith::SelectOp select;
  bool isSelected = false; ///< iterations use what `select` gives, and not what is carried
  mlir::Value start;       ///< the value in the first iteration of a tile
  llvm::APInt step;        ///< negative if it counts down
  /// The value that an iteration uses reaches `bound` in the last iteration of a tile. The carried
  /// one reaches `carriedBound` where it wraps.
  OffsetValue bound, carriedBound;
  bool wrapsByEqual = false;
  bool wrapsFirst = false; ///< it also wraps before the first iteration of all
};

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_STRIDEDCOUNTER_H
