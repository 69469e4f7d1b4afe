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
    module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
      tile.func @k(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
        %x = tile.load %p : !tile.ptr<f32>
        tile.store %q, %x : !tile.ptr<f32>
        tile.return
      }
    }
    ```
    becomes
    ```mlir
    llvm.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %x = llvm.load %p ... : !llvm.ptr<1> -> f32
      ...  // the first of 128 threads stores it
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def ConvertControlFlowToLLVM : Pass<"convert-control-flow-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Writes loops and branches on scalars, where there are any, in the LLVM dialect";
  let description = [{
    What `convert-tilegpu-to-llvm` leaves: `scf` becomes blocks, and what computes on their
    scalars is converted with them. A module in which all is of the LLVM dialect already, as
    of most kernels without a loop, is left alone: looking through it for each of the
    conversions takes as long as some of them do.

    ```mlir
    llvm.func @k(%holds: i1) {
      scf.if %holds {
        nvvm.barrier
      }
      llvm.return
    }
    ```
    becomes
    ```mlir
    llvm.func @k(%holds: i1) {
      llvm.cond_br %holds, ^bb1, ^bb2
    ^bb1:
      nvvm.barrier
      llvm.br ^bb2
    ^bb2:
      llvm.return
    }
    ```
  }];
}

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD
