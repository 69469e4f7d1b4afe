// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "tessera/Dialect/Tile/IR/TileTypes.td"
include "tessera/Dialect/TileGPU/IR/TileGPUDialect.td"

def TileGPU_MemDescType : TypeDef<TileGPU_Dialect, "MemDesc"> {
  let mnemonic = "memdesc";
  let summary = "A tile in shared memory";
  let description = [{
    Elements lie where the layout says, counted in elements from the start of the
    buffer; repeats of an odd extent follow one another. An `i1` takes one byte, a
    pointer eight.

    Rules: (M1) the layout is one of shared memory, for tiles of this shape.

    ```mlir
    !tilegpu.memdesc<2x4xf32, #tilegpu.layout<2x4, offset = [[0, 1], [0, 2], [1, 1]]>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::tessera::tilegpu::LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of shared memory.
    int64_t getNumBytes() const;
  }];
}

def TileGPU_MemDesc : TypeConstraint<CPred<"::llvm::isa<::tessera::tilegpu::MemDescType>($_self)">,
                                     "tile in shared memory", "::tessera::tilegpu::MemDescType">;

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD
