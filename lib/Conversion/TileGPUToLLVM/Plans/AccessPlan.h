// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers of a thread one access moves, as tilegpu-plan-accesses has noted it.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ACCESSPLAN_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ACCESSPLAN_H

#include "Fragments/Fragment.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// An attribute on loads, stores and atomics: the dimension along which elements lie side by side
/// in memory, and how many of them one access moves, `array<i64: dimension, elements>`.
inline constexpr llvm::StringLiteral kAccessAttr =
    tilegpu::TileGPUDialect::AccessAttrHelper::getNameStr();

/// An attribute on loads and stores: the mask may hold for some first elements of an access
/// and not for the others. Without it the first one's mask is that of all.
inline constexpr llvm::StringLiteral kPrefixMasksAttr =
    tilegpu::TileGPUDialect::PrefixMasksAttrHelper::getNameStr();

/// As above, but any of an access's elements may be masked: what a bound compares may wrap.
inline constexpr llvm::StringLiteral kPartialMasksAttr =
    tilegpu::TileGPUDialect::PartialMasksAttrHelper::getNameStr();

/// An attribute on comparisons, quotients, what is made of them, and loads: along each dimension,
/// in how long aligned runs all elements are the same, `array<i64: ...>`.
inline constexpr llvm::StringLiteral kRunsAttr =
    tilegpu::TileGPUDialect::RunsAttrHelper::getNameStr();

/// For each register of a tile an earlier one, or itself, that by the op's runs has the
/// same value.
llvm::SmallVector<int64_t> getRepresentatives(mlir::Operation *op, mlir::Type type);

/// The registers of each access, in memory order.
llvm::SmallVector<llvm::SmallVector<int64_t>> getAccesses(mlir::Operation *op, mlir::Type pointers);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ACCESSPLAN_H
