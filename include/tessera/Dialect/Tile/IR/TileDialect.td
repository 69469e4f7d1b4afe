// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile dialect: what a program computes on tiles, with no threads, no
// layouts and no target. The rationale is docs/Dialects/RationaleTile.md.

#ifndef TESSERA_DIALECT_TILE_TILEDIALECT_TD
#define TESSERA_DIALECT_TILE_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tessera::tile";
  let hasCanonicalizer = 1;
  let summary = "What a program computes on tiles of values";
  let description = [{
    A kernel is a `tile.func` that says what one *program* of a grid does. Its
    values are scalars, pointers, and *tiles*: ranked tensors of static shape
    (`tensor<64x128xf32>`, `tensor<128x!tile.ptr<f16>>`).

    Elementwise arithmetic is upstream `arith` and `math` on tiles. The ops here
    are what those dialects lack, or leave undefined: an op of this dialect has
    one meaning on every target (integer division by zero, shifts past the
    width, float to integer out of range, lanes masked off).

    Control flow is `scf` only. A tile extent is a power of two, or `odd * 2^k`
    with `odd <= 31` and `2^k >= 8`; a tile has at most 2^20 elements.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect",
  ];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerOps();
  }];
}

#endif // TESSERA_DIALECT_TILE_TILEDIALECT_TD
