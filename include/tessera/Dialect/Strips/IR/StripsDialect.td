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
  let summary = "Fused loop nests over tiles for CPUs";
  let description = [{
    A `strips.group` holds operations on tiles that become one loop nest, whose innermost loop runs
    over strips: vectors as wide as the machine's. Inside a group, tiles are values. Between groups,
    they live in buffers of a thread's scratch arena (`strips.scratch`), accessed by `strips.read`
    and `strips.write`. Nothing here names a machine.
  }];
  let hasOperationAttrVerify = 1;
  // Attributes by which passes pass facts on, on ops of any dialect. No other attribute has the
  // dialect's prefix (DeclaredAttrs.h).
  let discardableAttrs = (ins
    // On a function: the scratch memory that it takes of a thread (i64).
    "::mlir::IntegerAttr":$scratch_bytes,
    // On a function: its dots are in AMX's tile registers, which its kernels have to configure.
    "::mlir::UnitAttr":$tile_registers,
    // On a kernel: words of its scratch memory that are zeroed before the first program of a call,
    // apart from the first, which is the number of its programs. Pairs: the offset in bytes, and
    // the number of words of 64 bits. Programs leave them for the next ones.
    "::mlir::DenseI64ArrayAttr":$call_state,
    // On a kernel: the places where a launch may fail, by number (a dictionary each).
    "::mlir::ArrayAttr":$sites,
    // On a group: the most strips of an iteration of its loop (i64).
    "::mlir::IntegerAttr":$unroll,
    // On a `tile.hint`: it is known to hold where its result is used.
    "::mlir::UnitAttr":$checked,
    // On an atomic: among how many elements it adds, if these are to have private copies (i64;
    // AtomicPrivatisation.h); or why they are not to.
    "::mlir::IntegerAttr":$privatisation,
    "::mlir::StringAttr":$no_privatisation
  );
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::tessera::tile::TileDialect"];
}

#endif // TESSERA_DIALECT_STRIPS_STRIPSDIALECT_TD
