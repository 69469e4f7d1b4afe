// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_TILEMATMULOPS_TD
#define TESSERA_DIALECT_TILE_TILEMATMULOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_DotOp : Tile_Op<"dot", [
    Tile_IndexMapOpInterface, Tile_Collective, Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "The product of two matrices, added to an accumulator";
  let description = [{
    `result = acc + a * b`, for a: MxK, b: KxN, or batches of them (rank 3). Floats of 16 and 8 bits
    are multiplied exactly and summed in f32, or in f16 if the accumulator is f16. Integers of 8
    bits are summed in i32. The order of the sum is not defined. `precision` says how f32 operands
    may be rounded before they are multiplied; a target may always be more precise.
    `max_imprecise_acc` bounds how many products an 8-bit float dot may sum in less than f32.

    Rules: (D1) ranks are equal, 2 or 3; (D2) the inner extents agree; (D3) the
    batch extents agree; (D4) the accumulator is MxN (BxMxN); (D5) a and b have
    one element type, or both are 8-bit floats; (D6) the accumulator is f32 or f16
    for floats of 16 and 8 bits, f32 for f32, f64 for f64, i32 for i8.

    ```mlir
    %d = tile.dot %a, %b, %c {precision = 0 : i32, max_imprecise_acc = 0 : i32}
       : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_TileOf<[Tile_Number]>:$a, Tile_TileOf<[Tile_Number]>:$b,
    Tile_TileOf<[Tile_Number]>:$acc,
    DefaultValuedAttr<Tile_InputPrecision, "InputPrecision::IEEE">:$precision,
    DefaultValuedAttr<I32Attr, "0">:$max_imprecise_acc);
  let results = (outs Tile_TileOf<[Tile_Number]>:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
  }];
}

def Tile_DotScaledOp : Tile_Op<"dot_scaled", [
    Tile_Collective, Pure, AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>]> {
  let summary = "The product of two matrices with a scale a group of elements";
  let description = [{
    Each operand has a format; e2m1 packs two elements a byte, along K or (with `a_k_pack`,
    `b_k_pack` false) along the other dimension. A scale is an 8-bit exponent (e8m0; a value of 255
    is NaN) or an f8E4M3FN, for `group` neighbours along K. The scale's shape gives `group` (16 or
    32): a's scales are Mx(K/group), b's Nx(K/group). With rank 3, each batch is multiplied
    separately.

    Rules: (S1) ranks are equal, 2 or 3, and so are batch extents; (S2) unpacked
    inner extents agree; (S3) the accumulator is MxN of f32; (S4) the operand's
    element type fits the format; (S5) each scale has shape MxG (NxG) with K/G 16
    or 32.

    ```mlir
    %d = tile.dot_scaled %a scale %sa as e4m3, %b scale %sb as e4m3, %c
       : tensor<64x32xi8> scale tensor<64x1xi8>, tensor<32x64xi8> scale tensor<64x1xi8> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$a, Tile_Tile:$b, Tile_TileOf<[F32]>:$acc,
    Optional<Tile_TileOf<[I8, F8E4M3FN]>>:$a_scale,
    Optional<Tile_TileOf<[I8, F8E4M3FN]>>:$b_scale,
    Tile_ScaleFormat:$a_format, Tile_ScaleFormat:$b_format,
    DefaultValuedAttr<BoolAttr, "true">:$a_k_pack, DefaultValuedAttr<BoolAttr, "true">:$b_k_pack,
    UnitAttr:$fast_math);
  let results = (outs Tile_TileOf<[F32]>:$result);
  let assemblyFormat = [{
    $a (`scale` $a_scale^)? `as` $a_format `,` $b (`scale` $b_scale^)? `as` $b_format `,` $acc attr-dict
    `:` type($a) (`scale` type($a_scale)^)? `,` type($b) (`scale` type($b_scale)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILE_TILEMATMULOPS_TD
