// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops by which blocks of a cluster compute separately, and combine their results.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUCLUSTEROPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUCLUSTEROPS_TD

include "mlir/Interfaces/InferIntRangeInterface.td"
include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_ClusterRankOp : TileGPU_Op<"cluster_rank", [Pure,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "The number of the block in its cluster";
  let description = [{
    From 0 to one less than `tilegpu.num_ctas`, or than `tilegpu.num_parts`. Values that depend on
    it differ between the blocks of a program. So with `num_ctas` tiles are whole in each block, and
    blocks do not meet, in all that comes before the `tilegpu.cluster_sum` that ends it. With
    `num_parts` it says which part of the program is the block's.

    ```mlir
    %rank = tilegpu.cluster_rank : i32
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TileGPU_ClusterSumOp : TileGPU_Op<"cluster_sum", [Tile_Collective, Pure,
    DeclareOpInterfaceMethods<TileGPU_ScratchOpInterface, ["getMoreRounds"]>]> {
  let summary = "The sum of the tiles that the blocks of a cluster have";
  let description = [{
    Each block has a tile of its own, whole. They are added through distributed shared memory. Each
    block stores its tile there. A thread loads its elements of the sum from all blocks, starting at
    its own block. Blocks that hold the same elements start at the same block. So the order of the
    sum is fixed for each element, and all copies are equal. Blocks have parts of the sum where its
    layout says so, so that each element is loaded and added once.

    All blocks of the cluster meet there. A running warp that never arrives blocks the others for
    ever. So the partition of `tilegpu.warp_specialize` must end without it.

    Rules: (U1) operand and result differ in layout alone; (U2) their elements are numbers; (U3)
    the operand's layout, if it has one, has no parts for blocks; (U4) layouts are of as many warps
    and blocks as the module has.

    ```mlir
    %sum = tilegpu.cluster_sum %partial : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #rows>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUCLUSTEROPS_TD
