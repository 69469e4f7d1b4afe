// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "tessera/Dialect/Tile/IR/TileTypes.td"
include "tessera/Dialect/TileGPU/IR/TileGPUDialect.td"

def TileGPU_MemDescType : TypeDef<TileGPU_Dialect, "MemDesc"> {
  let mnemonic = "memdesc";
  let summary = "A tile in shared memory, or a ring of such tiles";
  let description = [{
    Elements lie where the layout says, counted in elements from the start of the buffer; repeats of
    an odd extent follow one another. An `i1` takes one byte, a pointer eight. If the layout has
    block columns, each block of a cluster has a buffer for its part.

    With `slots` it is a ring: so many tiles, one after the other, of which
    `tilegpu.memdesc_index` names one. While one is read, others are filled. Any number
    of slots will do. A slot begins at a multiple of 128 bytes.

    Rules: (M1) the layout is one of shared memory, for tiles of this shape.

    ```mlir
    !tilegpu.memdesc<2x4xf32, #tilegpu.layout<2x4, offset = [[0, 1], [0, 2], [1, 1]]>>
    !tilegpu.memdesc<2x4xf32, #tilegpu.layout<2x4, offset = [[0, 1], [0, 2], [1, 1]]>, slots = 3>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::tessera::tilegpu::LayoutAttr":$layout,
                        "unsigned":$slots);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                     "::tessera::tilegpu::LayoutAttr":$layout), [{
      return $_get($_ctxt, shape, elementType, layout, /*slots=*/0);
    }]>,
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isRing() const { return getSlots() != 0; }
    /// True for a barrier, or a ring of barriers.
    bool isBarriers() const;
    /// A ring of `slots` such tiles.
    MemDescType getRing(unsigned slots) const;
    /// A tile of this ring.
    MemDescType getSlot() const;
    /// Bytes from one slot to the next; of one tile, where this is no ring.
    int64_t getSlotBytes() const;
    /// Bytes of shared memory.
    int64_t getNumBytes() const;
  }];
}

def TileGPU_MemDesc : Type<CPred<"::llvm::isa<::tessera::tilegpu::MemDescType>($_self)">,
                                     "tile in shared memory", "::tessera::tilegpu::MemDescType">;

/// The operand of an op on one tile.
def TileGPU_Buffer : Type<
    And<[TileGPU_MemDesc.predicate,
         CPred<"!::llvm::cast<::tessera::tilegpu::MemDescType>($_self).isRing()">]>,
    "tile in shared memory (of a ring, tilegpu.memdesc_index names one)",
    "::tessera::tilegpu::MemDescType">;
def TileGPU_Ring : Type<
    And<[TileGPU_MemDesc.predicate,
         CPred<"::llvm::cast<::tessera::tilegpu::MemDescType>($_self).isRing()">]>,
    "ring of tiles in shared memory", "::tessera::tilegpu::MemDescType">;

/// Barriers in shared memory: a word for each.
def TileGPU_MBarriers : Type<
    And<[TileGPU_MemDesc.predicate,
         CPred<"::llvm::cast<::tessera::tilegpu::MemDescType>($_self).isBarriers()">]>,
    "barriers in shared memory (tilegpu.memdesc<1xi64>)", "::tessera::tilegpu::MemDescType">;
def TileGPU_MBarrier : Type<And<[TileGPU_MBarriers.predicate, TileGPU_Buffer.predicate]>,
    "a barrier in shared memory (tilegpu.memdesc<1xi64>; of a ring, tilegpu.memdesc_index names one)",
    "::tessera::tilegpu::MemDescType">;

def TileGPU_TensorMapType : TypeDef<TileGPU_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "The description of an array for TMA: its address, extents and boxes";
  let description = [{
    Arguments of kernels have this type, behind the user's; their attribute `tilegpu.tensor_map`
    says what is in it, and the launcher makes it from that. For an array whose address it loads, a
    kernel makes the map by `tilegpu.make_tensor_map`.

    ```mlir
    !tilegpu.tensor_map
    ```
  }];
}

def TileGPU_LocalScalar : AnyTypeOf<[AnySignlessIntegerOrIndex, Tile_Ptr, TileGPU_TensorMapType],
    "a scalar that a word of shared memory can hold">;

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUTYPES_TD
