// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tilegpu dialect: where the elements of tiles live on a GPU, and what moves them.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD

include "mlir/IR/OpBase.td"

def TileGPU_Dialect : Dialect {
  let name = "tilegpu";
  let cppNamespace = "::tessera::tilegpu";
  let summary = "Where tiles live on a GPU: registers, lanes, warps, shared memory";
  let description = [{
    Ops of the tile dialect, `arith` and `math` stay; their tiles get an encoding
    that says which thread holds which element. Until layouts are assigned it is
    `#tilegpu.unassigned`, from then on a `#tilegpu.layout`. The ops here are those
    that only exist because a tile is spread over threads: conversions between
    layouts, shared memory, barriers.

    Operands and results of an op have these layouts:

    - elementwise ops, loads, stores, atomics, scan, sort, histogram's source and
      mask: one layout for all tiles of the op (histogram's result: any);
    - shape ops and reduce: what TileEncodingInterface says, so that no element moves;
    - dot: the accumulator and the result have one layout, the operands any;
    - gather: index and result have one layout, the source any;
    - of a cluster each block has all of what goes to shared memory: the operands of dots,
      the source of gather, the source and mask of histogram, tiles that are copied there.

    A module has `tilegpu.num_warps`, the warps of a program (a power of two, at most
    32), and `tilegpu.target`, the GPU that it is for (#tilegpu.target). With `tilegpu.num_ctas` so many blocks, a
    cluster, do a program together, each with these warps: layouts of registers then have
    block columns. Blocks with the same part of a tile do the same with it, but for what
    may be done only once. With `tilegpu.num_parts` instead, the program is divided into so many
    parts (tilegpu-divide-programs), each of which is done by a block of a cluster by itself:
    tiles are those of a block, and what a block does with others is copies by TMA to all of them.
  }];
  let dependentDialects = ["::tessera::tile::TileDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    void registerOps();
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD
