// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tile IR to a GPU (docs in Passes.td).

#ifndef TESSERA_CONVERSION_TILETOTILEGPU_PASSES_H
#define TESSERA_CONVERSION_TILETOTILEGPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "tessera/Conversion/TileToTileGPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Conversion/TileToTileGPU/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_CONVERSION_TILETOTILEGPU_PASSES_H
