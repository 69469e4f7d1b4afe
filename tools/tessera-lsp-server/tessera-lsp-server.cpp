// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-lsp-server: completion, definitions and diagnostics for our IR in editors.

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tessera/InitAll.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
