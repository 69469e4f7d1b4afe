// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots on tensor cores: of a warp on registers (mma.sync), and of warpgroups on
// shared memory (wgmma). tilegpu-accelerate-matmul makes them of tile.dot.
//
// The instructions prescribe the layouts of their tiles. These follow from the shapes, and from the
// arrangement of warps over the result, which the ops carry.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUMATMULOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUMATMULOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_MemDescTransOp : TileGPU_Op<"memdesc_trans", [Pure,
    InferTypeOpAdaptor]> {
  let summary = "A tile in shared memory with its dimensions in another order";
  let description = [{
    The same bytes; nothing moves. Dimension d of the result is dimension `order[d]`.

    Rules: (T1) `order` is a permutation of the dimensions.

    ```mlir
    %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>}
       : !tilegpu.memdesc<64x32xf16, #shared> -> !tilegpu.memdesc<32x64xf16, #shared1>
    ```
  }];
  let arguments = (ins TileGPU_Buffer:$buffer, DenseI32ArrayAttr:$order);
  let results = (outs TileGPU_Buffer:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
}

def TileGPU_MmaDotOp : TileGPU_Op<"mma_dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "A dot of tiles in registers, by mma.sync";
  let description = [{
    `result = acc + a * b`, where each warp computes a part of the result. `warps` is their number
    along each dimension. f32 operands are truncated to tf32, by 13 bits. With another `precision`,
    they are sums of tf32 or bf16 (FloatParts.h). The products of these are summed separately, and
    threads add the sums to `acc`, since tensor cores truncate sums instead of rounding them. In a
    cluster, each block has a part of the result, or with `of_block` the whole result of a dot of
    its own.

    Rules: (P1) shapes are those of a dot, of rank 2 or 3; (P2) a and b are both f16, bf16 (acc f32,
    or f16 for f16), f32 (acc f32), i8 (acc i32) or f64 (acc f64), or 8-bit floats of one or two
    types (acc f32); (P3) the powers of two in the extents are at least 16 (M), 8 (N), and for K 8
    (16-bit), 16 (8-bit), 4 (f32, f64); (P4) there
    are `warps` for each dimension, powers of two; (P5) tiles that have a layout have that of
    `getOperandLayout` and `getAccumulatorLayout`; (P6) `precision` is tf32 where operands are not
    f32, and never ieee.

    ```mlir
    %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 2, 2>}
       : tensor<64x32xf16, #a>, tensor<32x64xf16, #b> -> tensor<64x64xf32, #acc>
    ```
  }];
  let arguments = (ins Tile_Tile:$a, Tile_Tile:$b, Tile_Tile:$acc, DenseI32ArrayAttr:$warps,
    DefaultValuedAttr<Tile_InputPrecision, "::tessera::tile::InputPrecision::TF32">:$precision,
    UnitAttr:$of_block);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bits of an element as the instruction has it: those of the parts of f32.
    unsigned getOperandBits();
    /// The layouts that the instruction prescribes.
    ::tessera::LinearLayout getOperandLayout(unsigned operand);
    ::tessera::LinearLayout getAccumulatorLayout();
  }];
}

def TileGPU_WarpgroupDotOp : TileGPU_Op<"warpgroup_dot", [AllTypesMatch<["acc", "result"]>,
    TileGPU_AsyncProxyOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A dot of tiles in shared memory, by wgmma";
  let description = [{
    `result = acc + a * b`, for b in shared memory and a there or in registers. The warps work in
    groups of four, each on a part of the result. `groups` is their number along each dimension. f32
    operands are truncated to tf32. With another `precision`, they are sums of tf32 or bf16
    (FloatParts.h). Then a is in registers, and b is a ring whose slots hold the parts of the second
    operand. Threads add the sums of the parts, as in `tilegpu.mma_dot`. All of that is complete
    behind the op. `of_block` is as there, too.

    Without `is_async`, the result is complete behind the op. With it, the dot is in flight. Only
    the next dot's accumulator and `tilegpu.warpgroup_wait` may use the result, and the operands
    must not be written before that wait.

    Operands that threads wrote to shared memory (not TMA) need a proxy
    fence of the writers before the barrier.

    Rules: (W1) shapes are those of a dot, of rank 2; (W2) a and b are both f16, bf16 (acc f32, or
    f16 for f16), f32 (acc f32), i8 (acc i32), or 8-bit floats (acc f32 or f16); (W3) the power of
    two in M is at least 64 per group, in N at least 8 per group, and in K at least 32 bytes; (W4)
    operands in memory are laid out as the instruction can read them (Layout/MatrixDescriptor.h),
    those of 8 and 32 bits with K in rows; (W5) tiles that have a layout have that of
    `getOperandLayout` and `getAccumulatorLayout`; (W6) if `precision` makes parts, b is a ring with
    a slot for each, of their element type, a is f32, and the op is not `is_async`.

    ```mlir
    %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>}
       : !tilegpu.memdesc<64x32xf16, #shared>, !tilegpu.memdesc<32x64xf16, #shared1> -> tensor<64x64xf32, #acc>
    ```
  }];
  let arguments = (ins AnyTypeOf<[TileGPU_Buffer, Tile_Tile]>:$a, TileGPU_MemDesc:$b, Tile_Tile:$acc,
    DenseI32ArrayAttr:$groups, UnitAttr:$is_async, DefaultValuedAttr<I32Attr, "0">:$max_imprecise_acc,
    DefaultValuedAttr<Tile_InputPrecision, "::tessera::tile::InputPrecision::TF32">:$precision,
    UnitAttr:$of_block);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The layouts that the instruction prescribes, of a in registers and of the accumulators.
    ::tessera::LinearLayout getOperandLayout();
    ::tessera::LinearLayout getAccumulatorLayout();
  }];
}

def TileGPU_WarpgroupWaitOp : TileGPU_Op<"warpgroup_wait", [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>,
    InferTypeOpAdaptor]> {
  let summary = "Wait until at most so many dots are in flight";
  let description = [{
    Dots (`tilegpu.warpgroup_dot` with `is_async`) end in the order in which they began. Its
    operands are the accumulators of the dots that end here, and its results replace them. Dots that
    are still in flight are not among them.

    Rules: (V1) the accumulators are of one type; (V2) `pendings` is not negative.

    ```mlir
    %e = tilegpu.warpgroup_wait %d {pendings = 0 : i32} : tensor<64x64xf32, #acc>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$accumulators, ConfinedAttr<I32Attr, [IntNonNegative]>:$pendings);
  let results = (outs Variadic<Tile_Tile>:$results);
  let hasVerifier = 1;
  let assemblyFormat = "($accumulators^)? attr-dict (`:` type($accumulators)^)?";
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUMATMULOPS_TD
