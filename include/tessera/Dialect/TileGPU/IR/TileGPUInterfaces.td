// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What allocation asks of an op.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD

include "mlir/IR/OpBase.td"

def TileGPU_ScratchOpInterface : OpInterface<"ScratchOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op whose lowering needs shared memory of its own while it runs. Where it lies
    is `tilegpu.scratch_offset` on the op, set by tilegpu-allocate-shared-memory.
    Ops of other dialects get the interface attached by whoever lowers them.
  }];
  let methods = [
    InterfaceMethod<"Bytes of shared memory needed, 0 for none.", "int64_t", "getScratchBytes">,
  ];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
