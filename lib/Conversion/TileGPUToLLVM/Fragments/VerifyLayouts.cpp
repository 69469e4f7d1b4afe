// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifyLayouts.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;

LogicalResult tessera::verifyLayouts(ModuleOp module) {
  std::optional<unsigned> warps = tilegpu::getNumWarps(module);
  if (!warps)
    return module.emitError("the module has no number of warps of a program (")
           << tilegpu::kNumWarpsAttr << ')';
  unsigned numWarps = *warps;
  unsigned numBlocks = tilegpu::getNumBlocks(module);
  auto checkType = [&](Operation *op, Type type) -> LogicalResult {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      return success();
    tilegpu::LayoutAttr layout = tilegpu::getLayoutAttr(tile);
    if (!layout)
      return op->emitOpError("has the tile ") << tile << ", which has no layout";
    if (layout.getNumWarps() != numWarps)
      return op->emitOpError("has a tile over ")
             << layout.getNumWarps() << " warps in a program of " << numWarps;
    if (layout.getNumBlocks() != numBlocks)
      return op->emitOpError("has a tile over ")
             << layout.getNumBlocks() << " blocks in a cluster of " << numBlocks;
    return success();
  };
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getOperandTypes())
      if (failed(checkType(op, type)))
        return WalkResult::interrupt();
    for (Type type : op->getResultTypes())
      if (failed(checkType(op, type)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
