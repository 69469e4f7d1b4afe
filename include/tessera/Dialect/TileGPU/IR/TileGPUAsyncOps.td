// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies from global to shared memory that go on while a program computes.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUASYNCOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUASYNCOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_AsyncCopyOp : TileGPU_Op<"async_copy", [
    Tile_AccessOpInterface, Tile_FewRegisters, AttrSizedOperandSegments]> {
  let summary = "Begin an asynchronous copy of a tile from global to shared memory";
  let description = [{
    Starts to copy what the pointers point to; a lane whose mask is false writes 0. If `if` is given
    and false, nothing is copied. When the copy is done is known by `tilegpu.async_commit` and
    `tilegpu.async_wait`, and by the other warps after a `tilegpu.barrier` behind that. Until then
    no thread may access the buffer.

    Lanes that are neighbours in global memory and in the buffer travel together, 16, 8 or 4 bytes
    at once. If there are none such, the copy is done at once.

    Rules: (C1) the buffer has the shape of the pointers and their pointee as element
    type; (C2) the mask has the shape of the pointers.

    ```mlir
    tilegpu.async_copy %p, %b mask %m if %more : tensor<64x32x!tile.ptr<f16>, #rows>,
        !tilegpu.memdesc<64x32xf16, #shared>, tensor<64x32xi1, #rows>
    ```
  }];
  let arguments = (ins Arg<Tile_Tile, "", [MemRead]>:$ptr,
    Arg<TileGPU_Buffer, "", [MemWrite<TileGPU_SharedMemory>]>:$buffer,
    Optional<Tile_BoolLike>:$mask, Optional<I1>:$condition);
  let assemblyFormat = [{
    $ptr `,` $buffer (`mask` $mask^)? (`if` $condition^)? attr-dict `:`
    type($ptr) `,` qualified(type($buffer)) (`,` type($mask)^)?
  }];
  let hasVerifier = 1;
}

def TileGPU_AsyncCommitOp : TileGPU_Op<"async_commit", [
    Tile_FewRegisters,
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "The copies since the last one are a group";
  let description = [{
    A group may be empty.

    ```mlir
    tilegpu.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TileGPU_AsyncWaitOp : TileGPU_Op<"async_wait", [
    Tile_FewRegisters,
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "Wait for the oldest groups of copies";
  let description = [{
    Until at most `pending` groups are on their way, the newest. The thread's own copies are
    complete then. Those of other threads need a `tilegpu.barrier` after it.

    Rules: (W1) `pending` is not negative.

    ```mlir
    tilegpu.async_wait {pending = 1 : i32}
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "attr-dict";
}

def TileGPU_PrefetchOp : TileGPU_Op<"prefetch", [MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "Prefetch bytes of global memory to the second-level cache";
  let description = [{
    One thread of the program prefetches `bytes` bytes from the pointer on, rounded to whole units
    of 16 bytes. It does so if `if` holds and `bytes` is positive. The op reads nothing and needs no
    wait. It serves later loads of these bytes, as a rule of another program. They are bytes that
    some program loads.

    ```mlir
    tilegpu.prefetch %p, %bytes if %more : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Tile_Ptr:$ptr, I32:$bytes, I1:$condition);
  let assemblyFormat = "$ptr `,` $bytes `if` $condition attr-dict `:` type($ptr)";
}

def TileGPU_ProxyFenceOp : TileGPU_Op<"proxy_fence", [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]> {
  let summary = "Make a thread's writes to shared memory visible to the async proxy";
  let description = [{
    Tensor cores (wgmma) and TMA come to shared memory on another way than threads. They see a
    thread's writes after this op of that thread and a `tilegpu.barrier`. Asynchronous copies that
    have been waited for are such writes, too. With `of_memory` that holds for global memory, too.

    ```mlir
    tilegpu.proxy_fence
    ```
  }];
  let arguments = (ins UnitAttr:$of_memory);
  let assemblyFormat = "attr-dict";
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUASYNCOPS_TD
