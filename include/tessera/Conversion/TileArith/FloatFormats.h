// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions between float formats built from integer and f32/f64 operations, for
// machines (or roundings) that have no instruction for them.

#ifndef TESSERA_CONVERSION_TILEARITH_FLOATFORMATS_H
#define TESSERA_CONVERSION_TILEARITH_FLOATFORMATS_H

#include "tessera/Conversion/TileArith/LaneBuilder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// True if `element` is one of the 8-bit float types of the language.
bool isFloat8(mlir::Type element);

/// Exact widening of a format of 16 or 8 bits to f32, by integer operations.
mlir::Value widenToF32(LaneBuilder &lanes, mlir::Value source);

/// Narrows an f32 to a format of 16 or 8 bits, by integer operations. With `saturates` what is
/// beyond the largest number, infinities too, becomes that number.
mlir::Value narrowFromF32(LaneBuilder &lanes, mlir::Value source, mlir::Type target,
                          tile::RoundingMode rounding, bool saturates = false);

/// Narrows f64 to f32, rounded to odd: rounding the result once more, to a format
/// of at most 22 bits of precision, then rounds the f64 just once.
mlir::Value narrowToF32Odd(LaneBuilder &lanes, mlir::Value source);

/// Rounds the f32 sum `high + low` (`low` the error of `high`, from a two-sum) to
/// odd, in f32; see narrowToF32Odd.
mlir::Value roundSumToOdd(LaneBuilder &lanes, mlir::Value high, mlir::Value low);

/// Narrows f64 to f32 towards zero.
mlir::Value narrowToF32TowardZero(LaneBuilder &lanes, mlir::Value source);

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEARITH_FLOATFORMATS_H
