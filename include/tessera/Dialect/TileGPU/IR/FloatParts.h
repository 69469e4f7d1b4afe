// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32 as a sum of narrower numbers, of which tensor cores multiply any two exactly.
//
//     x = p0 + p1 (+ p2),   p0 = x rounded to tf32 or bf16,   p1 = what is left, rounded, ...
//
// The product of two sums is that of their parts, without the products that are below the
// precision. A value that is not finite is in the last part only, and the others are 1 of its sign.
// So infinity times any sum but 0 is infinity, and never a difference of infinities. The same holds
// for finite numbers that would be rounded to infinity.

#ifndef TESSERA_DIALECT_TILEGPU_FLOATPARTS_H
#define TESSERA_DIALECT_TILEGPU_FLOATPARTS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tilegpu {

/// How a product of f32 is made of products of parts.
struct FloatParts {
  explicit FloatParts(tile::InputPrecision precision)
      : isBF16(precision == tile::InputPrecision::BF16x3 ||
               precision == tile::InputPrecision::BF16x6),
        count(precision == tile::InputPrecision::BF16x6   ? 3
              : isBF16                                    ? 2
              : precision == tile::InputPrecision::TF32x3 ? 2
                                                          : 1) {}

  /// Parts of the two operands whose products are summed, the smallest products first.
  llvm::SmallVector<std::pair<unsigned, unsigned>> getPairs() const;

  /// The parts of an f32 or of a tile of them, the largest first: bf16, or f32 whose lower 13 bits
  /// tensor cores ignore.
  llvm::SmallVector<mlir::Value> split(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::Value value) const;

  bool isBF16;
  unsigned count;
};

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_FLOATPARTS_H
