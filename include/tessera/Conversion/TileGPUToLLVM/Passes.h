// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tiles with layouts to the code of a thread (docs in Passes.td).

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_H
#define TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

#define GEN_PASS_DECL
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"

/// On a kernel whose programs wait for earlier work of the stream.
inline constexpr llvm::StringLiteral kWaitsForStreamAttr =
    tilegpu::TileGPUDialect::WaitsForStreamAttrHelper::getNameStr();

/// On the declaration of a function: the file with LLVM IR that it is linked from.
inline constexpr llvm::StringLiteral kLibraryAttr =
    tilegpu::TileGPUDialect::LibraryAttrHelper::getNameStr();

/// Registers the models by which ops of the tile dialect declare the scratch memory of their
/// lowering here (ScratchOpInterface).
void registerTileGPUScratchModels(mlir::DialectRegistry &registry);

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_PASSES_H
