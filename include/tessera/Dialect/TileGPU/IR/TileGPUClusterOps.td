// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What blocks of a cluster do each for itself, and bring together.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUCLUSTEROPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUCLUSTEROPS_TD

include "mlir/Interfaces/InferIntRangeInterface.td"
include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_ClusterRankOp : TileGPU_Op<"cluster_rank", [Pure,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "The number of the block in its cluster";
  let description = [{
    From 0 to one less than `tilegpu.num_ctas`, or than `tilegpu.num_parts`. What is computed from
    it differs between the blocks that do a program together. So with `num_ctas` tiles are whole in
    each block, and blocks do not meet, in all that comes before the `tilegpu.cluster_sum` that ends
    it. With `num_parts` it says which part of the program is the block's.

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
    Each block has a tile of its own, whole. They are added through distributed shared memory: each
    block stores its tile there, and threads load what they are to have of the sum from all blocks,
    from their own one on and around; blocks that have the same elements begin with the same one, so
    that the order is always the same for an element, and all copies of it are equal. Blocks have
    parts of the sum where its layout says so, so that each element is loaded and added once.

    All blocks of the cluster meet there. Whoever is still running and does not come there keeps
    the others waiting for ever, so what runs beside (the partition of `tilegpu.warp_specialize`)
    is to end by itself.

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
