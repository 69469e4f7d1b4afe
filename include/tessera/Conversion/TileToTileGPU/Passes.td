// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_CONVERSION_TILETOTILEGPU_PASSES_TD
#define TESSERA_CONVERSION_TILETOTILEGPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTileToTileGPU : Pass<"convert-tile-to-tilegpu", "::mlir::ModuleOp"> {
  let summary = "Mark tiles as without a layout, and set the target GPU";
  let description = [{
    Every tile type gets the encoding `#tilegpu.unassigned`: the types of values, of constants, and
    of functions on tiles. The module gets the number of warps and the target. Block pointers and
    descriptors must be lowered before (tile-lower-descriptors).

    ```mlir
    module {
      tile.func private @k() -> tensor<64xi32> {
        %i = tile.range 0 to 64 : tensor<64xi32>
        tile.return %i : tensor<64xi32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
      tile.func private @k() -> tensor<64xi32, #tilegpu.unassigned> {
        %i = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
        tile.return %i : tensor<64xi32, #tilegpu.unassigned>
      }
    }
    ```
  }];
  let options = [
    Option<"numWarps", "num-warps", "unsigned", "4", "Warps of a program: a power of two up to 32">,
    Option<"numCTAs", "num-ctas", "unsigned", "1",
           "Blocks of a cluster that run a program together: a power of two up to 8">,
    Option<"target", "target", "std::string", "\"sm_90a\"", "The GPU, such as sm_80 or sm_90a">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Compute sums in the interpreter's order">,
    Option<"flushResults", "flush-results", "bool", "false",
           "Allow zero for exponentials of f32 below 2^-126">,
  ];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

#endif // TESSERA_CONVERSION_TILETOTILEGPU_PASSES_TD
