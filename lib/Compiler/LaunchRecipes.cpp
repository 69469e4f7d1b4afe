// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the launch's tensor maps and conditions from a lowered module, for the simulator, which
// launches without compiling.

#include "KernelAttributes.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace tessera;

LaunchRecipes tessera::readLaunchRecipes(mlir::ModuleOp module) {
  if (!module->hasAttr(tilegpu::kLaunchAttr))
    return {};
  KernelMetadata metadata;
  readKernelAttributes(module, metadata);
  return {std::move(metadata.tensorMaps),    std::move(metadata.launchConditions),
          std::move(metadata.arraysApart),   metadata.mostPrograms,
          std::move(metadata.programBounds), metadata.persistentPrograms,
          std::move(metadata.divisibleSum),  std::move(metadata.argumentTables),
          std::move(metadata.shortLoops)};
}
