// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which functions need not be exact to the last bit of f32, and which quotients have large
// or moderate divisors.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_NARROWRESULTS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_NARROWRESULTS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// An attribute on functions of f32, from tilegpu-mark-narrow-results: all that is made of the
/// result is rounded to 16 bits.
inline constexpr llvm::StringLiteral kNarrowResultAttr =
    tilegpu::TileGPUDialect::NarrowResultAttrHelper::getNameStr();

/// An attribute on exponentials of f32 without the one above: the argument is not positive, or by
/// half an ulp of a maximum (Maxima.h).
inline constexpr llvm::StringLiteral kBelowMaximumAttr = "tessera.below_maximum";

/// An attribute on quotients of f32: the divisor is 1 or more, or NaN. So a quarter of it has a
/// normal reciprocal.
inline constexpr llvm::StringLiteral kLargeDivisorAttr = "tessera.large_divisor";

/// The same: the divisor is 1 or more and no more than the number of a tile's elements, or NaN. So
/// it has a normal reciprocal.
inline constexpr llvm::StringLiteral kModerateDivisorAttr = "tessera.moderate_divisor";

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_NARROWRESULTS_H
