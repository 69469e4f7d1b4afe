// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warp specialisation: warps that compute, and partitions of producer warps, one thread of each of
// which loads for them.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUWARPSPECIALIZEOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUWARPSPECIALIZEOPS_TD

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_WarpSpecializeOp : TileGPU_Op<"warp_specialize", [
    RecursiveMemoryEffects, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>,
    SingleBlockImplicitTerminator<"PartitionEndOp">]> {
  let summary = "Run regions at the same time, each by its own warps";
  let description = [{
    The default region is run by the warps of the program (`tilegpu.num_warps`); barriers in it are
    met by these alone. Each partition is run by one thread of `warps` warps that the program has
    besides; there is at least one. Everything before is run by all warps, and they meet at the
    entry. The regions use values from above. Only `tilegpu.mbarrier_wait` and `tilegpu.mbarrier_arrive` order memory
    between them.

    With `in_cluster`, all blocks of the cluster synchronise at the entry, so that the barriers of
    each exist. The warps of all default regions synchronise at their end, so that no block ends
    while another may access its barriers.

    With `registers` the warps of a region give up registers, or get those that others
    gave up.

    Rules: (S1) it is in a kernel, at its top level, and `tile.return` follows; (S2) a partition
    has only scalars, barriers in shared memory, TMA copies and structured control flow, no tiles
    and no other writes; (S3) only `tilegpu.mbarrier_init` writes before it, since other writes
    would happen twice; (S4) a partition has 1 warp or a multiple of 4, and all warps are 32 at
    most; (S5) either all regions set registers or none does. With registers, the warps of each
    are a multiple of 4, and each number is a multiple of 8 from 24 to 256. Their total is at most
    what the threads begin with.

    ```mlir
    tilegpu.warp_specialize default registers(240) {
      tilegpu.mbarrier_wait %full, %c0 : !tilegpu.memdesc<1xi64, #one>
      %x = tilegpu.local_load %b : !tilegpu.memdesc<64x64xbf16, #shared> -> tensor<64x64xbf16, #rows>
    } partition warps(4) registers(24) {
      tilegpu.mbarrier_expect %full, 8192 : !tilegpu.memdesc<1xi64, #one>
      tilegpu.tma_load %map[%c0, %c0], %b, %full : !tilegpu.memdesc<64x64xbf16, #shared>,
          !tilegpu.memdesc<1xi64, #one>
    }
    ```
  }];
  let arguments = (ins DenseI32ArrayAttr:$warps, OptionalAttr<I32Attr>:$default_registers,
                       OptionalAttr<DenseI32ArrayAttr>:$partition_registers, UnitAttr:$in_cluster);
  let regions = (region SizedRegion<1>:$default_region, VariadicRegion<SizedRegion<1>>:$partitions);
  let assemblyFormat = [{
    `default` (`registers` `(` $default_registers^ `)`)? $default_region
    custom<Partitions>($warps, $partition_registers, $partitions) attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Registers that a thread of the kernel has when it begins.
    unsigned getEntryRegisters();
    /// Warps of all partitions.
    unsigned countPartitionWarps();
  }];
}

def TileGPU_PartitionEndOp : TileGPU_Op<"partition_end", [
    TileGPU_ForOneThread,
    Pure, HasParent<"WarpSpecializeOp">, ReturnLike, Terminator]> {
  let summary = "The end of a region of tilegpu.warp_specialize";
  let description = [{
    The regions do not wait for each other there.

    ```mlir
    tilegpu.partition_end
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TileGPU_OneThreadOp : TileGPU_Op<"one_thread", [
    RecursiveMemoryEffects, NoRegionArguments, SingleBlock, NoTerminator]> {
  let summary = "Code that one thread of the program runs for all";
  let description = [{
    If the condition holds, a thread of the first warp runs the region: always the same one. No
    other thread waits for it. Only `tilegpu.mbarrier_wait` and `tilegpu.mbarrier_arrive` order its
    accesses of shared memory with those of other threads.

    Rules: (O1) as (S2) of `tilegpu.warp_specialize`; (O2) it is in no partition of one.

    ```mlir
    tilegpu.one_thread if %more {
      tilegpu.mbarrier_expect %full, 8192 : !tilegpu.memdesc<1xi64, #one>
      tilegpu.tma_load %map[%c0, %c0], %b, %full : !tilegpu.memdesc<64x64xbf16, #shared>,
          !tilegpu.memdesc<1xi64, #one>
    }
    ```
  }];
  let arguments = (ins I1:$condition);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`if` $condition $body attr-dict";
  let hasRegionVerifier = 1;
}

/// No access of shared memory moves past one of these.
class TileGPU_PingPongOp<string mnemonic> : TileGPU_Op<mnemonic, [
    MemoryEffects<[MemRead<TileGPU_SharedMemory>, MemWrite<TileGPU_SharedMemory>]>]>;

def TileGPU_PingPongWaitOp : TileGPU_PingPongOp<"ping_pong_wait"> {
  let summary = "Ping-pong: a warpgroup waits until the one before it has passed";
  let description = [{
    Ping-pong between warpgroups, in the order of their numbers and round again, beginning with the
    first one. From here to its `tilegpu.ping_pong_pass`, a warpgroup runs alone. So the warpgroups
    execute the code between the two one after the other. All warpgroups do both equally often,
    first this one and then the other.

    Rules: (T1) it is in the default region of a `tilegpu.warp_specialize`, whose warps are
    two to four warpgroups.

    ```mlir
    tilegpu.ping_pong_wait
    %s = arith.mulf %x, %x : tensor<64x64xf32, #rows>
    tilegpu.ping_pong_pass
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def TileGPU_PingPongPassOp : TileGPU_PingPongOp<"ping_pong_pass"> {
  let summary = "Ping-pong: a warpgroup lets the next one go on";
  let description = [{
    See `tilegpu.ping_pong_wait`. No warp waits here.

    Rules: (T1) as there.

    ```mlir
    tilegpu.ping_pong_pass
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUWARPSPECIALIZEOPS_TD
