// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers of a thread one access moves.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ACCESSPLAN_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ACCESSPLAN_H

#include "Fragment.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// An attribute on loads and stores: the dimension along which elements lie side by side
/// in memory, and how many of them one access moves, `array<i64: dimension, elements>`.
inline constexpr llvm::StringLiteral kAccessAttr = "tilegpu.access";

/// The widest access of a thread, in bytes.
inline constexpr int64_t kWidestAccess = 16;

/// Decides for every load and store of a module, and notes it on the op: as many
/// neighbours as the thread has in registers, as lie in a row in memory, as are aligned
/// together, and as are masked together.
void planAccesses(mlir::ModuleOp module);

/// The registers of each access, in memory order.
llvm::SmallVector<llvm::SmallVector<int64_t>> getAccesses(mlir::Operation *op, mlir::Type pointers);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_ACCESSPLAN_H
