// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-reduce: make a failing test case smaller, by MLIR's reducer.
//
//     tessera-reduce --reduction-tree='traversal-mode=0 test=still-fails.sh' case.mlir

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "tessera/InitAll.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  tessera::registerAllPasses();
  tessera::registerAllPipelines();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
