// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limits of launches within which a kernel's indices do not wrap: few programs, and integer
// arguments that are sizes. Attributes of the kernel name those that it relies on
// (--tile-limit-launches chooses them). A launch outside them runs another variant of the kernel,
// which relies on none.

#ifndef TESSERA_DIALECT_TILE_IR_LAUNCHLIMITS_H
#define TESSERA_DIALECT_TILE_IR_LAUNCHLIMITS_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::tile {

/// An integer attribute of a kernel: no extent of the grid is larger.
inline constexpr llvm::StringLiteral kLimitedProgramsAttr =
    TileDialect::LimitedProgramsAttrHelper::getNameStr();

/// An attribute of an integer argument, `array<i64: least, most>`.
inline constexpr llvm::StringLiteral kLimitedArgumentAttr =
    TileDialect::LimitedAttrHelper::getNameStr();

/// Integers that must not be negative in any program of a launch, `[text, ...]`. The launcher reads
/// the texts (ProgramBound.h).
inline constexpr llvm::StringLiteral kProgramBoundsAttr =
    TileDialect::ProgramBoundsAttrHelper::getNameStr();

/// On an argument that a persistent kernel gets: it is the grid's extent along an axis, known to
/// the launcher, but no argument of the launch.
inline constexpr llvm::StringLiteral kGridExtentAttr =
    TileDialect::GridExtentAttrHelper::getNameStr();

/// An attribute of a module, for the launcher: the limits of arguments as
/// `[array<i64: number, least, most>, ...]`.
inline constexpr llvm::StringLiteral kLaunchLimitsAttr =
    TileDialect::LaunchLimitsAttrHelper::getNameStr();

/// A unit attribute of a comparison of an offset with 0 that goes where the offset is not
/// negative.
inline constexpr llvm::StringLiteral kLowerBoundAttr =
    TileDialect::LowerBoundAttrHelper::getNameStr();

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_LAUNCHLIMITS_H
