// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes that take tile IR to loops of hardware-width strips, for CPUs.

#ifndef TESSERA_CONVERSION_TILETOSTRIPS_PASSES_H
#define TESSERA_CONVERSION_TILETOSTRIPS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_CONVERSION_TILETOSTRIPS_PASSES_H
