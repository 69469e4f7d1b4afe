// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which functions need not be exact to the last bit of f32.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NARROWRESULTS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NARROWRESULTS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// An attribute on functions of f32: all that is made of the result is rounded to 16 bits.
inline constexpr llvm::StringLiteral kNarrowResultAttr = "tilegpu.narrow_result";

/// Notes on every exp of a module of which that is known, unless it is `deterministic`.
void markNarrowResults(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NARROWRESULTS_H
