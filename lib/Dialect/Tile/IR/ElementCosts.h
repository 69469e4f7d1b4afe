// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_DIALECT_TILE_IR_ELEMENTCOSTS_H
#define TESSERA_LIB_DIALECT_TILE_IR_ELEMENTCOSTS_H

namespace mlir {
class MLIRContext;
}

namespace tessera::tile {

/// Has ops of arith and math implement CostOpInterface.
void registerElementCosts(mlir::MLIRContext &context);

} // namespace tessera::tile

#endif // TESSERA_LIB_DIALECT_TILE_IR_ELEMENTCOSTS_H
