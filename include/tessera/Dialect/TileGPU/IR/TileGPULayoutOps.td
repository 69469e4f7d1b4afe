// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_ConvertLayoutOp : TileGPU_Op<"convert_layout", [Pure, Tile_MoveOpInterface, Tile_Collective, Tile_FewRegisters,
    DeclareOpInterfaceMethods<TileGPU_ScratchOpInterface, ["getMoreRounds"]>]> {
  let summary = "The same tile, spread over threads in another way";
  let description = [{
    The two layouts decide how far elements move (Layout/LayoutConversion.h): not at all, between
    lanes, or between warps. The last goes through shared memory, in one or several rounds
    (Layout/ExchangeRounds.h).

    Rules: (C1) operand and result differ in layout alone; (C2) both have a layout,
    not `#tilegpu.unassigned`; (C3) they are for the same number of warps, that of
    the module.

    ```mlir
    %y = tilegpu.convert_layout %x : tensor<64x32xf32, #rows> -> tensor<64x32xf32, #columns>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    static tile::Motion getMotion() { return tile::Motion::Stays; }
  }];
}

def TileGPU_RenumberOp : TileGPU_Op<"renumber", [Pure, Tile_Collective, SameOperandsAndResultElementType]> {
  let summary = "A reshape that no layout follows, through shared memory";
  let description = [{
    The same elements in row-major order under another shape. The odd factor of an
    extent is the outermost part of its dimension in every layout. A reshape that
    moves it, as from 16x24 to 384, therefore gives elements to other threads.
    Operand and result may have any layouts.

    Rules: (N1) operand and result have the same number of elements; (N2) they have
    the same number of warps and blocks.

    ```mlir
    %y = tilegpu.renumber %x : tensor<16x24xf32, #a> -> tensor<384xf32, #b>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD
