// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TMA stores of results by each warpgroup separately. If dots accumulate in the registers of
// warpgroups, a group can write its rows to shared memory and issue their TMA store alone. It then
// waits for no other group:
//
//     local_store %tile, %b                   local_store %tile, %b
//     (all warps meet)                        (the warps of each group meet)
//     tma_store %b, %map[...]       becomes   tma_store %b, %map[...] {groups = [2, 1]}
//     tma_store_commit                        tma_store_commit {of_group}
//     tma_store_wait 0, read                  tma_store_wait 0, read {of_group}
//
// The pass changes all of a kernel's stores or none, since a thread counts its stores together.
// Staggering the groups, so that one multiplies while another stores, needs more slots than a ring
// has (notes/Notebook.md). It is not attempted.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSTOREBYWARPGROUPSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// The group of each box of a buffer, if each of `count` groups writes whole boxes. Empty if boxes
/// do not match groups.
static SmallVector<int32_t> findGroups(TMAStoreOp store, int32_t count) {
  auto buffer = store.getBuffer().getDefiningOp<LocalAllocOp>();
  // A map that the kernel makes is known to the first warp alone.
  if (!buffer || buffer.getSource() || store.getMap().getDefiningOp<MakeTensorMapOp>())
    return {};
  MemDescType type = buffer.getType();
  std::optional<TensorMapBox> box = matchBoxes(type, getTensorMap(store.getMap()));
  auto isWellUsed = [&](ArrayRef<int32_t> groups) {
    return llvm::all_of(buffer->getUsers(), [&](Operation *user) {
      auto write = dyn_cast<LocalStoreOp>(user);
      LayoutAttr layout = write ? getLayoutAttr(write.getValue().getType()) : LayoutAttr();
      return isa<TMAStoreOp, LocalDeallocOp>(user) || (layout && areOfGroups(layout, *box, groups));
    });
  };
  for (size_t dim = 0; dim < box->order.size(); ++dim) {
    SmallVector<int32_t> groups(box->order.size(), 1);
    groups[dim] = count;
    if (isWellUsed(groups))
      return groups;
  }
  return {};
}

static bool isOutside(Operation *op) {
  return !op->getParentOfType<WarpSpecializeOp>() || isInPartition(op);
}

namespace {

struct TileGPUStoreByWarpgroupsPass
    : tessera::tilegpu::impl::TileGPUStoreByWarpgroupsPassBase<TileGPUStoreByWarpgroupsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<unsigned> warps = requireNumWarps(module);
    if (failed(warps))
      return signalPassFailure();
    unsigned groups = *warps / kWarpsOfWarpgroup;
    if (groups < 2 || groups > ScheduleSizes::kMaxSeparateWarpgroups)
      return;
    for (auto kernel : module.getOps<tile::FuncOp>())
      divide(kernel, groups);
  }

  void divide(tile::FuncOp kernel, unsigned count) {
    SmallVector<Operation *> ops;
    SmallVector<DenseI32ArrayAttr> groups;
    Builder builder(kernel.getContext());
    WalkResult result = kernel.walk([&](Operation *op) {
      if (!isa<TMAStoreOp, TMAStoreCommitOp, TMAStoreWaitOp>(op))
        return WalkResult::advance();
      ops.push_back(op);
      if (isOutside(op))
        return WalkResult::interrupt();
      if (auto store = dyn_cast<TMAStoreOp>(op)) {
        SmallVector<int32_t> found = findGroups(store, count);
        if (found.empty())
          return WalkResult::interrupt();
        groups.push_back(builder.getDenseI32ArrayAttr(found));
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return;
    auto next = groups.begin();
    for (Operation *op : ops) {
      if (auto store = dyn_cast<TMAStoreOp>(op)) {
        store.setGroupsAttr(*next++);
      } else if (auto commit = dyn_cast<TMAStoreCommitOp>(op)) {
        commit.setOfGroup(true);
      } else {
        cast<TMAStoreWaitOp>(op).setOfGroup(true);
      }
    }
  }
};

} // namespace
