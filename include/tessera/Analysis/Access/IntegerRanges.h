// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between which numbers the integers of a program lie.
//
// Integers wrap: `pid * 128` may be negative, and `x % n` then is, too. A form of a tile (Access.h)
// holds for its low bits, so it is true whatever wraps. This analysis answers more: is a value
// negative? Does it count up without wrapping? A range is proved and never a guess: each op's
// result has the range that its operands' ranges leave it in arithmetic that wraps (upstream's
// InferIntRangeInterface, which tile ops implement).
//
// A range and a form make an exact form. Neighbours along a dimension are `stride` apart, up to a
// multiple of 2^width. If the range of the elements excludes any other multiple of 2^width, they
// are exactly `stride` apart:
//
//     x = splat(start) + range(64)      form: stride 1 (mod 2^32)
//     start in [0, 2^27]                x in [0, 2^27 + 63]
//     neighbours differ by 1 + k * 2^32 and by at most 2^27 + 63: by 1
//
// Arguments of a kernel may have any value, so most sums could wrap. Kernels whose code would be
// slower for it rely on limits of the launch (LaunchLimits.h), which are attributes of the kernel
// and facts here.

#ifndef TESSERA_ANALYSIS_ACCESS_INTEGERRANGES_H
#define TESSERA_ANALYSIS_ACCESS_INTEGERRANGES_H

#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera {

/// Assumptions about the launches of a kernel (LaunchLimits.h).
struct LaunchLimits {
  struct Interval {
    int64_t least, most;
  };
  llvm::SmallDenseMap<unsigned, Interval> ofArgument; ///< by its number
  int64_t mostPrograms = 0;                           ///< along an axis of the grid; 0: any

  /// How much there is of what a kernel is given: of sizes, or of sizes that are multiplied.
  enum Level { Loose, Tight };
  static constexpr Level kLevels[] = {Loose, Tight};
};

/// Ranges of the values of one function, computed on demand and kept. Changing the IR makes
/// them stale: make new ones.
class IntegerRanges {
public:
  IntegerRanges() = default;
  /// As if the kernel relied on these limits, and not just on those that its attributes have.
  explicit IntegerRanges(LaunchLimits limits) : limits(std::move(limits)) {}

  /// The range of an integer, of an index, or of each element of a tile of them.
  mlir::ConstantIntRanges get(mlir::Value value);

  bool isNonNegative(mlir::Value value) { return get(value).smin().isNonNegative(); }

  /// True if neighbours in a tile of integers that are `stride` apart up to wrapping are so
  /// for good, as signed integers or as unsigned ones.
  bool isExact(mlir::Value tile, int64_t stride, bool isSigned);

private:
  mlir::ConstantIntRanges compute(mlir::Value value);
  mlir::ConstantIntRanges computeArgument(mlir::BlockArgument argument);
  mlir::ConstantIntRanges computeResult(mlir::OpResult result);
  mlir::ConstantIntRanges computeCarried(mlir::BlockArgument argument);
  std::optional<mlir::ConstantIntRanges> sumOverIterations(mlir::scf::ForOp loop,
                                                           const mlir::ConstantIntRanges &initial,
                                                           mlir::Value next,
                                                           mlir::BlockArgument argument);
  void keep(mlir::Value value, const mlir::ConstantIntRanges &range);

  LaunchLimits limits;
  unsigned depth = 0;
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> known;
  /// The keys of `known`, in the order in which they came: those found out on a supposition
  /// that turns out to be wrong are taken out again.
  llvm::SmallVector<mlir::Value> order;
};

/// The limits that the range of an integer may depend on: of the kernel's arguments and of the
/// numbers of programs that it is computed from.
LaunchLimits findLimits(mlir::Value value, LaunchLimits::Level level);

/// The predicate of a comparison with its sides exchanged.
mlir::arith::CmpIPredicate exchangeSides(mlir::arith::CmpIPredicate predicate);

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_INTEGERRANGES_H
