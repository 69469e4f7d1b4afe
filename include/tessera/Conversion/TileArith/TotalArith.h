// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders for the arithmetic that is defined for every input (division, shifts,
// saturating conversions, ...), in arith and math ops on scalars or vectors of
// any shape. The CPU target builds these from the elementwise ops of the tile
// dialect; the meaning is that of the folders in lib/Dialect/Tile/IR/TileMathOps.cpp.

#ifndef TESSERA_CONVERSION_TILEARITH_TOTALARITH_H
#define TESSERA_CONVERSION_TILEARITH_TOTALARITH_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// Division towards zero: `x / 0` is all ones, the smallest integer by -1 itself.
/// No guard is built where the divisor is a constant that needs none.
mlir::Value buildDivInt(mlir::OpBuilder &builder, mlir::Location loc, tile::Signedness signedness,
                        mlir::Value lhs, mlir::Value rhs);

/// Remainder of division towards zero: `x % 0` is `x`.
mlir::Value buildRemInt(mlir::OpBuilder &builder, mlir::Location loc, tile::Signedness signedness,
                        mlir::Value lhs, mlir::Value rhs);

/// A shift; an amount of the width or more gives 0, or copies of the sign.
mlir::Value buildShift(mlir::OpBuilder &builder, mlir::Location loc, tile::ShiftKind kind,
                       mlir::Value lhs, mlir::Value rhs);

/// The upper half of the unsigned product (32 or 64 bits).
mlir::Value buildMulHi(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs,
                       mlir::Value rhs);

/// Float to integer of element type `target`: towards zero, saturating, NaN to 0.
mlir::Value buildFpToInt(mlir::OpBuilder &builder, mlir::Location loc, tile::Signedness signedness,
                         mlir::Value source, mlir::Type target);

/// Float to float of element type `target`. Rounding to nearest even among LLVM's formats stays
/// arith.truncf and arith.extf, which strips-legalize-floats rewrites for the machine. The rest is
/// integer code. With `saturates`, as the op does it, a target of 8 bits holds what is beyond its
/// largest number at that number.
mlir::Value buildFpToFp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                        mlir::Type target, tile::RoundingMode rounding, bool saturates = true);

/// min(max(x, low), high); a NaN in `x` gives NaN if `propagateNaN`, else `low`.
mlir::Value buildClamp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value low,
                       mlir::Value high, bool propagateNaN);

/// True where an integer or float is not zero (a NaN is true).
mlir::Value buildConvertBool(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Builds what the elementwise op `op` of the tile dialect means, on `operands`
/// (scalars or vectors of one shape) in place of the op's own. Returns null if
/// `op` is none of div_int, rem_int, shift, mulhi, fp_to_int, fp_to_fp, clamp,
/// precise_sqrt, precise_div.
mlir::Value buildTotalArith(mlir::OpBuilder &builder, mlir::Operation *op,
                            mlir::ValueRange operands);

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEARITH_TOTALARITH_H
