// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The encodings of tiles on a GPU.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTATTR_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTATTR_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "tessera/Dialect/Tile/IR/TileInterfaces.td"
include "tessera/Dialect/TileGPU/IR/TileGPUDialect.td"

class TileGPU_Attr<string name, string attrMnemonic, list<Trait> traits>
    : AttrDef<TileGPU_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def TileGPU_LayoutAttr : TileGPU_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<Tile_EncodingInterface>,
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Which place holds which element of a tile";
  let description = [{
    A linear map over F2 from places to elements (Layout/LinearLayout.h), for tiles of one shape.
    Each list has an entry for each bit of a part of the place. The entry is the element at the
    place where only this bit is set, as coordinates (as a number for rank 1). The element anywhere
    else is the XOR of the columns of the bits that are set. A column of 0 is a copy. An extent of
    `odd * 2^k` has its `2^k` part in the map; the odd factor is an outermost repeat.

    Rules of a layout of registers (it has `lane`): (L1) each column is 0 or a power of two, each at
    most once; (L2) every element is somewhere; (L3) there are 5 lane columns, and in a cluster a
    `block` column for each bit of the block's rank; (L4) register columns are sorted, and none is
    0, since a register's name means nothing. A layout of shared memory has `offset`, and `block` if
    each block of a cluster has a part of the tile. Its rule: (M1) every offset of a block holds one
    element, and every element is at one offset of one block, or of both if a block column is 0.

    ```mlir
    #rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0],
                            [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
    #swizzled = #tilegpu.layout<2x4, offset = [[0, 1], [0, 2], [1, 1]]>
    #halves = #tilegpu.layout<8, block = [4], offset = [1, 2]>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::tessera::LinearLayout", "the map", "const ::tessera::LinearLayout &">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True for a layout of registers, false for one of shared memory.
    bool isDistributed() const { return !getLayout().columns(HwDim::Lane).empty(); }
    /// Warps that hold a part of the tile, or a copy.
    unsigned getNumWarps() const { return 1u << getLayout().columns(HwDim::Warp).size(); }
    /// Blocks of a cluster that hold a part of the tile, or a copy.
    unsigned getNumBlocks() const { return 1u << getLayout().columns(HwDim::Block).size(); }
    /// Registers of a thread, repeats included.
    int64_t getNumRegisters() const;
  }];
}

def TileGPU_UnassignedAttr : TileGPU_Attr<"Unassigned", "unassigned", [
    DeclareAttrInterfaceMethods<Tile_EncodingInterface>]> {
  let summary = "The encoding of a tile whose layout is not chosen yet";
  let description = [{
    convert-tile-to-tilegpu puts it on every tile. No tile has it after tilegpu-assign-layouts.

    ```mlir
    tensor<64xf32, #tilegpu.unassigned>
    ```
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTATTR_TD
