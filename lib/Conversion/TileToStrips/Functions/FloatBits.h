// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bf16 between operations, as integers.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_FLOATBITS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_FLOATBITS_H

#include "mlir/IR/Operation.h"

namespace tessera {

/// Makes every bf16 the integer of its bits, but where an intrinsic or an atomic asks for a bf16.
/// No arithmetic on them may be left. LLVM may keep a bf16 that it carries from one block to
/// another, or selects, as an f32, and round it back. That changes a NaN. With AVX512-BF16's
/// instruction, a denormal becomes zero.
void carryAsBits(mlir::Operation *root);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_FLOATBITS_H
