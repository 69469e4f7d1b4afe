// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block pointers and tensor descriptors: an array with shape and strides, from
// which blocks are loaded and to which they are stored.

#ifndef TESSERA_DIALECT_TILE_TILEDESCRIPTOROPS_TD
#define TESSERA_DIALECT_TILE_TILEDESCRIPTOROPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_MakeBlockPtrOp : Tile_Op<"make_block_ptr", [Pure, AttrSizedOperandSegments]> {
  let summary = "A block pointer from base, shape, strides and offsets";
  let description = [{
    Shape, strides and offsets count elements and have one entry a dimension of
    the block. `order` lists the dimensions from the fastest in memory to the
    slowest; it is a hint.

    Rules: (M1) shape, strides, offsets and order have the block's rank; (M2) the
    base points to the block's element type; (M3) `order` is a permutation.

    ```mlir
    %b = tile.make_block_ptr %base, [%m, %k], [%sm, %sk], [%i, %j] {order = array<i32: 1, 0>}
       : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
    ```
  }];
  let arguments = (ins Tile_PointerType:$base, Variadic<I64>:$shape, Variadic<I64>:$strides,
    Variadic<I32>:$offsets, DenseI32ArrayAttr:$order);
  let results = (outs Tile_BlockPointerType:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict
    `:` qualified(type($base)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_AdvanceOp : Tile_Op<"advance", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "A block pointer moved by offsets in elements";
  let description = [{
    Rules: (A1) one offset a dimension.

    ```mlir
    %c = tile.advance %b, [%zero, %step] : !tile.block_ptr<tensor<64x32xf32>>
    ```
  }];
  let arguments = (ins Tile_BlockPointerType:$source, Variadic<I32>:$offsets);
  let results = (outs Tile_BlockPointerType:$result);
  let assemblyFormat = "$source `,` `[` $offsets `]` attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
}

def Tile_BlockLoadOp : Tile_Op<"block_load", []> {
  let summary = "The block that a block pointer points to";
  let description = [{
    Along the dimensions in `boundary_check`, an element outside the array reads the padding; along
    the others, the user promises that the block lies inside.

    Rules: (B1) the result is the block; (B2) `boundary_check` names dimensions of
    the block, each once; (B3) NaN padding needs a float element type.

    ```mlir
    %x = tile.block_load %b {boundary_check = array<i32: 0, 1>, padding = 0 : i32}
       : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_BlockPointerType, "", [MemRead]>:$source,
    DenseI32ArrayAttr:$boundary_check,
    DefaultValuedAttr<Tile_Padding, "Padding::Zero">:$padding,
    DefaultValuedAttr<Tile_CacheModifier, "CacheModifier::None">:$cache,
    DefaultValuedAttr<Tile_EvictionPolicy, "EvictionPolicy::Normal">:$evict);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_BlockStoreOp : Tile_Op<"block_store", []> {
  let summary = "A block written where a block pointer points";
  let description = [{
    Elements outside the array along `boundary_check` are not written.

    Rules: (B1) the value is a block; (B2) `boundary_check` names dimensions of
    the block, each once.

    ```mlir
    tile.block_store %b, %x {boundary_check = array<i32: 0>}
      : !tile.block_ptr<tensor<64x32xf32>>, tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_BlockPointerType, "", [MemWrite]>:$target, Tile_Tile:$value,
    DenseI32ArrayAttr:$boundary_check,
    DefaultValuedAttr<Tile_CacheModifier, "CacheModifier::None">:$cache,
    DefaultValuedAttr<Tile_EvictionPolicy, "EvictionPolicy::Normal">:$evict);
  let assemblyFormat = "$target `,` $value attr-dict `:` qualified(type($target)) `,` type($value)";
  let hasVerifier = 1;
}

def Tile_MakeDescriptorOp : Tile_Op<"make_descriptor", [Pure, AttrSizedOperandSegments]> {
  let summary = "A tensor descriptor from base, shape and strides";
  let description = [{
    Shape and strides count elements. The last stride is 1. Elements outside the
    array always read the padding and are never written.

    Rules: (D1) shape and strides have the block's rank; (D2) the base points to
    the block's element type; (D3) NaN padding needs a float element type.

    ```mlir
    %d = tile.make_descriptor %base, [%m, %k], [%sm, %one]
       : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
    ```
  }];
  let arguments = (ins Tile_PointerType:$base, Variadic<I32>:$shape, Variadic<I64>:$strides,
    DefaultValuedAttr<Tile_Padding, "Padding::Zero">:$padding);
  let results = (outs Tile_DescriptorType:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` qualified(type($base)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DescriptorExtentOp : Tile_Op<"descriptor_extent", [Pure]> {
  let summary = "The extent of a described array along a dimension";
  let description = [{
    That of the array, not of the block.

    Rules: (E1) the dimension is one of the block's.

    ```mlir
    %m = tile.descriptor_extent %d, 0 : !tile.descriptor<tensor<64x32xf16>>
    ```
  }];
  let arguments = (ins Tile_DescriptorType:$source, I32Attr:$dim);
  let results = (outs I32:$result);
  let assemblyFormat = "$source `,` $dim attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_DescriptorStrideOp : Tile_Op<"descriptor_stride", [Pure]> {
  let summary = "The stride of a described array along a dimension, in elements";
  let description = [{
    Rules: (E1) the dimension is one of the block's.

    ```mlir
    %s = tile.descriptor_stride %d, 0 : !tile.descriptor<tensor<64x32xf16>>
    ```
  }];
  let arguments = (ins Tile_DescriptorType:$source, I32Attr:$dim);
  let results = (outs I64:$result);
  let assemblyFormat = "$source `,` $dim attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_DescriptorLoadOp : Tile_Op<"descriptor_load", []> {
  let summary = "The block at coordinates of a described array";
  let description = [{
    Rules: (D1) one coordinate a dimension; (D2) the result is the block, or the
    block without leading dimensions of extent 1.

    ```mlir
    %x = tile.descriptor_load %d, [%i, %j] : !tile.descriptor<tensor<64x32xf16>> -> tensor<64x32xf16>
    ```
  }];
  let arguments = (ins Arg<Tile_DescriptorType, "", [MemRead]>:$source, Variadic<I32>:$offsets,
    DefaultValuedAttr<Tile_CacheModifier, "CacheModifier::None">:$cache,
    DefaultValuedAttr<Tile_EvictionPolicy, "EvictionPolicy::Normal">:$evict);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source `,` `[` $offsets `]` attr-dict `:` qualified(type($source)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DescriptorStoreOp : Tile_Op<"descriptor_store", []> {
  let summary = "A block written at coordinates of a described array";
  let description = [{
    Rules: (D1) one coordinate a dimension; (D2) the value is the block, or the
    block without leading dimensions of extent 1.

    ```mlir
    tile.descriptor_store %d, [%i, %j], %x : !tile.descriptor<tensor<64x32xf16>>, tensor<64x32xf16>
    ```
  }];
  let arguments = (ins Arg<Tile_DescriptorType, "", [MemWrite]>:$target, Variadic<I32>:$offsets,
    Tile_Tile:$value);
  let assemblyFormat = "$target `,` `[` $offsets `]` `,` $value attr-dict `:` qualified(type($target)) `,` type($value)";
  let hasVerifier = 1;
}

def Tile_DescriptorGatherOp : Tile_Op<"descriptor_gather", []> {
  let summary = "Rows of a described array, chosen by index";
  let description = [{
    Row r of the result is row `rows[r]` of the array, from column `column` on.
    Elements outside the array read the padding.

    Rules: (G1) the block has rank 2 and one row; (G2) the result has one row an
    index and the block's columns.

    ```mlir
    %x = tile.descriptor_gather %d, %rows, %j
       : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32> -> tensor<8x32xf16>
    ```
  }];
  let arguments = (ins Arg<Tile_DescriptorType, "", [MemRead]>:$source,
    RankedTensorOf<[I16, I32]>:$rows, I32:$column);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source `,` $rows `,` $column attr-dict `:` qualified(type($source)) `,` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DescriptorScatterOp : Tile_Op<"descriptor_scatter", []> {
  let summary = "Rows written to a described array, chosen by index";
  let description = [{
    Rules: (G1) the block has rank 2 and one row; (G2) the value has one row an
    index and the block's columns.

    ```mlir
    tile.descriptor_scatter %d, %rows, %j, %x
      : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32>, tensor<8x32xf16>
    ```
  }];
  let arguments = (ins Arg<Tile_DescriptorType, "", [MemWrite]>:$target,
    RankedTensorOf<[I16, I32]>:$rows, I32:$column, Tile_Tile:$value);
  let assemblyFormat = "$target `,` $rows `,` $column `,` $value attr-dict `:` qualified(type($target)) `,` type($rows) `,` type($value)";
  let hasVerifier = 1;
}

def Tile_DescriptorReduceOp : Tile_Op<"descriptor_reduce", []> {
  let summary = "A block combined atomically into a described array";
  let description = [{
    Elements outside the array are unchanged. Nothing is returned.

    Rules: (D1) one coordinate a dimension; (D2) the value is the block; (D4) the
    kind fits the element type as for atomic_rmw.

    ```mlir
    tile.descriptor_reduce add, %d, [%i, %j], %x : !tile.descriptor<tensor<64x32xi32>>, tensor<64x32xi32>
    ```
  }];
  let arguments = (ins Tile_AtomicKind:$kind, Arg<Tile_DescriptorType, "", [MemRead, MemWrite]>:$target,
    Variadic<I32>:$offsets, Tile_Tile:$value);
  let assemblyFormat = "$kind `,` $target `,` `[` $offsets `]` `,` $value attr-dict `:` qualified(type($target)) `,` type($value)";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILE_TILEDESCRIPTOROPS_TD
