// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores and atomics of single elements at i64 addresses.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_SCALARMEMORY_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_SCALARMEMORY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// The type in which memory keeps an element that values have as `element`.
mlir::Type getMemoryType(mlir::Type element);

/// Between the types of values and those of memory (scalars or vectors).
mlir::Value toMemory(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                     mlir::Type stored);
mlir::Value fromMemory(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       mlir::Type element);

/// The orderings of an atomic, and of a compare-and-swap of it that does not swap.
mlir::LLVM::AtomicOrdering getAtomicOrdering(tile::MemSemantic semantic);
mlir::LLVM::AtomicOrdering getFailureOrdering(mlir::LLVM::AtomicOrdering ordering);

/// The memory operation `op` (load, store or an atomic) for one element, at `operands`: scalars in
/// place of the op's own, pointers as i64. Returns the result in the type of its elements, or null.
mlir::Value buildScalarAccess(mlir::OpBuilder &builder, mlir::Operation *op,
                              mlir::ValueRange operands);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_SCALARMEMORY_H
