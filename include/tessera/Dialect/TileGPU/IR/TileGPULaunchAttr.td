// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of a kernel with its launcher, as an attribute of the module.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPULAUNCHATTR_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPULAUNCHATTR_TD

include "tessera/Dialect/TileGPU/IR/TileGPUDivisibleSumAttr.td"

def TileGPU_LaunchAttr : TileGPU_Attr<"Launch", "launch", []> {
  let summary = "The parameters that a launch adds to the arguments, and its conditions";
  let description = [{
    On a module, as `tilegpu.launch`, from the stage "tilegpu" on. The compiler collects it from the
    kernel's attributes, and writes the launch record from it. A launch of a module without it passes
    the arguments alone, and has no conditions.

    Behind the arguments, a launch passes the grid's extents if `persistent_programs` is not 0, then
    the `maps`, then the `tables`. A table (first, count) holds the slots of so many arguments, 8
    bytes each. An SM runs `persistent_programs` blocks of a persistent kernel at once.

    All else are conditions; if one does not hold, another variant of the kernel must run. No result
    of `conditions` is negative, whose symbol `s<n>` is argument number n. No program bound of
    `bounds` (tessera/Runtime/CUDA/ProgramBound.h) is negative in any program. The ranges of each
    pair of `apart` do not overlap (tessera/Analysis/Order/MemoryOrder.h). No axis of the grid has
    more than `most_programs` programs; 0 is no limit.

    `sum` is a sum of dots that a variant with clusters would divide. `pair_cycles` are an SM's
    cycles per iteration if two blocks divide the program; 0 if they cannot.

    Rules: (L1) `maps` are `#tilegpu.tensor_map`s; (L2) `conditions` have no dimensions (`d0`), and
    are sums of products of symbols and constants; (L3) `bounds` are strings, and `apart` has pairs;
    (L4) numbers are not negative; (L5) `tables` has pairs of numbers, and a table is not empty.

    ```mlir
    #tilegpu.launch<conditions = affine_map<()[s0, s1] -> (s1 - 1)>, most_programs = 64,
        tables = [0, 300]>
    ```
  }];
  let parameters = (ins OptionalParameter<"::mlir::ArrayAttr">:$maps,
                        OptionalParameter<"::mlir::AffineMapAttr">:$conditions,
                        OptionalParameter<"::mlir::ArrayAttr">:$bounds,
                        OptionalParameter<"::mlir::ArrayAttr">:$apart,
                        DefaultValuedParameter<"int64_t", "0">:$most_programs,
                        DefaultValuedParameter<"int64_t", "0">:$persistent_programs,
                        OptionalParameter<"::tessera::tilegpu::DivisibleSumAttr">:$sum,
                        DefaultValuedParameter<"int64_t", "0">:$pair_cycles,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$tables);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same with other tables.
    LaunchAttr withTables(::llvm::ArrayRef<int64_t> tables) const;
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPULAUNCHATTR_TD
