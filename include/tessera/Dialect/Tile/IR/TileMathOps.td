// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise maths that arith and math lack, or leave undefined somewhere.

#ifndef TESSERA_DIALECT_TILE_TILEMATHOPS_TD
#define TESSERA_DIALECT_TILE_TILEMATHOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

class Tile_IntBinaryOp<string mnemonic, list<Trait> traits = []>
    : Tile_ElementwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let results = (outs Tile_IntLike:$result);
}

def Tile_DivIntOp : Tile_IntBinaryOp<"div_int", [Tile_CostOpInterface]> {
  let summary = "Integer division towards zero, defined for every input";
  let description = [{
    `x / 0` is all ones; the smallest signed integer divided by -1 is itself.
    Nothing traps, in masked-off lanes neither.

    ```mlir
    %q = tile.div_int signed %a, %b : tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_Signedness:$signedness, Tile_IntLike:$lhs, Tile_IntLike:$rhs);
  let assemblyFormat = "$signedness $lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_RemIntOp : Tile_IntBinaryOp<"rem_int", [Tile_CostOpInterface]> {
  let summary = "Remainder of integer division towards zero, defined for every input";
  let description = [{
    The sign is the dividend's. `x % 0` is `x`; the smallest signed integer
    modulo -1 is 0.

    ```mlir
    %r = tile.rem_int signed %a, %b : tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_Signedness:$signedness, Tile_IntLike:$lhs, Tile_IntLike:$rhs);
  let assemblyFormat = "$signedness $lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_ShiftOp : Tile_IntBinaryOp<"shift"> {
  let summary = "A shift, defined for every amount";
  let description = [{
    The amount is read as unsigned. By the width or more: 0, or the sign bit in
    every place for an arithmetic right shift.

    ```mlir
    %s = tile.shift left %a, %n : tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_ShiftKind:$kind, Tile_IntLike:$lhs, Tile_IntLike:$rhs);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tile_MulHiOp : Tile_IntBinaryOp<"mulhi"> {
  let summary = "The upper half of a product twice as wide";
  let description = [{
    Both operands are unsigned, of 32 or 64 bits.

    Rules: (M1) the width is 32 or 64.

    ```mlir
    %h = tile.mulhi %a, %b : tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_IntLike:$lhs, Tile_IntLike:$rhs);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_FpToIntOp : Tile_ElementwiseOp<"fp_to_int"> {
  let summary = "Float to integer, towards zero, saturating";
  let description = [{
    A value outside the range of the target type gives the nearest end of the
    range; NaN gives 0.

    ```mlir
    %i = tile.fp_to_int signed %x : tensor<64xf32> -> tensor<64xi8>
    ```
  }];
  let arguments = (ins Tile_Signedness:$signedness, Tile_FloatLike:$source);
  let results = (outs Tile_IntLike:$result);
  let assemblyFormat = "$signedness $source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
}

def Tile_FpToFpOp : Tile_ElementwiseOp<"fp_to_fp", [Tile_FewRegisters]> {
  let summary = "Float to float of another width or format";
  let description = [{
    Widening is exact. Narrowing rounds to nearest even, or towards zero where
    `rounding` says so (an overflow then stays at the largest finite value). A
    format of 8 bits holds what is beyond its largest number, infinities too, at
    that number. A NaN stays a NaN.

    Rules: (F1) source and result element types differ.

    ```mlir
    %h = tile.fp_to_fp %x {rounding = 1 : i32} : tensor<64xf32> -> tensor<64xbf16>
    ```
  }];
  let arguments = (ins Tile_FloatLike:$source,
    DefaultValuedAttr<Tile_RoundingMode, "RoundingMode::NearestEven">:$rounding);
  let results = (outs Tile_FloatLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ClampOp : Tile_ElementwiseOp<"clamp", [SameOperandsAndResultType]> {
  let summary = "A float held between two bounds";
  let description = [{
    `min(max(x, low), high)`. A NaN in `x` gives NaN with `propagate_nan`, `low`
    without it.

    ```mlir
    %c = tile.clamp %x, %low, %high : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_FloatLike:$x, Tile_FloatLike:$low, Tile_FloatLike:$high,
    UnitAttr:$propagate_nan);
  let results = (outs Tile_FloatLike:$result);
  let assemblyFormat = "$x `,` $low `,` $high attr-dict `:` type($result)";
}

def Tile_PreciseSqrtOp : Tile_ElementwiseOp<"precise_sqrt", [
    Tile_CostOpInterface, SameOperandsAndResultType]> {
  let summary = "The correctly rounded square root";
  let description = [{
    ```mlir
    %r = tile.precise_sqrt %x : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_FloatLike:$x);
  let results = (outs Tile_FloatLike:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_PreciseDivOp : Tile_ElementwiseOp<"precise_div", [Tile_CostOpInterface, SameOperandsAndResultType]> {
  let summary = "The correctly rounded quotient of floats";
  let description = [{
    `arith.divf` may be off by 2 ulp on a GPU; this never is.

    ```mlir
    %q = tile.precise_div %a, %b : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_FloatLike:$lhs, Tile_FloatLike:$rhs);
  let results = (outs Tile_FloatLike:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_ExternElementwiseOp : Tile_Op<"extern_elementwise", [
    Tile_CostOpInterface, Elementwise, SameOperandsAndResultShape,
    Tile_ForeignCode,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A function of a library, element by element";
  let description = [{
    `library` is the path of a file with LLVM IR, as bitcode or text, that has the function;
    without, the function is one of libdevice. `digest` stands for what was in that file when
    the program was made: programs for two states of a file are two programs.

    Rules: (E1) at least one operand; (E2) a digest is that of a library.

    ```mlir
    %y = tile.extern_elementwise "__nv_asinf" %x {pure} : (tensor<64xf32>) -> tensor<64xf32>
    %z = tile.extern_elementwise "soften" %y {library = "/opt/kernels/soften.bc", pure}
       : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$symbol, Variadic<Tile_AnyLike>:$args, UnitAttr:$pure,
    OptionalAttr<StrAttr>:$library, OptionalAttr<StrAttr>:$digest);
  let hasVerifier = 1;
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$symbol $args attr-dict `:` functional-type($args, $result)";
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_InlineAsmOp : Tile_Op<"inline_asm", [
    Tile_ForeignCode, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Inline assembly on each group of elements";
  let description = [{
    `packed` elements are handed to one run of the text. Constraints are LLVM's.

    Rules: (I1) all tiles have one shape; (I2) `packed` divides the number of
    elements; (I3) there is at least one result.

    ```mlir
    %y = tile.inline_asm "shl.b32 $0, $0, 3;" constraints("=r,r") pure packed 1 %x
       : (tensor<64xi32>) -> tensor<64xi32>
    ```
  }];
  let arguments = (ins StrAttr:$asm_text, StrAttr:$constraints, UnitAttr:$pure,
    ConfinedAttr<I32Attr, [IntPositive]>:$packed, Variadic<Tile_AnyLike>:$args);
  let results = (outs Variadic<Tile_AnyLike>:$results);
  let assemblyFormat = [{
    $asm_text `constraints` `(` $constraints `)` (`pure` $pure^)? `packed` $packed ($args^)? attr-dict
    `:` functional-type($args, $results)
  }];
  let hasVerifier = 1;
}

def Tile_MapElementwiseOp : Tile_Op<"map_elementwise", [
    Tile_CostOpInterface,
    RecursiveMemoryEffects, SingleBlock, SameOperandsAndResultShape]> {
  let summary = "A region of scalar code run for each element";
  let description = [{
    The region takes one scalar an operand and yields one a result with
    `tile.map_return`; it may hold real control flow.

    Rules: (M1) block arguments are the element types of the operands; (M2) the
    yielded types are the element types of the results.
  }];
  let arguments = (ins Variadic<Tile_Tile>:$args);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$args attr-dict-with-keyword `:` functional-type($args, $results) $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static ElementCost getElementCost() { return ElementCost::Function; }
  }];
}

def Tile_MapReturnOp : Tile_Op<"map_return", [Pure, HasParent<"MapElementwiseOp">, ReturnLike, Terminator]> {
  let summary = "The results of map_elementwise for one element";
  let description = [{
    ```mlir
    tile.map_return %y : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Scalar>:$operands);
  let assemblyFormat = "attr-dict $operands `:` type($operands)";
}

#endif // TESSERA_DIALECT_TILE_TILEMATHOPS_TD
