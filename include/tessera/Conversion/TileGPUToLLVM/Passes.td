// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD
#define TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileGPUPlanAccesses : Pass<"tilegpu-plan-accesses", "::mlir::ModuleOp"> {
  let summary = "Plan how many registers of a thread each access moves";
  let description = [{
    `tilegpu.access = array<i64: dimension, elements>` on a load or a store is the width of an
    access. Its elements are neighbours in a thread's registers that are contiguous, aligned and
    masked together, as the access analysis proves. If a mask holds only for some of them, the
    access gets `tilegpu.prefix_masks` (the first ones) or `tilegpu.partial_masks` (any).
    `tilegpu.runs` on comparisons, quotients, ops that depend on them, and loads has, for each
    dimension, the length of aligned runs of equal elements.

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
  let summary = "Mark f32 functions whose results are all rounded to 16 bits";
  let description = [{
    `math.exp` and `math.erf` then need not be exact to the last bit of f32 (softmax and gelu of
    16-bit floats). Modules with `deterministic` are unchanged.

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
  let summary = "Replace copies too narrow for cp.async by loads and stores";
  let description = [{
    If fewer than 4 bytes of a `tilegpu.async_copy` are contiguous in both memories, it becomes a
    `tile.load` and a `tilegpu.local_store`, with a remark. The waits and barriers behind it order
    these, too. Runs after tilegpu-plan-accesses, without whose attributes every copy has a width of
    one element.

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
  let summary = "Mark TMA copies with the rows of their boxes";
  let description = [{
    The extents of a box are in the tensor map, an argument of the kernel. Its attribute is lost
    when the kernel is converted. `tilegpu.box_rows` on `tilegpu.tma_load` and `tilegpu.tma_store`
    keeps the number of rows.

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
  let summary = "Declare the array that holds a kernel's shared memory";
  let description = [{
    `@tessera_shared` is an external array of zero bytes, whose size the launch sets. Its alignment
    is the one that the swizzles of TMA and wgmma need. A module that has it is unchanged.

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
  let summary = "Lower tiles to the registers of a thread, and accesses to instructions";
  let description = [{
    A kernel becomes an `llvm.func` with `nvvm.kernel` and one parameter per argument. A tile
    becomes as many values as its layout has registers. A load or a store moves as many registers at
    once as tilegpu-plan-accesses planned. Control flow stays `scf`, on scalars. Every tile must
    have a layout, and scratch memory must be allocated. The pipeline `tessera-thread-pipeline` runs
    the passes before this one, and this one.

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
  let summary = "Lower scalar loops and branches to the LLVM dialect";
  let description = [{
    The pass converts the `scf` ops that `convert-tilegpu-to-llvm` keeps, and the arithmetic on
    their scalars. If a module already has only ops of the LLVM dialect, as most kernels without a
    loop do, it is unchanged. This check saves compile time: walking the module for each conversion
    takes as long as some conversions do.

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
