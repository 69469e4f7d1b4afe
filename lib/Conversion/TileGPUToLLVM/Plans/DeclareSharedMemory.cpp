// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-declare-shared-memory: the array that all shared memory of a kernel lies in (docs in
// Passes.td).

#include "Fragments/Fragment.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUDECLARESHAREDMEMORY
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

struct TileGPUDeclareSharedMemory
    : tessera::impl::TileGPUDeclareSharedMemoryBase<TileGPUDeclareSharedMemory> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (module.lookupSymbol(kSharedMemorySymbol))
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    auto global = LLVM::GlobalOp::create(
        builder, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External,
        kSharedMemorySymbol, /*value=*/Attribute(), GPUMachine::kSwizzleAlignment, kSharedMemory);
    global->setAttr("dso_local", builder.getUnitAttr());
  }
};

} // namespace
