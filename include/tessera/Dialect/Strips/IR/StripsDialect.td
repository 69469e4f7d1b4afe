// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The strips dialect: which operations on tiles run together in one loop nest on a
// CPU, and in which buffers tiles live between the nests.

#ifndef TESSERA_DIALECT_STRIPS_STRIPSDIALECT_TD
#define TESSERA_DIALECT_STRIPS_STRIPSDIALECT_TD

include "mlir/IR/OpBase.td"

def Strips_Dialect : Dialect {
  let name = "strips";
  let cppNamespace = "::tessera::strips";
  let summary = "Fused loop nests over tiles, on the way to a CPU";
  let description = [{
    A `strips.group` holds operations on tiles that become one loop nest, whose
    innermost loop runs over strips: vectors as wide as the machine's. Inside a
    group tiles are values; between groups they live in buffers of a scratch arena
    that belongs to one thread (`strips.scratch`), read and written by
    `strips.read` and `strips.write`. Nothing here names a machine.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::tessera::tile::TileDialect"];
}

#endif // TESSERA_DIALECT_STRIPS_STRIPSDIALECT_TD
