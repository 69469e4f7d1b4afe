// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Base definitions that every op family of the dialect includes.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUOPBASE_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUOPBASE_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "tessera/Dialect/Tile/IR/TileOpBase.td"
include "tessera/Dialect/TileGPU/IR/TileGPUDialect.td"
include "tessera/Dialect/TileGPU/IR/TileGPUInterfaces.td"
include "tessera/Dialect/TileGPU/IR/TileGPUDivisibleSumAttr.td"
include "tessera/Dialect/TileGPU/IR/TileGPULaunchAttr.td"
include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"
include "tessera/Dialect/TileGPU/IR/TileGPUTargetAttr.td"
include "tessera/Dialect/TileGPU/IR/TileGPUTensorMapAttr.td"
include "tessera/Dialect/TileGPU/IR/TileGPUTypes.td"

def TileGPU_SharedMemory : Resource<"::tessera::tilegpu::SharedMemory">;

// One thread may do the op, without the others of its program.
def TileGPU_ForOneThread : NativeOpTrait<"ForOneThread"> {
  let cppNamespace = "::tessera::tilegpu";
}

class TileGPU_Op<string mnemonic, list<Trait> traits = []> : Op<TileGPU_Dialect, mnemonic, traits>;

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUOPBASE_TD
