// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The counter of a flat loop over all K tiles of all tiles of a program:
//
//     for t in range(k_tiles * tiles):
//         ki = where(ki == k_tiles - 1, 0, ki + 1)     the counter: t mod k_tiles
//         if ki == 0: ...                              the first iteration of a tile
//         ...
//         if ki == k_tiles - 1: ...                    the last iteration of a tile
//
// The counter is found by its recurrence, not by its spelling. The value that wraps may be the one
// that the iteration uses, the one before it or the one after it. `t % k_tiles` is a counter, too,
// and so is `ki = (ki + 1) % k_tiles`. Sums with constants are compared in the arithmetic of their
// type, which wraps.
//
// The period may be 0 or negative at run time. Then a counter that wraps where it equals the period
// counts on without end, so its last iteration never comes. Others behave as `Wrap` says.

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_FLATCOUNTER_H
#define TESSERA_DIALECT_TILE_TRANSFORMS_FLATCOUNTER_H

#include "mlir/IR/Builders.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include <optional>

namespace tessera::tile {

/// An integer plus a constant, in arithmetic that wraps. Without a base, it is the constant.
struct OffsetValue {
  mlir::Value base;
  llvm::APInt offset;

  static OffsetValue of(mlir::Value value);
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type) const;
  bool operator==(const OffsetValue &other) const {
    return base == other.base && offset == other.offset;
  }
};

/// The iterations of a tile in which a condition holds.
enum class Moment { Unknown, First, NotFirst, Last, NotLast };

/// How a comparison finds the end of a period.
enum class PeriodTest {
  Equal,     ///< `ki == k_tiles - 1`: never holds if the period is not positive
  AtLeast,   ///< `ki + 1 >= k_tiles`: always holds if the period is not positive
  AtLeastOf, ///< `ki >= k_tiles - 1`: the same, but never if the right side wraps
  Remainder, ///< `(t + 1) % k_tiles == 0`: holds for the absolute value of the period
};

class FlatCounter {
public:
  /// The counter of a loop whose pure invariants are hoisted.
  static std::optional<FlatCounter> find(mlir::scf::ForOp loop);

  /// The iterations in which a condition of the loop's body holds, if the period is positive.
  /// `test` is set for Last and NotLast.
  Moment classify(mlir::Value condition, PeriodTest &test) const;

  /// The value that counts from 0 to the period in the loop's body.
  mlir::Value getValue() const { return value; }
  /// The value is the counter plus this.
  const llvm::APInt &getShift() const { return shift; }
  /// The number of the loop's carried value that holds the counter; none for a remainder.
  std::optional<unsigned> getCarried() const { return carried; }
  /// The op that wraps the counter.
  mlir::Operation *getRecurrence() const { return recurrence; }
  const OffsetValue &getPeriod() const { return period; }
  /// The condition of the wrap, if it holds in the first iteration of all tiles.
  mlir::Value getWrapsFirst() const { return wrapsFirst; }
  PeriodTest getWrap() const { return wrap; }

private:
  static std::optional<FlatCounter> findCarried(mlir::scf::ForOp loop, unsigned number);
  static std::optional<FlatCounter> findCarriedRemainder(mlir::scf::ForOp loop, unsigned number);
  static std::optional<FlatCounter> findRemainder(mlir::scf::ForOp loop);
  bool isOnlyCounted(mlir::scf::ForOp loop) const;
  bool isWrapped(mlir::arith::CmpIOp compare) const;
  Moment classifyRemainder(mlir::arith::CmpIOp compare) const;
  Moment classifyFlag(mlir::BlockArgument flag) const;

  mlir::Value value;
  mlir::Operation *recurrence = nullptr;
  llvm::APInt shift; ///< what the counter is below `value`
  OffsetValue period;
  PeriodTest wrap = PeriodTest::Equal;
  std::optional<unsigned> carried;
  mlir::Value wrapsFirst;
  bool wrapIsNegated = false;
  /// The variable of the loop, for a remainder.
  mlir::Value iteration;
};

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_FLATCOUNTER_H
