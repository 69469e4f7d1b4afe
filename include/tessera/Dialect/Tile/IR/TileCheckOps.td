// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses that are checked against the memory behind the kernel's arguments. No front-end makes
// these ops. tile-check-accesses inserts the first one before each access, for the interpreter.
// tile-expand-access-checks expands it into the others, for compiled code.

#ifndef TESSERA_DIALECT_TILE_TILECHECKOPS_TD
#define TESSERA_DIALECT_TILE_TILECHECKOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_CheckAccessOp : Tile_Op<"check_access", [
    AttrSizedOperandSegments, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "The lanes of an access that lie in an argument's memory";
  let description = [{
    The pointers were computed from `base`, which is the kernel's argument number `argument`. A lane
    whose mask is true must point to a whole element of the argument's memory, as the launch
    describes it. `exact`, if given, is the number of bytes from `base` to the pointer, computed
    without wrapping. It must be the distance of the pointer from `base`. Otherwise the launch
    fails, with the place of this op. The result is true for the lanes that may be accessed: a lane
    that fails accesses no memory.

    Rules: (C1) mask, exact and result have the shape of the pointers; (C2)
    `access` is "load", "store" or "atomic"; (C3) `argument` is not negative.

    ```mlir
    %ok = tile.check_access %p of %base, %m {access = "load", argument = 0 : i32}
        : tensor<64x!tile.ptr<f32>>, !tile.ptr<f32>, tensor<64xi1> -> tensor<64xi1>
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Tile_Ptr:$base, Optional<Tile_BoolLike>:$mask,
    Optional<Tile_I64Like>:$exact, ConfinedAttr<I32Attr, [IntNonNegative]>:$argument,
    StrAttr:$access);
  let results = (outs Tile_BoolLike:$result);
  let assemblyFormat = [{
    $ptr `of` $base (`,` $mask^)? (`exact` $exact^)? attr-dict `:` type($ptr) `,` type($base)
    (`,` type($mask)^)? (`exact` type($exact)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ArgumentMemoryOp : Tile_Op<"argument_memory", [Pure]> {
  let summary = "The bounds of the memory behind an argument";
  let description = [{
    The address of the first byte of the memory behind the kernel's argument number `argument`, and
    that of the byte after its last one. If the launch does not give them, they are 0 and the
    largest integer.

    Rules: (A1) `argument` is not negative.

    ```mlir
    %begin, %end = tile.argument_memory 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$argument);
  let results = (outs I64:$begin, I64:$end);
  let assemblyFormat = "$argument attr-dict";
}

def Tile_ReportAccessOp : Tile_Op<"report_access", [
    Tile_NamesProgram, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "The launch fails if an access was out of its argument's memory";
  let description = [{
    If `fails` is true, the launch fails as for `tile.check_access`. `offset` is the distance of a
    lane from the argument, in bytes. With `wraps`, it is the distance without the wrap of the
    offset that the pointer was computed from. `bytes` is the size of an element.

    ```mlir
    tile.report_access %fails, %offset {access = "store", argument = 0 : i32, bytes = 4 : i32}
    ```
  }];
  let arguments = (ins I1:$fails, I64:$offset, ConfinedAttr<I32Attr, [IntNonNegative]>:$argument,
    ConfinedAttr<I32Attr, [IntPositive]>:$bytes,
    StrAttr:$access, UnitAttr:$wraps);
  let assemblyFormat = "$fails `,` $offset attr-dict";
}

#endif // TESSERA_DIALECT_TILE_TILECHECKOPS_TD
