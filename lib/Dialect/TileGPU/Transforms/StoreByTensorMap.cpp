// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of products on their way to global memory by the copy engine: threads put their
// part of the tile into shared memory, as the tensor map has it, and one of them tells the
// engine where it goes. Threads then neither read it again nor compute addresses and masks,
// and in a loop over tiles the copy goes on while the next tile is computed:
//
//     once                               in a loop
//     %b = local_alloc %tile             %b = local_alloc            (before the loop)
//     tma_store %b, %map[...]            tma_store_wait 0            (the one before is done)
//     tma_store_commit                   local_store %tile, %b
//     tma_store_wait 0, read             tma_store %b, %map[...]; tma_store_commit
//                                        tma_store_wait 0, read      (behind the loop)
//
// The engine's writes come in no order with those of threads. So nothing in the kernel may
// order memory, and nothing else may write to the same array; in a loop nothing reads it.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSTOREBYTENSORMAPPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Smaller tiles are stored by their threads at once.
static constexpr int64_t kLeastBytes = 4 << 10;
/// Shared memory left to other exchanges while buffers are there.
static constexpr int64_t kReserve = 4 << 10;

namespace {

/// A store that the engine can do.
struct EngineStore {
  tile::StoreOp store;
  BoxAccess box;
  MemDescType buffer;
  /// The outermost loop around it; null outside of loops.
  Operation *loop = nullptr;
};

class Rewriter {
public:
  Rewriter(tile::FuncOp kernel, int64_t limit) : kernel(kernel), limit(limit) {}

  /// The number of stores that have been rewritten. Fails, with an error, where a kernel
  /// would need more tensor maps than it can have.
  FailureOr<unsigned> run();

private:
  std::string plan(tile::StoreOp store);
  std::string whyNotAlone(tile::StoreOp store, BlockArgument base, bool isInLoop);
  void rewrite(EngineStore &planned, BlockArgument map);

  tile::FuncOp kernel;
  int64_t limit;
  AccessAnalysis analysis;
  std::vector<EngineStore> stores;
};

} // namespace

/// The kernel's pointer that an address is counted from; null if it is not so plain.
static BlockArgument findBase(Value pointer) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(pointer)) {
      Operation *owner = argument.getOwner()->getParentOp();
      auto loop = dyn_cast<scf::ForOp>(owner);
      if (!loop)
        return isa<tile::FuncOp>(owner) ? argument : BlockArgument();
      if (argument.getArgNumber() == 0)
        return {};
      pointer = loop.getInitArgs()[argument.getArgNumber() - 1];
      continue;
    }
    Operation *op = pointer.getDefiningOp();
    if (!isa<tile::AddPtrOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::HintOp,
             tile::TransOp, tile::ReshapeOp>(op))
      return {};
    pointer = op->getOperand(0);
  }
}

/// Whether an op does more to memory than to load or store tiles and scalars, or works on
/// shared memory.
static bool isBeyondAccesses(Operation *op) {
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op) ||
      isa<tile::LoadOp, tile::StoreOp, AsyncCopyOp, WarpSpecializeOp>(op))
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || isa<tile::BarrierOp>(op))
    return true;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::any_of(instances, [](auto &instance) {
    return !isa<MemoryEffects::Read>(instance.getEffect()) &&
           instance.getResource() != SharedMemory::get();
  });
}

/// Why writes to an array cannot be left to the engine; empty if they can.
std::string Rewriter::whyNotAlone(tile::StoreOp store, BlockArgument base, bool isInLoop) {
  std::string why;
  kernel.walk([&](Operation *op) {
    if (op == store || op == kernel || op->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    if (auto other = dyn_cast<tile::StoreOp>(op)) {
      BlockArgument itsBase = findBase(other.getPtr());
      if (!itsBase || itsBase == base)
        why = "another store may write there";
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      BlockArgument itsBase = findBase(load.getPtr());
      if (isInLoop && (!itsBase || itsBase == base))
        why = "a load may read it, and there is a loop";
    } else if (isBeyondAccesses(op)) {
      why = "the kernel orders memory, or writes to it otherwise";
    }
    return why.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return why;
}

std::string Rewriter::plan(tile::StoreOp store) {
  auto type = cast<RankedTensorType>(store.getValue().getType());
  if (store.getCache() != tile::CacheModifier::None ||
      store.getEvict() != tile::EvictionPolicy::Normal)
    return "it says how to cache";
  std::string why;
  std::optional<BoxAccess> box = getBoxAccess(store, analysis, &why);
  if (!box)
    return why;
  EngineStore planned;
  planned.store = store;
  unsigned fast = *box->getDims().back().tileDim;
  LinearLayout memory =
      operandMemory(type.getShape(), fast, 8 * getElementBytes(type.getElementType()));
  planned.buffer = MemDescType::get(store.getContext(), type.getShape(), type.getElementType(),
                                    LayoutAttr::get(store.getContext(), memory));
  if (!canMoveByTensorMap(*box, planned.buffer, &why))
    return why;
  for (Operation *op = store->getParentOp(); op != kernel; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      planned.loop = op;
  if (why = whyNotAlone(store, box->getBase(), planned.loop != nullptr); !why.empty())
    return why;
  // In a loop the buffer is there beside all others.
  if (planned.loop) {
    int64_t bytes = planned.buffer.getNumBytes() + kReserve;
    kernel.walk([&](LocalAllocOp buffer) { bytes += buffer.getType().getNumBytes(); });
    for (const EngineStore &other : stores)
      bytes += other.buffer.getNumBytes();
    if (bytes > limit)
      return "there is no shared memory left for its tile";
  }
  planned.box = std::move(*box);
  stores.push_back(std::move(planned));
  return "";
}

void Rewriter::rewrite(EngineStore &planned, BlockArgument map) {
  tile::StoreOp store = planned.store;
  Location loc = store.getLoc();
  OpBuilder builder(store);
  auto wait = [&](bool untilRead) {
    TMAStoreWaitOp::create(builder, loc, builder.getI32IntegerAttr(0),
                           untilRead ? builder.getUnitAttr() : UnitAttr());
  };
  Value buffer;
  if (planned.loop) {
    builder.setInsertionPoint(planned.loop);
    buffer = LocalAllocOp::create(builder, loc, planned.buffer, Value());
    builder.setInsertionPoint(store);
    wait(/*untilRead=*/false);
    LocalStoreOp::create(builder, loc, store.getValue(), buffer);
  } else {
    buffer = LocalAllocOp::create(builder, loc, planned.buffer, store.getValue());
  }
  SmallVector<Value> coordinates;
  IRMapping mapping;
  for (unsigned dim = 0; dim < planned.box.getDims().size(); ++dim)
    coordinates.push_back(planned.box.emitCoordinate(builder, loc, dim, mapping));
  TMAStoreOp::create(builder, loc, buffer, map, coordinates);
  TMAStoreCommitOp::create(builder, loc);
  if (planned.loop)
    builder.setInsertionPointAfter(planned.loop);
  wait(/*untilRead=*/true);
  LocalDeallocOp::create(builder, loc, buffer);
  store.erase();
}

FailureOr<unsigned> Rewriter::run() {
  bool hasProducts = false;
  kernel.walk([&](WarpgroupDotOp) { hasProducts = true; });
  if (!kernel.isKernel() || !hasProducts)
    return 0u;
  SmallVector<tile::StoreOp> candidates;
  kernel.walk([&](tile::StoreOp store) {
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (type && type.getRank() == 2 && type.getElementType().isIntOrFloat() &&
        !type.getElementType().isInteger(1) &&
        type.getNumElements() * getElementBytes(type.getElementType()) >= kLeastBytes)
      candidates.push_back(store);
  });
  for (tile::StoreOp store : candidates)
    if (std::string why = plan(store); !why.empty())
      store.emitRemark("result is stored by threads, not by the copy engine: ") << why;
  for (EngineStore &planned : stores) {
    FailureOr<BlockArgument> map = addTensorMap(kernel, planned.box, planned.buffer);
    if (failed(map))
      return planned.store.emitError("needs more than ") << kMaxTensorMaps << " tensor maps";
    rewrite(planned, *map);
  }
  return unsigned(stores.size());
}

namespace {

struct TileGPUStoreByTensorMapPass
    : tessera::tilegpu::impl::TileGPUStoreByTensorMapPassBase<TileGPUStoreByTensorMapPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<StringRef> target = requireTarget(module);
    if (failed(target))
      return signalPassFailure();
    if (getCapability(module) < 90)
      return;
    int64_t limit = getSharedMemoryLimit(*target);
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      FailureOr<unsigned> stored = Rewriter(kernel, limit).run();
      if (failed(stored))
        return signalPassFailure();
      numStored += *stored;
    }
  }
};

} // namespace
