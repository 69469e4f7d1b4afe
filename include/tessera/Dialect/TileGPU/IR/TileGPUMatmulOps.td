// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots on tensor cores: of a warp on registers (mma.sync), and of warpgroups on
// shared memory (wgmma). tilegpu-accelerate-matmul makes them of tile.dot.
//
// Their tiles have layouts that the instructions prescribe; which, follows from the
// shapes and from how the warps are spread over the result, which the ops carry.

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
    `result = acc + a * b`, each warp for its part of the result: `warps` says how many
    there are along each dimension of the result. f32 operands are taken as tf32, their
    lower 13 bits cut off; or, with another `precision`, as sums of tf32 or bf16
    (FloatParts.h), whose products are summed apart and added to `acc` by threads, since tensor
    cores cut off what a sum does not hold instead of rounding it. Of a cluster each block has a
    part of the result; or the whole one, of a dot of its own (`of_block`).

    Rules: (P1) shapes are those of a dot, of rank 2 or 3; (P2) a and b are both
    f16, bf16 (acc f32, or f16 for f16), f32 (acc f32), i8 (acc i32) or f64 (acc f64);
    (P3) the powers of two in the extents of the result are at least 16 and 8, that of K
    at least 8 (16-bit), 16 (8-bit), 4 (f32, f64); (P4) there are `warps` for each
    dimension, powers of two; (P5) tiles that have a layout have that of
    `getOperandLayout` and `getAccumulatorLayout`; (P6) `precision` is tf32 where operands are
    not f32, and never ieee.

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
    `result = acc + a * b`, for b in shared memory and a there or in registers. The warps
    work in groups of four, each group on its part of the result: `groups` says how many
    groups there are along each dimension of it. f32 operands are taken as tf32; or, with
    another `precision`, as sums of tf32 or bf16 (FloatParts.h): then a is in registers, b a
    ring whose slots hold the parts of the second operand, and threads add what dots of
    parts sum up to, as in `tilegpu.mma_dot`. Nothing of that is under way behind the op.
    `of_block` is as there, too.

    Without `is_async` the result is there when the op is done. With it the dot is
    only begun: the result may be used by the next dot's accumulator and by
    `tilegpu.warpgroup_wait`, nothing else, and the operands must not be written before
    that wait.

    Operands that threads wrote to shared memory (not TMA) need a proxy
    fence of the writers before the barrier.

    Rules: (W1) shapes are those of a dot, of rank 2; (W2) a and b are both f16, bf16
    (acc f32, or f16 for f16), f32 (acc f32), i8 (acc i32), or 8-bit floats (acc f32 or
    f16); (W3) the power of two in M is at least 64 for each group along it, that in N at
    least 8 for each group; that in K is at least 32 bytes; (W4) operands in memory are laid
    out as the instruction can read them (Layout/MatrixDescriptor.h), those of 8 and 32
    bits with K in rows; (W5) tiles that have a layout have that of `getOperandLayout`
    and `getAccumulatorLayout`; (W6) b is a ring where `precision` makes parts, of one slot for
    each, and of their element type; a is f32 then, and the op not `is_async`.

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
  let summary = "Waits until at most so many dots are still under way";
  let description = [{
    Dots (`tilegpu.warpgroup_dot` with `is_async`) end in the order in which they
    began. Those that have ended after this op are given as its operands, and its
    results stand for their accumulators from here on; those still under way are not.

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
