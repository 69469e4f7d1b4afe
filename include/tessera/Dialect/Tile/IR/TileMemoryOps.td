// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pointers, loads and stores. Atomics are in TileAtomicOps.td, block pointers and
// descriptors in TileDescriptorOps.td.

#ifndef TESSERA_DIALECT_TILE_TILEMEMORYOPS_TD
#define TESSERA_DIALECT_TILE_TILEMEMORYOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_AddPtrOp : Tile_ElementwiseOp<"addptr", [Tile_FewRegisters, AllTypesMatch<["result", "ptr"]>]> {
  let summary = "Pointers moved by a number of elements";
  let description = [{
    The offset is signed, of 8 to 64 bits, and counts elements of the pointee.
    The address is computed in 64 bits and wraps.

    ```mlir
    %q = tile.addptr %p, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Tile_IntLike:$offset);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($ptr) `,` type($offset)";
  let hasFolder = 1;
}

def Tile_PtrToIntOp : Tile_ElementwiseOp<"ptr_to_int"> {
  let summary = "Addresses as 64-bit integers";
  let description = [{
    ```mlir
    %a = tile.ptr_to_int %p : !tile.ptr<f32> -> i64
    ```
  }];
  let arguments = (ins Tile_PtrLike:$source);
  let results = (outs Tile_I64Like:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
}

def Tile_IntToPtrOp : Tile_ElementwiseOp<"int_to_ptr"> {
  let summary = "64-bit integers as addresses";
  let description = [{
    ```mlir
    %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
    ```
  }];
  let arguments = (ins Tile_I64Like:$source);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
}

def Tile_BitcastOp : Tile_ElementwiseOp<"bitcast"> {
  let summary = "The same bits read as another type";
  let description = [{
    Rules: (B1) element types have the same width; (B2) a pointer is cast to a
    pointer alone.

    ```mlir
    %i = tile.bitcast %x : tensor<64xf32> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_AnyLike:$source);
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_LoadOp : Tile_Op<"load", [
    Tile_AccessOpInterface, Tile_FewRegisters,
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "The elements that pointers point to";
  let description = [{
    A lane whose mask is false touches no memory and reads `other`, or 0 where
    there is no `other`. A volatile load is done once per lane, in program
    order; it is neither repeated, moved nor dropped.

    Rules: (L1) the result has the shape of the pointers and their pointee as
    element type; (L2) the mask has the shape of the pointers; (L3) `other` has
    the type of the result; (L4) `other` needs a mask.

    ```mlir
    %x = tile.load %p, %m, %zero : tensor<64x!tile.ptr<f32>>
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_BoolLike>:$mask,
    Optional<Tile_AnyLike>:$other,
    DefaultValuedAttr<Tile_CacheModifier, "CacheModifier::None">:$cache,
    DefaultValuedAttr<Tile_EvictionPolicy, "EvictionPolicy::Normal">:$evict,
    UnitAttr:$isVolatile);
  let results = (outs Tile_AnyLike:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$ptr, CArg<"::mlir::Value", "{}">:$mask,
    CArg<"::mlir::Value", "{}">:$other)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_StoreOp : Tile_Op<"store", [Tile_AccessOpInterface, Tile_FewRegisters]> {
  let summary = "Elements written where pointers point";
  let description = [{
    A lane whose mask is false writes nothing. If two lanes write one address, it holds one of the
    two values afterwards.

    Rules: (S1) the value has the shape of the pointers and their pointee as
    element type; (S2) the mask has the shape of the pointers.

    ```mlir
    tile.store %p, %x, %m : tensor<64x!tile.ptr<f32>>
    ```
  }];
  let arguments = (ins Arg<Tile_PtrLike, "", [MemWrite]>:$ptr, Tile_AnyLike:$value,
    Optional<Tile_BoolLike>:$mask,
    DefaultValuedAttr<Tile_CacheModifier, "CacheModifier::None">:$cache,
    DefaultValuedAttr<Tile_EvictionPolicy, "EvictionPolicy::Normal">:$evict);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

#endif // TESSERA_DIALECT_TILE_TILEMEMORYOPS_TD
