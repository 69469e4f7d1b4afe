// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_IR_BELOWMAXIMUM_H
#define TESSERA_DIALECT_TILE_IR_BELOWMAXIMUM_H

#include "llvm/ADT/StringRef.h"

namespace tessera::tile {

/// An attribute on exponentials, from tile-mark-maxima: the argument is an element minus the
/// maximum that an earlier loop has taken of it and others. So it is not positive, or NaN.
inline constexpr llvm::StringLiteral kBelowEarlierMaximumAttr = "tessera.below_earlier_maximum";

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_BELOWMAXIMUM_H
