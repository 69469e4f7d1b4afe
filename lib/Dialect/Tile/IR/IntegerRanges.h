// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_DIALECT_TILE_IR_INTEGERRANGES_H
#define TESSERA_LIB_DIALECT_TILE_IR_INTEGERRANGES_H

namespace mlir {
class MLIRContext;
}

namespace tessera::tile {

/// Has tile ops implement InferIntRangeInterface.
void registerIntegerRanges(mlir::MLIRContext &context);

} // namespace tessera::tile

#endif // TESSERA_LIB_DIALECT_TILE_IR_INTEGERRANGES_H
