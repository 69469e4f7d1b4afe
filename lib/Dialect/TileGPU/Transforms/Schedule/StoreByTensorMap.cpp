// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores of dots' results by TMA. Threads write their part of the tile to shared memory, in the
// layout of the tensor map, and one of them issues the TMA store. Threads then neither read it
// again nor compute addresses and masks, and in a loop over tiles the copy goes on while the next
// tile is computed:
//
//     once                               in a loop
//     %b = local_alloc %tile             %b = local_alloc            (before the loop)
//     tma_store %b, %map[...]            tma_store_wait 0            (the one before is done)
//     tma_store_commit                   local_store %tile, %b
//     tma_store_wait 0, read             tma_store %b, %map[...]; tma_store_commit
//                                        tma_store_wait 0, read      (behind the loop)
//
// If a tile does not fit into shared memory beside the rings, it is stored in pieces of some
// columns, by two alternating buffers. A piece waits until the one before the last has been read.
//
// TMA's writes are unordered with later accesses of threads, and with their earlier writes. So the
// kernel must not order memory. Other writes, and later reads, must be at other addresses
// (Analysis/Order/MemoryOrder.h). These are arrays of other arguments, which the launch checks, or
// adjacent boxes that TMA stores, too. In a loop, a block's stores wait for those of the previous
// iteration. Where all of these write other elements, they wait only until their buffers are read.
//
// If the kernel loads the array's address, that is unknown. While a loop stores tiles of such an
// array, nothing else of the program may access memory. The stores are complete when the loop ends,
// and before a producer is signalled that it may copy earlier writes.
//
// Threads store in a loop whose tiles they copy ahead of its stores (`tilegpu-pipeline`): of a
// store by TMA it is not known where it writes.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "StoreByTensorMap.h"

#include "Transport.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "tessera/Machine/MMAShape.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSTOREBYTENSORMAPPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// In a loop, a larger tile goes through buffers of this size, in pieces, if no more shared memory
/// is free.
static constexpr int64_t kPieceBytes = SharedMemoryBudget::kOfPiece;

namespace {

/// A store that TMA can do.
struct TMAStore {
  tile::StoreOp store;
  BoxAccess box;
  /// The number of pieces of a tile.
  MemDescType buffer;
  int64_t pieces = 1;

  unsigned getNumBuffers() const { return pieces == 1 ? 1 : 2; }
  int64_t getBufferBytes() const { return getNumBuffers() * buffer.getNumBytes(); }
  /// The launch conditions under which it may run later.
  LaunchConditions conditions;
  Block *block = nullptr; ///< that of the store, which is gone once it is rewritten
  /// The outermost loop around it; null outside of loops.
  Operation *loop = nullptr;
  /// For an array whose address the kernel loads: the innermost one.
  Operation *tiles = nullptr;
  /// True if another one, earlier in its block, waits for what the iteration before has stored.
  bool isWaitedFor = false;
  /// True if no two iterations store the same elements.
  bool isApart = false;
};

class StoreRewriter {
public:
  StoreRewriter(tile::FuncOp kernel, int64_t limit) : kernel(kernel), limit(limit) {}

  /// Fails, with an error, where a kernel would need more tensor maps than it can have.
  LogicalResult run();

private:
  std::string plan(tile::StoreOp store);
  void dropThoseBesideThreads();
  FailureOr<Value> addMap(TMAStore &planned);
  bool areApart(Block *block) const;
  void rewrite(TMAStore &planned, Value map);
  void drain();

  tile::FuncOp kernel;
  int64_t limit;
  AccessAnalysis analysis;
  SmallVector<TMAStore, 2> stores;
};

} // namespace

/// True if a store is worth it, and not too odd, to be left to TMA.
static bool isForTMA(tile::StoreOp store) {
  auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
  return type && type.getRank() == 2 && type.getElementType().isIntOrFloat() &&
         !type.getElementType().isInteger(1) && getTileBytes(type) >= ScheduleSizes::kMinBytesByTMA;
}

/// The reason why TMA may not run a store at any time until the end of the kernel, or until its
/// wait before a later store of its block. Empty if it may. `conditions` gets the conditions of the
/// launch for that.
static std::string whyNotDelayed(tile::StoreOp store, AccessAnalysis &analysis,
                                 LaunchConditions &conditions) {
  auto kernel = store->getParentOfType<tile::FuncOp>();
  MemoryOrder order(analysis);
  std::string why;
  kernel.walk([&](Operation *op) {
    // Ops in a region are visited themselves. The pass that made TMA copies has ordered them before
    // stores.
    if (op == store || op == kernel || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        isInPartition(op))
      return WalkResult::advance();
    auto other = dyn_cast<tile::StoreOp>(op);
    // Those of one block are ordered, iteration by iteration.
    bool isInTurns = other && other->getBlock() == store->getBlock() && isForTMA(other);
    std::optional<Operation *> across = findWayBefore(store, op);
    // Values read before are complete, in all threads, when these issue the store.
    if (!across && !mayWriteMemory(op))
      return WalkResult::advance();
    if (!across || isInTurns)
      across = nullptr;
    AccessPair pair;
    if (conditions.add(order.mayPass(store, op, *across), analysis, pair))
      return WalkResult::advance();
    why = pair.other.isAnywhere() ? "the kernel orders memory, or accesses unknown addresses"
          : pair.other.writes     ? "another store may write the same elements"
                                  : "a load may read its elements afterwards";
    return WalkResult::interrupt();
  });
  return why;
}

/// True if the only loop around a store has no two iterations that store the same elements, and no
/// other store of the block is of its array. `conditions` gets what that takes for granted.
static bool isApartInIterations(tile::StoreOp store, AccessAnalysis &analysis,
                                LaunchConditions &conditions) {
  auto loop =
      dyn_cast_or_null<scf::ForOp>(store->getParentOfType<LoopLikeOpInterface>().getOperation());
  if (!loop || loop->getParentOfType<LoopLikeOpInterface>())
    return false;
  BlockArgument base = getPointerBases(store.getPtr()).getSingle();
  for (auto other : store->getBlock()->getOps<tile::StoreOp>())
    if (other != store && (!base || getPointerBases(other.getPtr()).getSingle() == base))
      return false;
  LaunchConditions more = conditions;
  AccessPair pair;
  if (!more.add(MemoryOrder(analysis).mayPass(store, store, loop), analysis, pair))
    return false;
  conditions = std::move(more);
  return true;
}

/// Why TMA may not store an array that the kernel finds, which may be any, at any time until the
/// end of the innermost loop.
static std::string whyNotLaterInLoop(tile::StoreOp store, const BoxAccess &box) {
  auto loop = store->getParentOfType<LoopLikeOpInterface>();
  if (!loop)
    return "the address of its array is loaded";
  if (!box.isKnownOutside(loop))
    return "the address of its array is loaded, in the loop that stores it";
  bool isAlone = true;
  loop->walk([&](Operation *op) {
    if (op == store || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isInPartition(op))
      return;
    isAlone &= llvm::all_of(getMemoryAccesses(op), [](const OpAccess &access) {
      return access.resource == SharedMemory::get();
    });
  });
  return isAlone ? ""
                 : "the address of its array is loaded, and the loop has other accesses to memory";
}

/// The buffer for a piece of a tile, some columns of it. Null if there are no such pieces, or
/// they would be too narrow.
static MemDescType getBuffer(RankedTensorType type, unsigned fast, int64_t pieces) {
  int64_t bytes = getElementBytes(type.getElementType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t least =
      fast == 1 ? ScheduleSizes::kMinRowBytesByTMA / bytes : ScheduleSizes::kMinRowsByTMA;
  // A layout is not cut through an odd factor.
  if (pieces != 1 && (!llvm::all_of(shape, llvm::isPowerOf2_64) || shape[1] / pieces < least))
    return {};
  shape[1] /= pieces;
  LinearLayout memory = operandMemory(shape, fast, 8 * bytes);
  return MemDescType::get(type.getContext(), shape, type.getElementType(),
                          LayoutAttr::get(type.getContext(), memory));
}

/// How many rows of a tile TMA stores by an instruction. Warpgroups with their own
/// part of a result, as dots have it, can each store that.
static int64_t getBoxRows(tile::StoreOp store) {
  bool hasGroups = store->getParentOfType<WarpSpecializeOp>() &&
                   tilegpu::getNumWarps(store).value_or(1) >= 2 * kWarpsOfWarpgroup;
  return hasGroups ? kRowsOfWarpgroup : kMaxBoxElements;
}

static unsigned getFastDim(const BoxAccess &box) { return *box.getDims().back().tileDim; }

/// The tile's place in global memory, if TMA can write it, given memory for a buffer,
/// and what that takes for granted. Else why not.
static std::optional<BoxAccess> getStoredBox(tile::StoreOp store, AccessAnalysis &analysis,
                                             LaunchConditions &conditions, std::string &why) {
  // TMA writes to the second-level cache, and supports eviction priorities only.
  if (store.getCache() == tile::CacheModifier::WB || store.getCache() == tile::CacheModifier::WT) {
    why = "it has a cache modifier";
    return std::nullopt;
  }
  std::optional<BoxAccess> box = getBoxAccess(store, analysis, &why);
  if (!box)
    return std::nullopt;
  // A GPU faults on a store at a negative coordinate. If that is a multiple of the tile, nothing is
  // to be stored there.
  auto isWhole = [](const BoxDim &dim) {
    return !dim.mayBeNegative ||
           llvm::all_of(dim.coordinate.getTerms(),
                        [&](const ScalarTerm &term) { return term.scale % dim.tileExtent == 0; });
  };
  if (!llvm::all_of(box->getDims(), isWhole)) {
    why = "an index may be negative, and no multiple of the tile's extent";
    return std::nullopt;
  }
  if (!box->endsAligned()) {
    why = "its rows are not known to end at a multiple of 16 bytes";
    return std::nullopt;
  }
  auto type = cast<RankedTensorType>(store.getValue().getType());
  if (!canMoveByTensorMap(*box, getBuffer(type, getFastDim(*box), /*pieces=*/1), &why))
    return std::nullopt;
  why = box->isFoundByKernel() ? whyNotLaterInLoop(store, *box)
                               : whyNotDelayed(store, analysis, conditions);
  return why.empty() ? box : std::nullopt;
}

/// True if threads may copy the tiles of the loop around a store ahead of it.
static bool isBesideCopies(tile::StoreOp store, AccessAnalysis &analysis) {
  auto loop = dyn_cast<scf::ForOp>(store->getParentOp());
  if (!loop || llvm::none_of(*loop.getBody(), [](Operation &op) { return isDot(&op); }))
    return false;
  if (auto stages = loop->getAttrOfType<IntegerAttr>(kStagesAttr); stages && stages.getInt() < 2)
    return false;
  MemoryOrder order(analysis);
  std::unique_ptr<Transport> transport =
      Transport::make(TransportKind::AsyncCopies, store->getParentOfType<tile::FuncOp>(),
                      /*assumeApart=*/true, analysis, order);
  TransportPlan copies = transport->plan(loop);
  LaunchConditions conditions;
  return !copies.copies.empty() && !transport->findObstacle(loop, copies, conditions);
}

static void remarkOnThreads(tile::StoreOp store, StringRef why) {
  emitRemark(store, RemarkKind::StoreByThreads)
      << "result is stored by threads, not by TMA: " << named("reason", why);
}

/// True if an op may exchange so much between threads that it needs more memory.
static bool exchangesMore(Operation *op) {
  if (op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<OpTrait::ConstantLike>() ||
      op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>() ||
      isa<tile::StoreOp, tile::RangeOp, AsyncDotOp, LocalAllocOp>(op))
    return false;
  // Repeating elements exchanges none; another order may.
  if (tile::movesDimensions(op) && !tile::permutesDimensions(op) && !isa<ConvertLayoutOp>(op))
    return false;
  auto isLarge = [](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && getTileBytes(tile) > SharedMemoryBudget::kExchangesOfPieces;
  };
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return isLarge(load.getType());
  return llvm::any_of(op->getOperandTypes(), isLarge) ||
         llvm::any_of(op->getResultTypes(), isLarge);
}

int64_t tessera::tilegpu::getRoomForResults(tile::FuncOp kernel, const ReplacedOps &replaced,
                                            AccessAnalysis &analysis) {
  bool isAlone = true;
  // Buffers of TMA are there at the same time, those of threads one after the other.
  int64_t byTMA = 0, byThreads = 0;
  kernel.walk([&](Operation *op) { isAlone &= replaced.contains(op) || !exchangesMore(op); });
  kernel.walk([&](tile::StoreOp store) {
    auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!tile)
      return;
    int64_t bytes = getTileBytes(tile);
    std::string why;
    std::optional<BoxAccess> box;
    LaunchConditions conditions;
    if (isAlone && isForTMA(store))
      box = getStoredBox(store, analysis, conditions, why);
    int64_t pieces = bytes <= kPieceBytes ? 1 : llvm::divideCeil(2 * bytes, kPieceBytes);
    if (box && getBuffer(tile, getFastDim(*box), pieces))
      byTMA += std::min(bytes, kPieceBytes);
    else
      byThreads = std::max(byThreads, bytes + SharedMemoryBudget::kExchangesOfTiles);
  });
  return std::max(byThreads, byTMA ? byTMA + SharedMemoryBudget::kExchangesOfPieces : 0);
}

std::string StoreRewriter::plan(tile::StoreOp store) {
  TMAStore planned;
  planned.store = store;
  planned.block = store->getBlock();
  for (Operation *op = store->getParentOp(); op != kernel; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      planned.loop = op;
  std::string why;
  std::optional<BoxAccess> box = getStoredBox(store, analysis, planned.conditions, why);
  if (!box)
    return why;
  if (isBesideCopies(store, analysis))
    return "threads copy tiles ahead of it";
  // In a loop the buffer is there beside all others.
  int64_t others = SharedMemoryBudget::kExchangesOfPieces;
  if (planned.loop) {
    kernel.walk([&](LocalAllocOp buffer) { others += buffer.getType().getNumBytes(); });
    for (const TMAStore &other : stores)
      others += other.getBufferBytes();
  }
  auto type = cast<RankedTensorType>(store.getValue().getType());
  auto fits = [&] {
    planned.buffer = getBuffer(type, getFastDim(*box), planned.pieces);
    return !planned.buffer || others + planned.getBufferBytes() <= limit;
  };
  while (!fits())
    planned.pieces *= 2;
  if (!planned.buffer || !canMoveByTensorMap(*box, planned.buffer, &why))
    return "shared memory has no room for its tile";
  if (box->isFoundByKernel())
    planned.tiles = store->getParentOfType<LoopLikeOpInterface>();
  planned.box = std::move(*box);
  planned.isApart = isApartInIterations(store, analysis, planned.conditions);
  planned.isWaitedFor = llvm::any_of(
      stores, [&](TMAStore &other) { return other.store->getBlock() == store->getBlock(); });
  stores.push_back(std::move(planned));
  return "";
}

/// Stores of one array are all TMA's, or all the threads'.
void StoreRewriter::dropThoseBesideThreads() {
  auto isPlanned = [&](tile::StoreOp store) {
    return llvm::any_of(stores, [&](TMAStore &planned) { return planned.store == store; });
  };
  auto isBesideThreads = [&](TMAStore &planned) {
    return kernel
        .walk([&](tile::StoreOp other) {
          return getPointerBases(other.getPtr()).getSingle() == planned.box.getBase() &&
                         !isPlanned(other)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  while (true) {
    auto *dropped = llvm::find_if(stores, isBesideThreads);
    if (dropped == stores.end())
      return;
    remarkOnThreads(dropped->store, "threads store adjacent elements");
    Block *block = dropped->store->getBlock();
    bool waited = dropped->isWaitedFor;
    dropped = stores.erase(dropped);
    // The next one of the block waits in its place.
    for (; !waited && dropped != stores.end(); ++dropped)
      if (dropped->store->getBlock() == block)
        waited = !(dropped->isWaitedFor = false);
  }
}

/// The columns of a tile in so many pieces, a power of two.
static SmallVector<Value> splitColumns(OpBuilder &builder, Location loc, Value tile,
                                       int64_t pieces) {
  if (pieces == 1)
    return {tile};
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape{type.getShape()[0], 2, type.getShape()[1] / 2};
  auto pair = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  Value halves = tile::ReshapeOp::create(builder, loc, pair, tile);
  halves = tile::TransOp::create(builder, loc, halves, ArrayRef<int32_t>{0, 2, 1});
  auto split = tile::SplitOp::create(builder, loc, halves);
  SmallVector<Value> result = splitColumns(builder, loc, split.getLhs(), pieces / 2);
  llvm::append_range(result, splitColumns(builder, loc, split.getRhs(), pieces / 2));
  return result;
}

namespace {

/// A stored tile in pieces, each of them computed on demand. Elementwise ops before the store run
/// piece by piece, while earlier pieces are stored.
class Pieces {
public:
  Pieces(tile::StoreOp store, int64_t count);

  Value emit(OpBuilder &builder, unsigned number);

private:
  Type getType(Type tile) const;

  Value whole;
  int64_t count;
  /// The ops that run piece by piece, in order, and their initial operands.
  SmallVector<Operation *> ops;
  llvm::DenseMap<Value, SmallVector<Value>> parts;
};

} // namespace

Type Pieces::getType(Type tile) const {
  auto type = cast<RankedTensorType>(tile);
  SmallVector<int64_t> shape(type.getShape());
  shape[1] /= count;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

Pieces::Pieces(tile::StoreOp store, int64_t count) : whole(store.getValue()), count(count) {
  if (count == 1)
    return;
  // From the store up, so that users come before what they use.
  llvm::SmallDenseSet<Operation *, 16> chosen;
  for (Operation *op = store->getPrevNode(); op; op = op->getPrevNode()) {
    auto isChosen = [&](OpOperand &use) {
      return chosen.contains(use.getOwner()) || &use == &store.getValueMutable();
    };
    if (!op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
        op->getNumResults() != 1 || op->use_empty() || !llvm::all_of(op->getUses(), isChosen))
      continue;
    chosen.insert(op);
    ops.insert(ops.begin(), op);
  }
}

Value Pieces::emit(OpBuilder &builder, unsigned number) {
  if (count == 1)
    return whole;
  IRMapping mapping;
  auto begin = [&](Value tile) {
    if (!isa<RankedTensorType>(tile.getType()) || mapping.contains(tile))
      return;
    SmallVector<Value> &split = parts[tile];
    DenseElementsAttr constant;
    if (split.empty() && matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
      split.assign(count, arith::ConstantOp::create(
                              builder, tile.getLoc(),
                              constant.resizeSplat(cast<ShapedType>(getType(tile.getType())))));
    if (split.empty())
      split = splitColumns(builder, tile.getLoc(), tile, count);
    mapping.map(tile, split[number]);
  };
  for (Operation *op : ops) {
    llvm::for_each(op->getOperands(), begin);
    Operation *copy = builder.clone(*op, mapping);
    copy->getResult(0).setType(getType(copy->getResult(0).getType()));
  }
  begin(whole);
  return mapping.lookup(whole);
}

static void emitWait(OpBuilder &builder, Location loc, unsigned pending, bool untilRead) {
  TMAStoreWaitOp::create(builder, loc, builder.getI32IntegerAttr(pending),
                         untilRead ? builder.getUnitAttr() : UnitAttr());
}

/// Waits for stores before other accesses of their memory. That is before TMA copies of arrays
/// whose addresses the kernel loads are signalled, and, if such an array is stored, behind the
/// loop.
void StoreRewriter::drain() {
  kernel.walk([&](ProxyFenceOp fence) {
    OpBuilder builder(fence);
    if (fence.getOfMemory() && !isInPartition(fence))
      emitWait(builder, fence.getLoc(), /*pending=*/0, /*untilRead=*/false);
  });
  llvm::SmallPtrSet<Operation *, 2> loops;
  for (const TMAStore &planned : stores)
    if (planned.tiles && loops.insert(planned.tiles).second) {
      OpBuilder builder(kernel.getContext());
      builder.setInsertionPointAfter(planned.tiles);
      emitWait(builder, planned.tiles->getLoc(), /*pending=*/0, /*untilRead=*/false);
      BarrierOp::create(builder, planned.tiles->getLoc());
    }
}

/// The map of what is stored: the launcher's, or one that the kernel makes in front of the loop.
FailureOr<Value> StoreRewriter::addMap(TMAStore &planned) {
  int64_t rows = getBoxRows(planned.store);
  if (!planned.tiles) {
    FailureOr<BlockArgument> map = addTensorMap(kernel, planned.box, planned.buffer, rows);
    return failed(map) ? FailureOr<Value>() : FailureOr<Value>(*map);
  }
  MakeTensorMapOp made = makeTensorMap(kernel, planned.box, planned.buffer, rows);
  // Behind the message to a producer there, which has more to do.
  Operation *around = made->getBlock()->findAncestorOpInBlock(*planned.tiles);
  if (made->use_empty())
    made->moveBefore(around);
  return made.getResult();
}

/// True if no iteration stores what an earlier one has stored in that block.
bool StoreRewriter::areApart(Block *block) const {
  return llvm::all_of(stores,
                      [&](const TMAStore &other) { return other.block != block || other.isApart; });
}

void StoreRewriter::rewrite(TMAStore &planned, Value map) {
  tile::StoreOp store = planned.store;
  Location loc = store.getLoc();
  OpBuilder builder(store);
  auto wait = [&](unsigned pending, bool untilRead) { emitWait(builder, loc, pending, untilRead); };
  bool isFilledLater = planned.loop || planned.pieces > 1;
  if (planned.loop)
    builder.setInsertionPoint(planned.loop);
  SmallVector<Value, 2> buffers;
  for (unsigned number = 0; number < planned.getNumBuffers(); ++number)
    buffers.push_back(LocalAllocOp::create(builder, loc, planned.buffer,
                                           isFilledLater ? Value() : store.getValue()));
  builder.setInsertionPoint(store);
  SmallVector<Value> coordinates;
  IRMapping mapping;
  unsigned alongColumns = 0;
  for (auto [dim, boxDim] : llvm::enumerate(planned.box.getDims())) {
    coordinates.push_back(planned.box.emitCoordinate(builder, loc, dim, mapping));
    if (boxDim.tileDim == 1u)
      alongColumns = dim;
  }
  Value first = coordinates[alongColumns], isMoved = planned.box.emitIsMoved(builder, loc, mapping);
  // A coordinate beyond 32 bits is negative here.
  Value zero;
  for (auto [boxDim, coordinate] : llvm::zip_equal(planned.box.getDims(), coordinates)) {
    if (boxDim.isNarrow && !boxDim.mayBeNegative)
      continue;
    if (!zero)
      zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    Value isInside =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, coordinate, zero);
    isMoved =
        isMoved ? arith::AndIOp::create(builder, loc, isMoved, isInside).getResult() : isInside;
  }
  Pieces pieces(store, planned.pieces);
  for (unsigned number = 0; number < planned.pieces; ++number) {
    if (number != 0) {
      Value columns = arith::ConstantOp::create(
          builder, loc, builder.getI32IntegerAttr(number * planned.buffer.getShape()[1]));
      coordinates[alongColumns] = arith::AddIOp::create(builder, loc, first, columns);
    }
    Value piece = pieces.emit(builder, number);
    if (number == 0 && planned.loop && !planned.isWaitedFor)
      wait(/*pending=*/0, /*untilRead=*/areApart(planned.block));
    if (number >= buffers.size())
      wait(/*pending=*/buffers.size() - 1, /*untilRead=*/true);
    Value buffer = buffers[number % buffers.size()];
    if (isFilledLater)
      LocalStoreOp::create(builder, loc, piece, buffer);
    {
      // If nothing is stored, the array may have no elements, and TMA fails on its map.
      OpBuilder::InsertionGuard guard(builder);
      if (isMoved)
        builder.setInsertionPointToStart(
            scf::IfOp::create(builder, loc, isMoved, /*withElseRegion=*/false).thenBlock());
      CopyHints::of(store).attachTo(TMAStoreOp::create(builder, loc, buffer, map, coordinates,
                                                       /*groups=*/nullptr));
    }
    TMAStoreCommitOp::create(builder, loc);
  }
  if (planned.loop)
    builder.setInsertionPointAfter(planned.loop);
  wait(/*pending=*/0, /*untilRead=*/true);
  for (Value buffer : buffers)
    LocalDeallocOp::create(builder, loc, buffer);
  store.erase();
}

LogicalResult StoreRewriter::run() {
  bool hasDots = false;
  kernel.walk([&](AsyncDotOp) { hasDots = true; });
  if (!kernel.isKernel() || !hasDots)
    return success();
  SmallVector<tile::StoreOp> candidates;
  kernel.walk([&](tile::StoreOp store) {
    if (isForTMA(store))
      candidates.push_back(store);
  });
  for (tile::StoreOp store : candidates)
    if (std::string why = plan(store); !why.empty())
      remarkOnThreads(store, why);
  dropThoseBesideThreads();
  for (TMAStore &planned : stores) {
    addLaunchConditions(kernel, planned.conditions);
    FailureOr<Value> map = addMap(planned);
    if (failed(map))
      return planned.store.emitError("needs more than ") << kMaxTensorMaps << " tensor maps";
    rewrite(planned, *map);
  }
  if (!stores.empty())
    drain();
  return success();
}

namespace {

struct TileGPUStoreByTensorMapPass
    : tessera::tilegpu::impl::TileGPUStoreByTensorMapPassBase<TileGPUStoreByTensorMapPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    // Tiles that blocks share would have parts.
    if (!(*machine)->hasTMA || getNumBlocks(module) > 1)
      return;
    int64_t limit = (*machine)->sharedBytes;
    for (auto kernel : module.getOps<tile::FuncOp>())
      if (failed(StoreRewriter(kernel, limit).run()))
        return signalPassFailure();
  }
};

} // namespace
