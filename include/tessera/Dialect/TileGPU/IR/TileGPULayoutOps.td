// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD

include "tessera/Dialect/TileGPU/IR/TileGPUOpBase.td"

def TileGPU_ConvertLayoutOp : TileGPU_Op<"convert_layout", [Pure, Tile_MoveOpInterface, Tile_Collective, Tile_FewRegisters,
    DeclareOpInterfaceMethods<TileGPU_ScratchOpInterface, ["getMoreRounds"]>]> {
  let summary = "The same tile, spread over threads in another way";
  let description = [{
    How far the elements travel follows from the two layouts
    (Layout/LayoutConversion.h): not at all, between lanes, or between warps through
    shared memory, at once or in rounds (Layout/ExchangeRounds.h).

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

#endif // TESSERA_DIALECT_TILEGPU_TILEGPULAYOUTOPS_TD
