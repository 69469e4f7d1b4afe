// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles from nothing or from a scalar. Constants are arith.constant.

#ifndef TESSERA_DIALECT_TILE_TILECREATIONOPS_TD
#define TESSERA_DIALECT_TILE_TILECREATIONOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_RangeOp : Tile_Op<"range", [Tile_FewRegisters, Pure]> {
  let summary = "The integers start, start + 1, ..., end - 1";
  let description = [{
    Rules: (R1) `end - start` is the length of the result; (R2) `end > start`.

    ```mlir
    %i = tile.range 0 to 128 : tensor<128xi32>
    ```
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs 1DTensorOf<[I32]>:$result);
  let assemblyFormat = "$start `to` $end attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Tile_MoveOpInterface, Tile_FewRegisters, Pure]> {
  let summary = "A tile whose every element is the given scalar";
  let description = [{
    Rules: (S1) the element type of the result is the operand's type.

    ```mlir
    %t = tile.splat %x : f32 -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Scalar:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static Motion getMotion() { return Motion::Stays; }
  }];
}

#endif // TESSERA_DIALECT_TILE_TILECREATIONOPS_TD
