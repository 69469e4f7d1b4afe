// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers that are words of shared memory. Unlike `tilegpu.barrier`, they complete by arrivals and
// by bytes that TMA has written. A thread that waits need not arrive.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUMBARRIEROPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUMBARRIEROPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

/// No access of shared memory moves past one of these.
class TileGPU_MBarrierOp<string mnemonic, list<Trait> traits = []>
    : TileGPU_Op<mnemonic, !listconcat([
          MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>], traits)>;

def TileGPU_MBarrierInitOp : TileGPU_MBarrierOp<"mbarrier_init"> {
  let summary = "Initialise barriers for their first phase";
  let description = [{
    All slots, where it is a ring. A phase is over when there were `arrivals` of it and no
    bytes are missing that `tilegpu.mbarrier_expect` announced; then the next one begins.
    Phases have parity 0, 1, 0, ... Seen by all at the entry of `tilegpu.warp_specialize`,
    in front of which it stands, or behind a `tilegpu.proxy_fence` and a `tilegpu.barrier`.

    Rules: (N1) there is at least one arrival, and there are fewer than 2^20.

    ```mlir
    tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #one, slots = 4>
    ```
  }];
  let arguments = (ins TileGPU_MBarriers:$barrier, I32Attr:$arrivals);
  let assemblyFormat = "$barrier attr-dict `:` qualified(type($barrier))";
  let hasVerifier = 1;
}

def TileGPU_MBarrierWaitOp : TileGPU_MBarrierOp<"mbarrier_wait", [TileGPU_ForOneThread]> {
  let summary = "Wait until a phase is complete";
  let description = [{
    Every thread that runs it waits until the barrier has left a phase of this parity (0 or 1). For
    a new barrier, parity 0 waits for the first phase, and parity 1 returns at once. Writes before
    the arrivals of the phase, and TMA's writes for it, are visible then. A waiter is at most one
    phase behind.

    ```mlir
    tilegpu.mbarrier_wait %slot, %phase : !tilegpu.memdesc<1xi64, #one>
    ```
  }];
  let arguments = (ins TileGPU_MBarrier:$barrier, I32:$parity);
  let assemblyFormat = "$barrier `,` $parity attr-dict `:` qualified(type($barrier))";
}

def TileGPU_MBarrierArriveOp : TileGPU_MBarrierOp<"mbarrier_arrive", [TileGPU_ForOneThread]> {
  let summary = "An arrival at a barrier";
  let description = [{
    Each warp of the program arrives once, after what it did before; so there are as many
    arrivals as it has warps. In what one thread runs (the partition of a
    `tilegpu.warp_specialize`) that one arrives.

    With `in_cluster`, each warp arrives at the barrier in this place in every block of the cluster
    (`tilegpu.num_parts`), its own included. So there are as many arrivals as all blocks have warps.
    A thread that waits there knows only that the reads before the arrivals are done.

    Rules: (A1) with `in_cluster` it is not in code that one thread runs.

    ```mlir
    tilegpu.mbarrier_arrive %slot : !tilegpu.memdesc<1xi64, #one>
    tilegpu.mbarrier_arrive %slot {in_cluster} : !tilegpu.memdesc<1xi64, #one>
    ```
  }];
  let arguments = (ins TileGPU_MBarrier:$barrier, UnitAttr:$in_cluster);
  let assemblyFormat = "$barrier attr-dict `:` qualified(type($barrier))";
  let hasVerifier = 1;
}

def TileGPU_MBarrierExpectOp : TileGPU_MBarrierOp<"mbarrier_expect", [TileGPU_ForOneThread]> {
  let summary = "An arrival at a barrier, whose phase also waits for so many bytes";
  let description = [{
    One arrival. The bytes are those of all `tilegpu.tma_load` of this phase, zeros beyond
    the array included.

    Rules: (E1) it is in the partition of a `tilegpu.warp_specialize` or in a
    `tilegpu.one_thread`; (E2) there are 1 to
    2^20 - 1 bytes.

    ```mlir
    tilegpu.mbarrier_expect %slot, 32768 : !tilegpu.memdesc<1xi64, #one>
    ```
  }];
  let arguments = (ins TileGPU_MBarrier:$barrier, I32Attr:$bytes);
  let assemblyFormat = "$barrier `,` $bytes attr-dict `:` qualified(type($barrier))";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUMBARRIEROPS_TD
