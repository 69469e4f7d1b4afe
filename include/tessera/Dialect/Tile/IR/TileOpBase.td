// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Base definitions that every op family of the dialect includes.

#ifndef TESSERA_DIALECT_TILE_TILEOPBASE_TD
#define TESSERA_DIALECT_TILE_TILEOPBASE_TD

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "tessera/Dialect/Tile/IR/TileDialect.td"
include "tessera/Dialect/Tile/IR/TileOpInterfaces.td"
include "tessera/Dialect/Tile/IR/TileTypes.td"
include "tessera/Dialect/Tile/IR/TileAttributes.td"

// Every tile among the operands and results has legal extents and at most 2^20
// elements (see isLegalExtent in Tile.h).
def Tile_LegalTiles : NativeOpTrait<"LegalTiles"> {
  let cppNamespace = "::tessera::tile";
}

// The threads of a program may synchronise in this op, each with a part of its tiles.
def Tile_Collective : NativeOpTrait<"Collective"> {
  let cppNamespace = "::tessera::tile";
}

// The code of this op takes few registers besides those of its tiles. So the tiles of a kernel of
// such ops determine its registers.
def Tile_FewRegisters : NativeOpTrait<"FewRegisters"> {
  let cppNamespace = "::tessera::tile";
}

// The op's message to the user names the program's ids.
def Tile_NamesProgram : NativeOpTrait<"NamesProgram"> {
  let cppNamespace = "::tessera::tile";
}

// The resource that prints, assertions and promises write to, instead of memory.
def Tile_Events : Resource<"::tessera::tile::Events">;

// The op runs code that the compiler does not see.
def Tile_ForeignCode : NativeOpTrait<"ForeignCode"> {
  let cppNamespace = "::tessera::tile";
}

// The elements of the result depend on the elements of the operands at the same
// index alone. Scalars and tiles of one shape.
def Tile_ElementwiseTraits : TraitList<[Elementwise, Scalarizable, Vectorizable, Tensorizable]>;

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, !listconcat([Tile_LegalTiles], traits)>;

class Tile_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([Pure, Elementwise, SameOperandsAndResultShape], traits)>;

// One result, whose type is that of operand `operand`.
class Tile_SameTypeAs<string operand> : AllTypesMatch<[operand, "result"]>;

#endif // TESSERA_DIALECT_TILE_TILEOPBASE_TD
