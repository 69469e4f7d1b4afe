// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops in which elements of a tile meet each other: reduce, scan, sort, histogram,
// gather.

#ifndef TESSERA_DIALECT_TILE_TILEREDUCTIONOPS_TD
#define TESSERA_DIALECT_TILE_TILEREDUCTIONOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_ReduceOp : Tile_Op<"reduce", [
    Tile_IndexMapOpInterface, Tile_Collective, Tile_FewRegisters, Pure, SameOperandsShape, SingleBlock,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Elements along an axis folded into one";
  let description = [{
    The region combines two groups of scalars, one scalar an operand: first all left ones, then all
    right ones. It is assumed to be associative and commutative. The order is not defined; with the
    option `deterministic`, it is the same on every target. A tile of rank 1 gives scalars.

    Rules: (R1) the axis is a dimension; (R2) at least one operand; (R3) the region takes and
    returns the element types, as above.

    ```mlir
    %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$operands, I32Attr:$axis);
  let results = (outs Variadic<Tile_AnyLike>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $operands `)` attr-dict `:` functional-type($operands, $results) $combine";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
  }];
}

def Tile_ReduceReturnOp : Tile_Op<"reduce_return", [
    Tile_FewRegisters, Pure, HasParent<"ReduceOp">, ReturnLike, Terminator]> {
  let summary = "The combination of two groups of elements";
  let description = [{
    ```mlir
    tile.reduce_return %c : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Scalar>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def Tile_ScanOp : Tile_Op<"scan", [
    Tile_IndexMapOpInterface, Tile_Collective, Pure, SameOperandsAndResultShape, SingleBlock]> {
  let summary = "Running results of folding elements along an axis";
  let description = [{
    Element i of the result combines elements 0 to i (i to the last with
    `reverse`). The region is as in `tile.reduce`: the left scalars are what came
    before, the right ones the next element. It is taken to be associative.

    Rules: (R1) the axis is a dimension; (R2) at least one operand; (R3) the
    region takes and returns the element types; (R4) results have the operand
    types.

    ```mlir
    %s = tile.scan (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.scan_return %c : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$operands, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $operands `)` attr-dict `:` functional-type($operands, $results) $combine";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
  }];
}

def Tile_ScanReturnOp : Tile_Op<"scan_return", [Pure, HasParent<"ScanOp">, ReturnLike, Terminator]> {
  let summary = "The combination of two groups of elements";
  let description = [{
    ```mlir
    tile.scan_return %c : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Scalar>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def Tile_HistogramOp : Tile_Op<"histogram", [Tile_Collective, Pure]> {
  let summary = "How often each of the integers 0 to n - 1 occurs";
  let description = [{
    Elements outside the bins, and those masked off, are not counted.

    Rules: (H1) operand and result have rank 1; (H2) the mask has the operand's
    shape.

    ```mlir
    %h = tile.histogram %x, %m : tensor<256xi32>, tensor<256xi1> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[I32]>:$source, Optional<1DTensorOf<[I1]>>:$mask);
  let results = (outs 1DTensorOf<[I32]>:$result);
  let assemblyFormat = "$source (`,` $mask^)? attr-dict `:` type($source) (`,` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [Tile_MoveOpInterface, Tile_CostOpInterface, Tile_Collective, Pure]> {
  let summary = "Elements along an axis, chosen by index";
  let description = [{
    `result[i, j] = source[index[i, j], j]` for axis 0, and so on. An index
    outside the axis reads 0.

    Rules: (G1) source and index have one rank, and the axis is a dimension;
    (G2) their extents agree but along the axis; (G3) the result has the index's
    shape and the source's element type.

    ```mlir
    %y = tile.gather %x, %i {axis = 0 : i32}
       : tensor<64x32xf32>, tensor<16x32xi32> -> tensor<16x32xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, Tile_TileOf<[I8, I16, I32, I64]>:$index, I32Attr:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source `,` $index attr-dict `:` type($source) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Gathers; }
    static ElementCost getElementCost() { return ElementCost::Function; }
    static bool isOfOneTile() { return false; }
  }];
}

def Tile_SortOp : Tile_Op<"sort", [
    Tile_IndexMapOpInterface, Tile_Collective, Pure, SingleBlock, SameOperandsAndResultShape]> {
  let summary = "Elements along an axis in order, with what belongs to them";
  let description = [{
    The first operand is the key; the others are carried along. The region takes
    two keys and says whether the first comes before the second; the sort is
    stable.

    Rules: (S1) the axis is a dimension; (S2) results have the operand types;
    (S3) the region takes two keys and returns an i1.

    ```mlir
    %k, %v = tile.sort (%x, %i) {axis = 0 : i32}
           : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      tile.sort_return %less : i1
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$operands, I32Attr:$axis);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$compare);
  let assemblyFormat = "`(` $operands `)` attr-dict `:` functional-type($operands, $results) $compare";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
  }];
}

def Tile_SortReturnOp : Tile_Op<"sort_return", [Pure, HasParent<"SortOp">, ReturnLike, Terminator]> {
  let summary = "The result of comparing two keys: true if the first comes before the second";
  let description = [{
    ```mlir
    tile.sort_return %less : i1
    ```
  }];
  let arguments = (ins I1:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

#endif // TESSERA_DIALECT_TILE_TILEREDUCTIONOPS_TD
