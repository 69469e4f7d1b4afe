// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter of a flat loop that goes by more than 1, up or down, and starts again where it reaches
// a bound:
//
//     left -= 64                                   k += 64
//     if left <= 0: left = K                       if k >= K: k = 0
//
// Its period is the number of steps, and at least 1. Beside it, a counter from 0 in steps of 1
// replaces it, which FlatCounter finds.

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
  static std::optional<StridedCounter> find(mlir::scf::ForOp loop, unsigned number);
  mlir::Value emitPeriod(mlir::OpBuilder &builder, mlir::Location loc) const;

  unsigned number = 0; ///< of the loop's carried value
  mlir::Value start;   ///< the value in the first iteration of a tile
  llvm::APInt step;    ///< negative if it counts down
  OffsetValue bound;   ///< the value in the last iteration reaches it
  /// The number of iterations is the distance of these by the step, rounded up.
  OffsetValue from, to;
};

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_STRIDEDCOUNTER_H
