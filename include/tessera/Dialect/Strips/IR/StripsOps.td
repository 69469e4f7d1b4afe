// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_STRIPS_STRIPSOPS_TD
#define TESSERA_DIALECT_STRIPS_STRIPSOPS_TD

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tessera/Dialect/Tile/IR/TileOpBase.td"
include "tessera/Dialect/Strips/IR/StripsDialect.td"

class Strips_Op<string mnemonic, list<Trait> traits = []>
    : Op<Strips_Dialect, mnemonic, traits>;

def Strips_GroupOp : Strips_Op<"group", [RecursiveMemoryEffects, SingleBlock, NoRegionArguments]> {
  let summary = "Operations on tiles that become one loop nest";
  let description = [{
    The region computes on tiles. Ops with effects (stores, reductions, writes to buffers, atomics)
    run for every index of `shape`. The order among different indices is not defined. So no element
    read in a group may be written in it for another index.

    Before `strips-materialize` a group yields tiles and scalars, afterwards scalars
    alone.

    Rules: (G1) the region ends in a `strips.yield` of the results; (G2) what is
    reduced or stored in it has its shape; (G3) scalars that it yields are results of
    reductions, or of a split of two elements, in it.

    ```mlir
    %y = strips.group [1024] -> tensor<1024xf32> {
      %x = tile.load %p : tensor<1024x!tile.ptr<f32>>
      %z = math.exp %x : tensor<1024xf32>
      strips.yield %z : tensor<1024xf32>
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$shape (`->` type($results)^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Strips_YieldOp : Strips_Op<"yield", [Pure, HasParent<"GroupOp">, ReturnLike, Terminator]> {
  let summary = "The results of a group";
  let description = [{
    ```mlir
    strips.yield %z : tensor<1024xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange{}); }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Strips_ScratchOp : Strips_Op<"scratch", [Pure]> {
  let summary = "A buffer in the scratch arena of the running thread";
  let description = [{
    The buffer starts `offset` bytes into the arena, at a multiple of 64.

    ```mlir
    %b = strips.scratch 4096 : memref<64x64xf32>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$offset);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
}

def Strips_ReadOp : Strips_Op<"read", []> {
  let summary = "The tile that a buffer holds";
  let description = [{
    A buffer keeps an i1 as an i8 of 0 or 1 and a pointer as its i64 address.

    Rules: (R1) the buffer has the tile's shape; (R2) its element type is that in
    which the tile's elements are kept.

    ```mlir
    %x = strips.read %b : memref<64x64xf32> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Strips_WriteOp : Strips_Op<"write", []> {
  let summary = "Put a tile in a buffer";
  let description = [{
    Rules: (R1) the buffer has the tile's shape; (R2) its element type is that in
    which the tile's elements are kept.

    ```mlir
    strips.write %x, %b : tensor<64x64xf32>, memref<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Arg<AnyMemRef, "", [MemWrite]>:$target);
  let assemblyFormat = "$value `,` $target attr-dict `:` type($value) `,` type($target)";
  let hasVerifier = 1;
}

def Strips_DotOp : Strips_Op<"dot", []> {
  let summary = "The dot of two matrices in buffers, added in place";
  let description = [{
    `acc += a * b` for a: MxK, b: KxN, acc: MxN, with the meaning of `tile.dot`.

    Rules: (D1) the ranks are 2; (D2) the extents agree; (D3) none is 0.

    ```mlir
    strips.dot %a, %b, %c {precision = 2 : i32}
      : memref<64x32xf32>, memref<32x64xf32>, memref<64x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyStridedMemRefOfRank<2>, "", [MemRead]>:$a,
    Arg<AnyStridedMemRefOfRank<2>, "", [MemRead]>:$b,
    Arg<AnyStridedMemRefOfRank<2>, "", [MemRead, MemWrite]>:$acc,
    DefaultValuedAttr<Tile_InputPrecision, "::tessera::tile::InputPrecision::IEEE">:$precision,
    DefaultValuedAttr<I32Attr, "0">:$max_imprecise_acc);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)";
  let hasVerifier = 1;
}

def Strips_ExceedsCachesOp : Strips_Op<"exceeds_caches", [Pure]> {
  let summary = "True if a launch writes or reads more than the caches hold";
  let description = [{
    Each program writes (or reads) `bytes`. The result is true if all programs of the launch
    together exceed the caches, so that the first bytes are evicted before the last come. The
    launcher sets the limit.

    ```mlir
    %large = strips.exceeds_caches %bytes
    ```
  }];
  let arguments = (ins I64:$bytes);
  let results = (outs I1:$result);
  let assemblyFormat = "$bytes attr-dict";
}

def Strips_NextProgramIdOp : Strips_Op<"next_program_id", [Pure]> {
  let summary = "The index along an axis of the program that this thread runs next";
  let description = [{
    For prefetches. If no program follows, it is this program's own index. Only kernels may use it,
    since functions do not get it.

    ```mlir
    %next = strips.next_program_id 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Strips_PrivateCopyOp : Strips_Op<"private_copy", [Pure]> {
  let summary = "This thread's private copy of the beginning of an array that programs add to";
  let description = [{
    The `bytes` bytes of `memory` are neutral at first. When the thread has run its programs,
    atomics add them to the bytes from `base` on. Elements that nothing was added to are skipped.
    `bytes` is a multiple of 64. It is at most 256 KiB at first, and at most 4 MiB when the copy has
    grown, which happens between programs. It is 0 if the thread's programs, of `lanes` lanes each,
    are too few for a copy to pay. The 64 bytes that are 4 MiB behind the beginning of `memory` take
    additions without a place. An element is of a type that atomics add to.

    ```mlir
    %bytes, %memory = strips.private_copy %base of f32 by 1024
    ```
  }];
  let arguments = (ins I64:$base, TypeAttrOf<AnyTypeOf<[I32, I64, F16, BF16, F32, F64]>>:$element,
    ConfinedAttr<I64Attr, [IntPositive]>:$lanes);
  let results = (outs I64:$bytes, I64:$memory);
  let assemblyFormat = "$base `of` $element `by` $lanes attr-dict";
}

def Strips_PrintOp : Strips_Op<"print", [Tile_NamesProgram, AttrSizedOperandSegments, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "Prints the values of one element of a tile";
  let description = [{
    `tile.print` for the element at the given index; `widths` has the characters that
    each index takes at least.

    ```mlir
    strips.print " x = " [%i, %j] [3, 1] : %x {hex = false, is_signed = array<i32: 1>} : f32
    ```
  }];
  let arguments = (ins StrAttr:$prefix, Variadic<Index>:$indices,
    DenseI32ArrayAttr:$widths, Variadic<AnyType>:$args,
    BoolAttr:$hex, DenseI32ArrayAttr:$is_signed);
  let assemblyFormat = "$prefix `[` $indices `]` $widths (`:` $args^)? attr-dict (`:` type($args)^)?";
}

#endif // TESSERA_DIALECT_STRIPS_STRIPSOPS_TD
