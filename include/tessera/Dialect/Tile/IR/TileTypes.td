// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_TILETYPES_TD
#define TESSERA_DIALECT_TILE_TILETYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "tessera/Dialect/Tile/IR/TileDialect.td"

class Tile_Type<string name, string typeMnemonic> : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_PointerType : Tile_Type<"Pointer", "ptr"> {
  let summary = "A pointer to a scalar in memory";
  let description = [{
    `!tile.ptr<f32>` points to an `f32` in global memory. Pointers move in units
    of the pointee: `tile.addptr %p, %n` is `p + n * sizeof(pointee)` bytes. An
    `i1` is kept in memory as one byte, 0 or 1.
  }];
  let parameters = (ins "::mlir::Type":$pointee);
  let assemblyFormat = "`<` $pointee `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes between neighbouring elements in memory.
    int64_t getPointeeBytes() const;
  }];
}

def Tile_BlockPointerType : Tile_Type<"BlockPointer", "block_ptr"> {
  let summary = "A base, shape, strides and offsets: where in an array a block lies";
  let description = [{
    `!tile.block_ptr<tensor<64x32xf32>>` is a position in an array of rank 2 from
    which blocks of 64x32 elements are loaded and stored. Made by
    `tile.make_block_ptr`, moved by `tile.advance`.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$blockType);
  let assemblyFormat = "`<` $blockType `>`";
}

def Tile_DescriptorType : Tile_Type<"Descriptor", "descriptor"> {
  let summary = "A tensor descriptor: an array from which blocks are loaded by coordinates";
  let description = [{
    `!tile.descriptor<tensor<64x32xf32>>` describes an array of rank 2 (base,
    shape, strides) and the block that one load or store moves.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$blockType);
  let assemblyFormat = "`<` $blockType `>`";
}

// Constraints on operands. "XLike" is an X or a tile of X.

def Tile_Int : AnyTypeOf<[I1, I8, I16, I32, I64], "integer">;
def Tile_Float8 : AnyTypeOf<[F8E5M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2FNUZ, F8E4M3B11FNUZ], "8-bit float">;
def Tile_Float : AnyTypeOf<[Tile_Float8, F16, BF16, F32, F64], "float">;
def Tile_Number : AnyTypeOf<[Tile_Int, Tile_Float], "integer or float">;
def Tile_Ptr : AnyTypeOf<[Tile_PointerType], "pointer">;
def Tile_Scalar : AnyTypeOf<[Tile_Number, Tile_Ptr], "scalar">;

class Tile_TileOf<list<Type> types> : RankedTensorOf<types>;
class Tile_Like<Type type> : AnyTypeOf<[type, RankedTensorOf<[type]>]>;

def Tile_Tile : RankedTensorOf<[Tile_Scalar]>;
def Tile_IntLike : Tile_Like<Tile_Int>;
def Tile_FloatLike : Tile_Like<Tile_Float>;
def Tile_NumberLike : Tile_Like<Tile_Number>;
def Tile_PtrLike : Tile_Like<Tile_Ptr>;
def Tile_BoolLike : Tile_Like<I1>;
def Tile_I64Like : Tile_Like<I64>;
def Tile_AnyLike : Tile_Like<Tile_Scalar>;
def Tile_Any : AnyTypeOf<[Tile_Scalar, Tile_Tile, Tile_BlockPointerType, Tile_DescriptorType]>;

#endif // TESSERA_DIALECT_TILE_TILETYPES_TD
