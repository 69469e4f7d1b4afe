// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements without computing on them. None of them ever reorders:
// reshape keeps row-major order, cat puts the second operand after the first.

#ifndef TESSERA_DIALECT_TILE_TILESHAPEOPS_TD
#define TESSERA_DIALECT_TILE_TILESHAPEOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_BroadcastOp : Tile_Op<"broadcast", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Tile_FewRegisters, Pure, SameOperandsAndResultElementType]> {
  let summary = "A tile repeated along its dimensions of extent 1";
  let description = [{
    Rules: (B1) ranks are equal; (B2) each extent of the operand is 1 or that of
    the result; (B3) an encoding of the operand is what that of the result leaves
    where the repeated dimensions are dropped.

    ```mlir
    %b = tile.broadcast %a : tensor<64x1xf32> -> tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Dimensions; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_ExpandDimsOp : Tile_Op<"expand_dims", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Tile_FewRegisters, Pure, SameOperandsAndResultElementType,
    InferTypeOpAdaptor]> {
  let summary = "A tile with a dimension of extent 1 put in at an axis";
  let description = [{
    Rules: (E1) the axis is in [0, rank].

    ```mlir
    %c = tile.expand_dims %r {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, I32Attr:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Dimensions; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_ReshapeOp : Tile_Op<"reshape", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Pure, SameOperandsAndResultElementType]> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{
    Rules: (S1) operand and result have the same number of elements; (S2) an
    encoding of the result is the operand's under the new shape.

    ```mlir
    %m = tile.reshape %v : tensor<64xf32> -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Renumbers; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_TransOp : Tile_Op<"trans", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Pure, SameOperandsAndResultElementType, InferTypeOpAdaptor]> {
  let summary = "The dimensions in another order";
  let description = [{
    Dimension d of the result is dimension `order[d]` of the operand.

    Rules: (T1) `order` is a permutation of the operand's dimensions.

    ```mlir
    %t = tile.trans %m {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, DenseI32ArrayAttr:$order);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Dimensions; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_JoinOp : Tile_Op<"join", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Pure, AllTypesMatch<["lhs", "rhs"]>, InferTypeOpAdaptor]> {
  let summary = "Two tiles side by side along a new last dimension of extent 2";
  let description = [{
    ```mlir
    %j = tile.join %a, %b : tensor<64xf32> -> tensor<64x2xf32>
    ```
  }];
  let arguments = (ins Tile_AnyLike:$lhs, Tile_AnyLike:$rhs);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    ::mlir::AffineExpr getSourceOperand();
    static Motion getMotion() { return Motion::Renumbers; }
    static ElementCost getElementCost() { return ElementCost::None; }
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual);
  }];
}

def Tile_SplitOp : Tile_Op<"split", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Pure, InferTypeOpAdaptor, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "The two halves of a last dimension of extent 2";
  let description = [{
    Rules: (S1) the last extent of the operand is 2.

    ```mlir
    %a, %b = tile.split %j : tensor<64x2xf32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_AnyLike:$lhs, Tile_AnyLike:$rhs);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($lhs)";
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    static Motion getMotion() { return Motion::Renumbers; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_CatOp : Tile_Op<"cat", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Pure, SameTypeOperands, InferTypeOpAdaptor]> {
  let summary = "The second tile after the first along an axis";
  let description = [{
    Rules: (C1) the axis is a dimension of the operands; (C2) both operands have
    the same type.

    ```mlir
    %c = tile.cat %a, %b {axis = 0 : i32} : tensor<64xf32> -> tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs, I32Attr:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let extraClassDeclaration = [{
    ::mlir::AffineMap getSourceMap(unsigned operand, unsigned result);
    ::mlir::AffineExpr getSourceOperand();
    static Motion getMotion() { return Motion::Renumbers; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

#endif // TESSERA_DIALECT_TILE_TILESHAPEOPS_TD
