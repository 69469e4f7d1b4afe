// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that can stand in the compiler's IR or be asked for by name, for the
// tools. (The compiler itself registers nothing global.)

#ifndef TESSERA_INITALL_H
#define TESSERA_INITALL_H

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Conversion/TileToTileGPU/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Pipelines/Pipelines.h"

namespace tessera {

inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::index::IndexDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::NVVM::NVVMDialect, mlir::scf::SCFDialect,
                  mlir::ub::UBDialect, mlir::vector::VectorDialect, strips::StripsDialect,
                  tile::TileDialect, tilegpu::TileGPUDialect>();
  mlir::func::registerInlinerExtension(registry);
  registerLLVMConversions(registry);
  registerTileGPUScratchModels(registry);
  registerLayoutRules(registry);
}

/// Our passes, and those of MLIR that our pipelines are made of.
inline void registerAllPasses() {
  mlir::registerTransformsPasses();
  mlir::registerConvertToLLVMPass();
  mlir::registerConvertVectorToLLVMPass();
  mlir::registerReconcileUnrealizedCastsPass();
  mlir::registerSCFToControlFlowPass();
  tile::registerTilePasses();
  tilegpu::registerTileGPUPasses();
  registerTileToStripsPasses();
  registerTileToTileGPUPasses();
  registerTileGPUToLLVMPasses();
}

inline void registerAllPipelines() {
  registerTilePipeline();
  registerHostPipeline();
  registerGPUPipeline();
}

} // namespace tessera

#endif // TESSERA_INITALL_H
