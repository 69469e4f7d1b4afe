// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tilegpu IR (docs in Passes.td).

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

#define GEN_PASS_DECL
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"

/// Registers the models by which ops of all dialects implement LayoutRuleOpInterface. They are
/// there once a context has loaded the dialects tile and tilegpu.
void registerLayoutRuleModels(mlir::DialectRegistry &registry);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_H
