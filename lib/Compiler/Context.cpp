// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context that modules live in. Only what the pipelines need is registered, and dialects are
// loaded when their first operation is made: a context costs about as much as compiling a small
// kernel otherwise.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMIRToLLVMTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/LLVMIRToNVVMTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Pipelines/Pipelines.h"

using namespace mlir;
using namespace tessera;

std::unique_ptr<MLIRContext> tessera::createContext() {
  DialectRegistry registry;
  registry.insert<tile::TileDialect, strips::StripsDialect, tilegpu::TileGPUDialect,
                  NVVM::NVVMDialect, arith::ArithDialect, cf::ControlFlowDialect, DLTIDialect,
                  func::FuncDialect, index::IndexDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  func::registerInlinerExtension(registry);
  registerLLVMConversions(registry);
  registerTileGPUScratchModels(registry);
  registerLayoutRules(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registerLLVMDialectImport(registry);
  registerNVVMDialectImport(registry);
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

ThreadCache<MLIRContext>::Owner tessera::takeContext() {
  return ThreadCache<MLIRContext>::take("", createContext);
}
