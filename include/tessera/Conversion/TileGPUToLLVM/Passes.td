// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD
#define TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTileGPUToLLVM : Pass<"convert-tilegpu-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Writes what one thread does: tiles become registers, accesses become instructions";
  let description = [{
    A kernel becomes an `llvm.func` with `nvvm.kernel` and one parameter an argument; a
    tile becomes as many values as its layout has registers. Loads and stores move as
    many registers at once as the access analysis vouches for. Control flow stays `scf`,
    on scalars. Every tile must have a layout, and scratch memory must be allocated.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>) {
      %x = tile.load %p : !tile.ptr<f32>
      ...
    }
    ```
    becomes
    ```mlir
    llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %x = llvm.load %p : !llvm.ptr<1> -> f32
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD
