// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface that the tile dialect needs of a tensor's encoding. The dialect itself has no
// encoding. A target that places the elements of a tile (tilegpu) adds one to the tensor type, and
// the shape ops derive that of their result.

#ifndef TESSERA_DIALECT_TILE_TILEINTERFACES_TD
#define TESSERA_DIALECT_TILE_TILEINTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_EncodingInterface : AttrInterface<"TileEncodingInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    An encoding of tiles that the ops of the tile dialect can carry through. Each method derives the
    encoding of an op's result from that of its operand, such that no element moves. For broadcast,
    it derives the operand's from the result's. A method fails where there is no such encoding. An
    encoding knows the shape of the tiles that it is for.
  }];
  let methods = [
    InterfaceMethod<"The result of a reduction along an axis.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferReduce", (ins "unsigned":$axis)>,
    InterfaceMethod<"The tile with a dimension of extent 1 put in at an axis.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferExpandDims", (ins "unsigned":$axis)>,
    InterfaceMethod<"The tile with its dimensions in another order.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferTrans",
      (ins "::llvm::ArrayRef<int32_t>":$order)>,
    InterfaceMethod<"The same elements in row-major order under another shape.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferReshape",
      (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"The operand, of this shape, of a broadcast to this encoding.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferBroadcastSource",
      (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"Two tiles side by side along a new last dimension.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferJoin", (ins)>,
    InterfaceMethod<"Each half of the last dimension.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferSplit", (ins)>,
    InterfaceMethod<"Two tiles one after the other along an axis.",
      "::mlir::FailureOr<::mlir::Attribute>", "inferCat", (ins "unsigned":$axis)>,
  ];
}

#endif // TESSERA_DIALECT_TILE_TILEINTERFACES_TD
