// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a program fills an SM, programs run there one after the other. Each loads its own row, and
// weights that all of them share. An SM's L1 cache has room for the weights of long rows, but not
// for the rows, too. Rows and stored elements are not loaded again.
//
//     load row(pid)          evict_first
//     load weights           stay for the next program
//     store row(pid)         evict_first

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Programs/PersistentKernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSTREAMROWSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// True if an access has no cache hint.
template <typename Access> static bool hasNoHint(Access access) {
  return access.getCache() == tile::CacheModifier::None &&
         access.getEvict() == tile::EvictionPolicy::Normal;
}

/// True if a tile is loaded again from there (tilegpu-reorder-instructions).
static bool isLoadedAgain(tile::LoadOp load) {
  return llvm::count_if(load.getPtr().getUsers(), llvm::IsaPred<tile::LoadOp>) > 1;
}

static void streamRows(tile::FuncOp kernel) {
  SmallVector<tile::LoadOp> rows;
  bool hasWeights = false;
  Block &block = kernel.getBody().front();
  for (auto load : block.getOps<tile::LoadOp>()) {
    if (!isa<RankedTensorType>(load.getType()) || load.getIsVolatile() || !hasNoHint(load))
      continue;
    if (!dependsOnProgram(load.getPtr()))
      hasWeights = true;
    else if (!isLoadedAgain(load))
      rows.push_back(load);
  }
  if (!hasWeights || rows.empty())
    return;
  for (tile::LoadOp load : rows)
    load.setEvict(tile::EvictionPolicy::First);
  for (auto store : block.getOps<tile::StoreOp>())
    if (isa<RankedTensorType>(store.getValue().getType()) && hasNoHint(store))
      store.setEvict(tile::EvictionPolicy::First);
}

namespace {

struct TileGPUStreamRowsPass
    : tessera::tilegpu::impl::TileGPUStreamRowsPassBase<TileGPUStreamRowsPass> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<tile::FuncOp>())
      if (auto occupancy = kernel->getAttrOfType<IntegerAttr>(kOccupancyAttr);
          kernel.isKernel() && occupancy && occupancy.getInt() == 1)
        streamRows(kernel);
  }
};

} // namespace
