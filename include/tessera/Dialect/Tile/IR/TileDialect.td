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
  let summary = "The computation of a program on tiles of values";
  let description = [{
    A kernel is a `tile.func` that says what one *program* of a grid does. Its
    values are scalars, pointers, and *tiles*: ranked tensors of static shape
    (`tensor<64x128xf32>`, `tensor<128x!tile.ptr<f16>>`).

    Elementwise arithmetic is upstream `arith` and `math` on tiles. This dialect has the ops that
    those dialects lack or leave undefined. An op of it has one meaning on every target, also for
    integer division by zero, shifts past the width, float to integer out of range, and lanes masked
    off.

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
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  // Attributes by which passes pass facts on, on ops of any dialect. No other attribute has the
  // dialect's prefix (DeclaredAttrs.h).
  let discardableAttrs = (ins
    // On an argument: the number, or the address in bytes, is a multiple of it (i64).
    "::mlir::IntegerAttr":$divisibility,
    // Hints on an `scf.for`, from the kernel's author: the factor of unrolling (i32;
    // tile-unroll-loops), the stages of pipelined loads (i32), a mark against hoisting. Others are
    // Triton's, and no pass reads them.
    "::mlir::IntegerAttr":$loop_unroll_factor,
    "::mlir::IntegerAttr":$num_stages,
    "::mlir::UnitAttr":$disable_licm,
    "::mlir::UnitAttr":$flatten,
    "::mlir::UnitAttr":$warp_specialize,
    "::mlir::UnitAttr":$disallow_acc_multi_buffer,
    // LaunchLimits.h: what a kernel takes for granted of each launch.
    "::mlir::IntegerAttr":$limited_programs,
    "::mlir::DenseI64ArrayAttr":$limited,
    "::mlir::ArrayAttr":$program_bounds,
    "::mlir::UnitAttr":$grid_extent,
    "::mlir::ArrayAttr":$launch_limits,
    "::mlir::UnitAttr":$lower_bound,
    // On a module: properties of each argument for the launcher, and a mark that programs may wait
    // for each other (KernelAttributes.h).
    "::mlir::ArrayAttr":$arguments,
    "::mlir::UnitAttr":$waits_for_programs
  );
  let extraClassDeclaration = [{
    void registerTypes();
    void registerOps();
  }];
}

#endif // TESSERA_DIALECT_TILE_TILEDIALECT_TD
