// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD
#define TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileGPUPlanAccesses : Pass<"tilegpu-plan-accesses", "::mlir::ModuleOp"> {
  let summary = "Notes on loads and stores how many registers of a thread one access moves";
  let description = [{
    As many neighbours as a thread has in registers, of those that the access analysis says lie side
    by side, aligned and masked together: `tilegpu.access = array<i64: dimension, elements>`. Where
    a mask holds for some of them alone, `tilegpu.prefix_masks` (the first ones) or
    `tilegpu.partial_masks` (any). On comparisons and what is made of them, `tilegpu.runs`: in how
    long aligned runs along each dimension all elements are the same.

    ```mlir
    %p = tile.addptr %base, %i : ...
    %x = tile.load %p : ...
    ```
    becomes, where a thread has four neighbours that lie at a multiple of 16 bytes,
    ```mlir
    %p = tile.addptr %base, %i : ...
    %x = tile.load %p {tilegpu.access = array<i64: 0, 4>} : ...
    ```
  }];
}

def TileGPUMarkNarrowResults : Pass<"tilegpu-mark-narrow-results", "::mlir::ModuleOp"> {
  let summary = "Notes on functions of f32 that all made of the result is rounded to 16 bits";
  let description = [{
    `math.exp` and `math.erf` then need not be exact to the last bit of f32 (softmax and gelu of
    16-bit floats). Nothing is noted in modules that are `deterministic`.

    ```mlir
    %e = math.exp %x : ...
    %y = arith.mulf %e, %e : ...
    %z = tile.fp_to_fp %y : ...
    ```
    becomes
    ```mlir
    %e = math.exp %x {tilegpu.narrow_result} : ...
    ```
  }];
}

def TileGPUReplaceNarrowCopies : Pass<"tilegpu-replace-narrow-copies", "::mlir::ModuleOp"> {
  let summary = "Loads and stores what cp.async has no width for";
  let description = [{
    A `tilegpu.async_copy` of which no 4 bytes lie side by side in both memories becomes a
    `tile.load` and a `tilegpu.local_store`, with a remark. The waits and barriers behind it order
    that too. Needs what tilegpu-plan-accesses notes: without it, every copy is of one element.

    ```mlir
    tilegpu.async_copy %p, %b : tensor<128x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    ```
    becomes
    ```mlir
    %x = tile.load %p : tensor<128x!tile.ptr<f16>, #lanes>
    tilegpu.local_store %x, %b : tensor<128xf16, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def TileGPUMarkBoxes : Pass<"tilegpu-mark-boxes", "::mlir::ModuleOp"> {
  let summary = "Notes on copies by tensor maps of which boxes they are";
  let description = [{
    The extents of a box are in the tensor map, an argument of the kernel whose attribute is lost
    when the kernel is converted: `tilegpu.box_rows` on `tilegpu.tma_load` and `tilegpu.tma_store`
    has the rows.

    ```mlir
    tilegpu.tma_store %tile, %map[%i, %j] : !tilegpu.memdesc<8x64xbf16, #shared>
    ```
    becomes, where a box of the map has eight rows,
    ```mlir
    tilegpu.tma_store %tile, %map[%i, %j] {tilegpu.box_rows = 8 : i64} : !tilegpu.memdesc<8x64xbf16, #shared>
    ```
  }];
}

def TileGPUDeclareSharedMemory : Pass<"tilegpu-declare-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Declares the array that all shared memory of a kernel lies in";
  let description = [{
    An external array of no bytes, whose extent the launch says: `@tessera_shared`, at a multiple of
    what the swizzles of TMA and wgmma ask for. A module that has it is left alone.

    ```mlir
    tile.func @kernel() ...
    ```
    becomes
    ```mlir
    llvm.mlir.global external @tessera_shared() {addr_space = 3 : i32, alignment = 1024 : i64, dso_local} : !llvm.array<0 x i8>
    tile.func @kernel() ...
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ConvertTileGPUToLLVM : Pass<"convert-tilegpu-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Writes what one thread does: tiles become registers, accesses become instructions";
  let description = [{
    A kernel becomes an `llvm.func` with `nvvm.kernel` and one parameter an argument; a
    tile becomes as many values as its layout has registers. Loads and stores move as
    many registers at once as tilegpu-plan-accesses has noted. Control flow stays `scf`,
    on scalars. Every tile must have a layout, and scratch memory must be allocated. The pipeline
    `tessera-thread-pipeline` runs the passes that come before it, and this one.

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
