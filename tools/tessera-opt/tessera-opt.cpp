// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-opt: run passes and pipelines on textual IR.

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<tessera::tile::TileDialect>();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Tessera's pass driver\n", registry));
}
