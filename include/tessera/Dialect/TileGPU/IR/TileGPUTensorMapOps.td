// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of whole tiles by TMA, which takes coordinates and a tensor map of the array.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_MakeTensorMapOp : TileGPU_Op<"make_tensor_map", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileGPU_ScratchOpInterface>,
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "The tensor map of an array that the kernel finds";
  let description = [{
    Describes an array whose place, extents or strides are not known at the launch. In `map` the
    base is operand 0, and symbol s<n> of extents and strides is operand number n. The map is
    written to shared memory, and from there to 128 bytes of global memory of the program, where TMA
    reads it. It overwrites the map of an earlier iteration of an enclosing loop, whose copies must
    be complete.

    `memory` is the address of those bytes, from convert-tilegpu-to-llvm on.

    Rules: (K1) it is in a kernel, and neither in the partition of a `tilegpu.warp_specialize` nor
    in a `tilegpu.one_thread`; (K2) the map's base is 0, and its symbols are the operands, of which
    all but the base are integers; (K3) an array has at least one element, wherever something is
    copied by its map. An extent that is not positive is described as 1.

    ```mlir
    tile.func @kernel(%a: !tile.ptr<f16>, %m: i32, %ld: i64) {
      %map = tilegpu.make_tensor_map %a[%m, %ld] {map = #tilegpu.tensor_map<base = 0, element = f16,
          extents = ()[s0, s1, s2] -> (s1, 64), strides = ()[s0, s1, s2] -> (s2, 1),
          box = [128, 64], swizzle = 128>} : !tile.ptr<f16>, i32, i64
      tile.return
    }
    ```
  }];
  let arguments = (ins Tile_Ptr:$base, Variadic<AnySignlessIntegerOrIndex>:$symbols,
                       Optional<I64>:$memory, TileGPU_TensorMapAttr:$map);
  let results = (outs TileGPU_TensorMapType:$result);
  let assemblyFormat = [{
    $base `[` $symbols `]` (`in` $memory^)? attr-dict `:` type($base) `,` type($symbols)
  }];
  let hasVerifier = 1;
}

def TileGPU_TMALoadOp : TileGPU_Op<"tma_load", [TileGPU_ForOneThread, TileGPU_AsyncProxyOpInterface]> {
  let summary = "Begin a TMA copy of a tile from global to shared memory";
  let description = [{
    Begins to copy the tile at these coordinates (outermost first, those of its first element).
    Elements beyond the extents of the map are zeros. When the copy is complete, all its bytes are
    counted on the barrier, on which `tilegpu.mbarrier_expect` announced them. Only barriers of this
    kind order it with other accesses of the buffer.

    With `multicast`, every block of the cluster (`tilegpu.num_parts`) runs it for the same tile,
    and all get the tile. With n blocks, block r copies boxes r, r + n, r + 2n, ... to this place in
    the shared memory of all blocks. Each block counts the bytes of all boxes on its barrier in this
    place. So no block does it before the buffer may be written in all of them.

    Rules: (T1) it is in the partition of a `tilegpu.warp_specialize` or in a `tilegpu.one_thread`.
    With `multicast`, the former is `in_cluster`, and the blocks divide the number of boxes; (T2)
    the map is an argument of the kernel with `tilegpu.tensor_map`, or the result of
    `tilegpu.make_tensor_map`, with one dimension per coordinate; (T3) the buffer has the map's
    element type, and its layout is in boxes of the map (Layout/TensorMapBox.h), which may be
    shorter than they have to be.

    ```mlir
    tilegpu.tma_load %map[%row, %column], %b, %full : !tilegpu.memdesc<128x64xbf16, #shared>,
        !tilegpu.memdesc<1xi64, #one>
    ```
  }];
  let arguments = (ins Arg<TileGPU_TensorMapType, "", [MemRead]>:$map, Variadic<I32>:$coordinates,
    Arg<TileGPU_Buffer, "", [MemWrite<TileGPU_SharedMemory>]>:$buffer, TileGPU_MBarrier:$barrier,
    UnitAttr:$multicast);
  let assemblyFormat = [{
    $map `[` $coordinates `]` `,` $buffer `,` $barrier attr-dict `:` qualified(type($buffer)) `,`
    qualified(type($barrier))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The barrier is reached as threads do.
    ::llvm::SmallVector<::mlir::Value> getProxyBuffers() { return {getBuffer()}; }
  }];
}

def TileGPU_TMAStoreOp : TileGPU_Op<"tma_store", [TileGPU_AsyncProxyOpInterface]> {
  let summary = "Begin a TMA copy of a tile from shared to global memory";
  let description = [{
    Begins to copy the buffer to the tile at these coordinates. Elements beyond the extents of the
    map are skipped. One thread issues it, always the same. That thread waits for the copy by
    `tilegpu.tma_store_commit` and `tilegpu.tma_store_wait`, the others by a `tilegpu.barrier`
    behind these. Until then no thread may write to the buffer. Earlier writes of threads need a
    proxy fence and a barrier.

    With `groups`, the boxes are dealt to warpgroups round-robin along each dimension, the first one
    fastest. A thread of each group issues the copies of its boxes. The buffer is then written by
    `tilegpu.local_store`s alone that write each box by warps of its own group, so that groups need
    not meet.

    Rules: (T2), (T3) as for `tilegpu.tma_load`; (T4) it is not in the partition of a
    `tilegpu.warp_specialize`. With `groups`: (G1) it is in the default region of one, whose
    warps are as many groups, two to four; (G2) each dimension has a multiple of as many
    boxes; (G3) the buffer is as above.

    ```mlir
    tilegpu.tma_store %b, %map[%row, %column] : !tilegpu.memdesc<128x64xbf16, #shared>
    tilegpu.tma_store %o, %map[%row, %column] {groups = array<i32: 2, 1>} :
        !tilegpu.memdesc<128x64xbf16, #shared>
    ```
  }];
  let arguments = (ins Arg<TileGPU_Buffer, "", [MemRead<TileGPU_SharedMemory>]>:$buffer,
    Arg<TileGPU_TensorMapType, "", [MemWrite]>:$map, Variadic<I32>:$coordinates,
    OptionalAttr<DenseI32ArrayAttr>:$groups);
  let assemblyFormat = [{
    $buffer `,` $map `[` $coordinates `]` attr-dict `:` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def TileGPU_TMAStoreCommitOp : TileGPU_Op<"tma_store_commit", [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "The stores by TMA since the last one are a group";
  let description = [{
    A group may be empty. With `of_group` each warpgroup has stores of its own.

    Rules: (B1) as for `tilegpu.barrier`.

    ```mlir
    tilegpu.tma_store_commit
    ```
  }];
  let arguments = (ins UnitAttr:$of_group);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def TileGPU_TMAStoreWaitOp : TileGPU_Op<"tma_store_wait", [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "Wait for the oldest groups of stores by TMA";
  let description = [{
    Waits until at most the `pending` newest groups are in flight. With `read`, a group is complete
    once its buffers have been read and may be written again (by other threads after a
    `tilegpu.barrier`). Without it, a group is complete once global memory is written. Shared memory
    has to last until it is read. With `of_group` a thread of each warpgroup waits for those that it
    has begun.

    Rules: (W1) `pending` is not negative; (B1) as for `tilegpu.barrier`.

    ```mlir
    tilegpu.tma_store_wait {pending = 1 : i32, read}
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$pending, UnitAttr:$read,
                       UnitAttr:$of_group);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPOPS_TD
