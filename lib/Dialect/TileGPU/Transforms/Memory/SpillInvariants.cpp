// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over rows, as in the backward pass of a norm, holds the weights of a whole row and sums of
// as many elements, beside the row itself. If registers do not suffice for all of that, ptxas
// chooses the spills, mostly values of the iteration, and writes and reads them each time. Loop
// invariants need no further writes. They are spilled to shared memory before the loop, as narrow
// as they were loaded, and each user reads them from there:
//
//     %w = fp_to_fp %loaded                         %b = local_alloc %loaded
//     for ... {                                     for ... {
//       ... %w ...                                    %l = local_load %b
//                                                     %w = fp_to_fp %l
//                                                     ... %w ...
//
// Each thread reads only what it has written, 16 bytes beside those of its neighbours. Each
// block of a cluster keeps its own part. Values are not reloaded from global memory, since a store
// of the loop may overwrite them.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "OwnBuffer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSPILLINVARIANTSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

static int64_t getBytes(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getNumElements() * getElementBytes(type.getElementType());
}

namespace {

class LoopSpiller {
public:
  LoopSpiller(scf::ForOp loop, int64_t bytesOfThread, int64_t &sharedBytes)
      : loop(loop), bytesOfThread(bytesOfThread), sharedBytes(sharedBytes) {}

  void run();

private:
  int64_t countLeast();
  SmallVector<Value> findInvariants();
  void spill(Value tile, MemDescType buffer);

  scf::ForOp loop;
  int64_t bytesOfThread;
  int64_t &sharedBytes; ///< that are left
  llvm::DenseMap<Value, Value> buffers;
};

} // namespace

/// The values that the loop carries, and those that an iteration loads.
int64_t LoopSpiller::countLeast() {
  int64_t bytes = kTemporaryBytes;
  for (Value carried : loop.getRegionIterArgs())
    bytes += getBytesOfThread(carried.getType());
  loop.walk([&](tile::LoadOp load) { bytes += getBytesOfThread(load.getType()); });
  return bytes;
}

/// Tiles from before the loop that iterations use, those that take most registers first.
SmallVector<Value> LoopSpiller::findInvariants() {
  llvm::SetVector<Value> found;
  loop.getBody()->walk([&](Operation *op) {
    for (Value value : op->getOperands())
      if (isKept(value) && !loop->isAncestor(value.getParentBlock()->getParentOp()))
        found.insert(value);
  });
  SmallVector<std::pair<int64_t, unsigned>> order; // less bytes and place, the least first
  for (auto [i, tile] : llvm::enumerate(found))
    order.push_back({-getBytesOfThread(tile.getType()), i});
  llvm::sort(order);
  return llvm::map_to_vector(order, [&](auto entry) { return found[entry.second]; });
}

void LoopSpiller::spill(Value tile, MemDescType buffer) {
  Value narrowest = getNarrowest(tile);
  Value &memory = buffers[narrowest];
  OpBuilder builder(loop);
  if (!memory)
    memory = LocalAllocOp::create(builder, loop.getLoc(), buffer, narrowest);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : tile.getUses())
    if (loop->isProperAncestor(use.getOwner()))
      uses.push_back(&use);
  for (OpOperand *use : uses) {
    builder.setInsertionPoint(use->getOwner());
    Location loc = use->getOwner()->getLoc();
    Value read = LocalLoadOp::create(builder, loc, narrowest.getType(), memory);
    if (narrowest != tile) {
      Operation *conversion = builder.clone(*tile.getDefiningOp());
      conversion->setOperand(0, read);
      read = conversion->getResult(0);
    }
    use->set(read);
  }
  if (narrowest != tile && tile.use_empty())
    tile.getDefiningOp()->erase();
}

void LoopSpiller::run() {
  if (countLeast() > bytesOfThread)
    return;
  for (Value tile : findInvariants()) {
    if (countMostHeldBytes(loop) + kTemporaryBytes <= bytesOfThread)
      return;
    MemDescType buffer = getOwnBuffer(getNarrowest(tile).getType());
    if (!buffer || buffer.getNumBytes() > sharedBytes)
      continue;
    sharedBytes -= buffer.getNumBytes();
    spill(tile, buffer);
  }
}

namespace {

struct TileGPUSpillInvariantsPass
    : tessera::tilegpu::impl::TileGPUSpillInvariantsPassBase<TileGPUSpillInvariantsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!warps)
      return;
    for (auto function : module.getOps<tile::FuncOp>()) {
      if (!function.isKernel() || !isPlain(function))
        continue;
      int64_t left = getMachine(function).sharedBytes - SharedMemoryBudget::kExchangesOfSpills;
      function.walk([&](ConvertLayoutOp convert) {
        left = std::min(left, getMachine(function).sharedBytes - getBytes(convert.getResult()));
      });
      function.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
        // Without barriers in the loop, code generation might hoist the reads out of it again.
        bool hasReduction = false;
        loop.walk([&](tile::ReduceOp) { hasReduction = true; });
        if (hasReduction)
          LoopSpiller(loop, getMostBytesOfThread(*warps), left).run();
      });
    }
  }
};

} // namespace
