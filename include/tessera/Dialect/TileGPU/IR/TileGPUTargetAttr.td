// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which GPU a module is for.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUTARGETATTR_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUTARGETATTR_TD

include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"

def TileGPU_TargetAttr : TileGPU_Attr<"Target", "target", []> {
  let summary = "The GPU that a module is for";
  let description = [{
    On a module, as `tilegpu.target`: a row of the table of GPUs (Machine/GPUMachine.h), by its
    name. The name is looked up when the attribute is made; passes ask the row
    (`tilegpu::getMachine`) what the GPU has.

    ```mlir
    #tilegpu.target<"sm_90a">
    ```
  }];
  let parameters = (ins AttrParameter<"const ::tessera::GPUMachine *", "the row">:$machine);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getArch() const { return getMachine()->name; }
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUTARGETATTR_TD
