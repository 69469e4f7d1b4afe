// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounds constants to a float format, for folders, literals and the reference interpreter.
// Conversion/TileToStrips builds the code that does it at run time.

#ifndef TESSERA_DIALECT_TILE_IR_FLOATROUNDING_H
#define TESSERA_DIALECT_TILE_IR_FLOATROUNDING_H

#include "llvm/ADT/APFloat.h"

namespace tessera::tile {

/// `value` in the format `semantics`. A format of 8 bits saturates: what is beyond its largest
/// number, infinities too, becomes that number. A NaN stays a NaN.
llvm::APFloat roundTo(const llvm::fltSemantics &semantics, llvm::APFloat value,
                      llvm::APFloat::roundingMode mode = llvm::APFloat::rmNearestTiesToEven);

/// A result of arithmetic in a format, that of 8 bits saturated. `isNaN` is true if the exact
/// result is a NaN, which formats without infinities cannot distinguish from an overflow.
llvm::APFloat saturate(llvm::APFloat value, bool isNaN, bool isNegative);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_FLOATROUNDING_H
