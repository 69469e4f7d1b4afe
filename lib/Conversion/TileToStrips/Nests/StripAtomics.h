// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Building blocks of atomics on memory that several threads add to.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPATOMICS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPATOMICS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// The most bytes to which a `strips.private_copy` grows. It begins with those that fit a
/// second-level cache, since nothing says how large the array is. In each of the programs before it
/// has grown, an addition behind its end asks for it (`kGrowthOffset`).
inline constexpr int64_t kGrownCopyBytes = 4 << 20;

/// Where an addition asks for growth, by a word that is not 0: so many bytes behind the largest
/// copy.
inline constexpr int64_t kGrowthOffset = 32;

/// The value that an atomic stores.
mlir::Value buildAtomicCombination(mlir::OpBuilder &builder, mlir::Location loc,
                                   tile::AtomicKind kind, mlir::Value old, mlir::Value value);

/// The scalar that changes nothing where an atomic combines it: -0 for a sum of floats. Null if
/// there is none.
mlir::TypedAttr getNeutralElement(tile::AtomicKind kind, mlir::Type element);

/// The atomic for a vector as wide as the machine compares and swaps, aligned to its size.
void buildVectorAtomic(mlir::OpBuilder &builder, mlir::Location loc, tile::AtomicKind kind,
                       mlir::LLVM::AtomicOrdering ordering, mlir::Value pointer, mlir::Value value);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPATOMICS_H
