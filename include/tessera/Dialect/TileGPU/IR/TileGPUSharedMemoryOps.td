// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUSHAREDMEMORYOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUSHAREDMEMORYOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_LocalAllocOp : TileGPU_Op<"local_alloc", [
    Tile_FewRegisters,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A buffer in shared memory, with a tile written to it if one is given";
  let description = [{
    The buffer is its own until its last use, or its `local_dealloc`.

    Rules: (A1) the tile has the shape and element type of the buffer; (A2) a ring is
    given none; (A3) of a buffer of which each block of a cluster has a part, the tile has its
    parts in the same blocks.

    ```mlir
    %b = tilegpu.local_alloc %x : (tensor<64x32xf32, #rows>) -> !tilegpu.memdesc<64x32xf32, #shared>
    ```
  }];
  let arguments = (ins Optional<Tile_Tile>:$source);
  let results = (outs TileGPU_MemDesc:$result);
  let assemblyFormat = "($source^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def TileGPU_LocalDeallocOp : TileGPU_Op<"local_dealloc", [Tile_FewRegisters]> {
  let summary = "The end of a buffer in shared memory";
  let description = [{
    ```mlir
    tilegpu.local_dealloc %b : !tilegpu.memdesc<64x32xf32, #shared>
    ```
  }];
  let arguments = (ins Arg<TileGPU_MemDesc, "", [MemFree<TileGPU_SharedMemory>]>:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer))";
}

def TileGPU_LocalLoadOp : TileGPU_Op<"local_load", [Tile_FewRegisters]> {
  let summary = "A tile read from shared memory";
  let description = [{
    Sees what other threads wrote before the last `tilegpu.barrier`. With `from` it reads
    the part of a buffer that begins at this index of one dimension, a multiple of the
    tile's extent there.

    Rules: (A1) the tile has the shape and element type of the buffer; (A2) with `from` it may be
    shorter along that dimension, if both extents are powers of two and no other block has a part of
    the buffer; (A3) of a buffer of which each block of a cluster has a part, the tile has its parts
    in the same blocks.

    ```mlir
    %x = tilegpu.local_load %b : !tilegpu.memdesc<64x32xf32, #shared> -> tensor<64x32xf32, #rows>
    %s = tilegpu.local_load %b from %k along 1 : !tilegpu.memdesc<64x32xf32, #shared> -> tensor<64x4xf32, #slice>
    ```
  }];
  let arguments = (ins Arg<TileGPU_Buffer, "", [MemRead<TileGPU_SharedMemory>]>:$buffer,
                       Optional<I32>:$first, OptionalAttr<I32Attr>:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $buffer (`from` $first^ `along` $axis)? attr-dict `:` qualified(type($buffer)) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$buffer), [{
    build($_builder, $_state, result, buffer, /*first=*/{}, /*axis=*/{});
  }]>];
  let hasVerifier = 1;
}

def TileGPU_LocalStoreOp : TileGPU_Op<"local_store", []> {
  let summary = "A tile written to shared memory";
  let description = [{
    Rules: (A1) the tile has the shape and element type of the buffer; (A3) of a buffer of
    which each block of a cluster has a part, the tile has its parts in the same blocks.

    ```mlir
    tilegpu.local_store %x, %b : tensor<64x32xf32, #rows>, !tilegpu.memdesc<64x32xf32, #shared>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Arg<TileGPU_Buffer, "", [MemWrite<TileGPU_SharedMemory>]>:$buffer);
  let assemblyFormat = "$value `,` $buffer attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

// A word of shared memory by which one thread sends a scalar to others.
class TileGPU_LocalScalarOp<string mnemonic, list<Trait> traits = []>
    : TileGPU_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def TileGPU_LocalStoreScalarOp : TileGPU_LocalScalarOp<"local_store_scalar"> {
  let summary = "A scalar written to shared memory by the program's first thread";
  let description = [{
    All threads have the same scalar, of which one writes it to an element of a buffer of i64.
    Readers and later writers wait for each other at an mbarrier. No `tilegpu.barrier` is inserted
    between them.

    Rules: (L1) the buffer has one dimension of i64, and the element is one of its; (L2) the
    scalar is an integer of at most 64 bits, an index, a pointer or a tensor map; (L3) it is not
    in what one thread runs.

    ```mlir
    tilegpu.local_store_scalar %n, %words[2] : i32, !tilegpu.memdesc<16xi64, #words>
    ```
  }];
  let arguments = (ins TileGPU_LocalScalar:$value,
                       Arg<TileGPU_Buffer, "", [MemWrite<TileGPU_SharedMemory>]>:$buffer,
                       I32Attr:$index);
  let assemblyFormat = [{
    $value `,` $buffer `[` $index `]` attr-dict `:` type($value) `,` qualified(type($buffer))
  }];
}

def TileGPU_LocalLoadScalarOp : TileGPU_LocalScalarOp<"local_load_scalar", [TileGPU_ForOneThread]> {
  let summary = "A scalar read from shared memory";
  let description = [{
    The value that `tilegpu.local_store_scalar` wrote before the arrivals that the thread has waited
    for. If it is a tensor map, TMA reads it as it was made before these.

    Rules: (L1) and (L2) of `tilegpu.local_store_scalar`; (L4) a tensor map, and nothing else, says
    in `map` what it was made as.

    ```mlir
    %n = tilegpu.local_load_scalar %words[2] : !tilegpu.memdesc<16xi64, #words> -> i32
    ```
  }];
  let arguments = (ins Arg<TileGPU_Buffer, "", [MemRead<TileGPU_SharedMemory>]>:$buffer,
                       I32Attr:$index, OptionalAttr<TileGPU_TensorMapAttr>:$map);
  let results = (outs TileGPU_LocalScalar:$result);
  let assemblyFormat = [{
    $buffer `[` $index `]` attr-dict `:` qualified(type($buffer)) `->` type($result)
  }];
}

def TileGPU_MemDescIndexOp : TileGPU_Op<"memdesc_index", [Tile_FewRegisters, Pure, InferTypeOpAdaptor]> {
  let summary = "One slot of a ring";
  let description = [{
    The number of the slot is below the ring's `slots`.

    ```mlir
    %b = tilegpu.memdesc_index %ring[%slot] : !tilegpu.memdesc<64x32xf16, #shared, slots = 3>
    ```
  }];
  let arguments = (ins TileGPU_Ring:$ring, I32:$slot);
  let results = (outs TileGPU_Buffer:$result);
  let assemblyFormat = "$ring `[` $slot `]` attr-dict `:` qualified(type($ring))";
}

def TileGPU_BarrierOp : TileGPU_Op<"barrier", [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "All warps of the partition meet; what they wrote to shared memory is seen";
  let description = [{
    Orders shared memory. `tile.barrier` orders a program's writes to global memory with its later
    reads.

    With `of_group` the four warps of each group meet alone.

    Rules: (B1) with `of_group` it is in the default region of a
    `tilegpu.warp_specialize`, whose warps are two to four groups.

    ```mlir
    tilegpu.barrier
    tilegpu.barrier {of_group}
    ```
  }];
  let arguments = (ins UnitAttr:$of_group);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUSHAREDMEMORYOPS_TD
