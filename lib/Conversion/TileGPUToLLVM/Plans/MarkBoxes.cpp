// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-mark-boxes: which boxes a copy by a tensor map is of (docs in Passes.td).

#include "BoxRows.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUMARKBOXES
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

struct TileGPUMarkBoxes : tessera::impl::TileGPUMarkBoxesBase<TileGPUMarkBoxes> {
  void runOnOperation() final {
    Builder builder(&getContext());
    auto mark = [&](auto op) {
      std::optional<TensorMapBox> box =
          tilegpu::matchBoxes(op.getBuffer().getType(), tilegpu::getTensorMap(op.getMap()));
      int64_t rows = 1;
      for (int64_t extent : ArrayRef(box->extents).drop_back())
        rows = std::max(rows, extent);
      op->setAttr(kBoxRowsAttr, builder.getI64IntegerAttr(rows));
    };
    getOperation().walk([&](Operation *op) {
      if (auto load = dyn_cast<tilegpu::TMALoadOp>(op))
        mark(load);
      else if (auto store = dyn_cast<tilegpu::TMAStoreOp>(op))
        mark(store);
    });
  }
};

} // namespace
