// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Software pipelining: what a product of a later iteration needs is copied to shared memory
// while this iteration computes.
//
// A load whose tile reaches a product becomes a ring of D slots. The addresses of iteration
// i + d are computed in iteration i, with values of their own that the loop carries ahead:
//
//     prologue, k = 0 .. d-1:   copy tile k into slot k, if there is an iteration k; commit
//     for i:                    wait until tile i is there                  (pending = d - 1)
//                               copy tile i + d into slot (i + d) % D, if there is one; commit
//                               compute with slot i % D
//     epilogue:                 wait for all
//
// Where one product's result goes through other computation into another (attention), the
// first is done an iteration ahead too, if it needs nothing but what was copied, and if the
// multiprocessor has no registers for a second program to do so:
//
//     before:   S = q * K(0)
//     for i:    wait until tile i + 1 is there; copy ahead; commit
//               begin S' = q * K(i + 1)
//               compute with S; O += P * V(i)
//               wait for S'; S = S'
//
// so that tensor cores work on S' while threads compute with S.
//
// One barrier an iteration is enough, and tilegpu-insert-barriers finds its place: behind the
// wait, before the copy. It shows all warps tile i, and it tells that all have finished with
// the slot that is filled next, that of tile i + d - D. So d = D - 1 where an iteration ends
// with its products; and d = D - 2 where a wgmma of the iteration before is still reading.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "LayoutGraph.h"
#include "LoopProducts.h"
#include "LoopSlice.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPIPELINEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Bytes of a copy at least; cp.async has nothing narrower.
static constexpr int64_t kNarrowestCopy = 4;

namespace {

/// A load that is done ahead.
struct PipelinedLoad {
  tile::LoadOp load;
  MemDescType slot;
  /// Buffers that the loaded tile is stored to, of the type of a slot.
  SmallVector<LocalAllocOp> buffers;
  Value ring;
};

class LoopPipeliner {
public:
  LoopPipeliner(scf::ForOp loop, unsigned stages, bool isHinted, int64_t limit, bool skew)
      : loop(loop), wanted(stages), isHinted(isHinted), limit(limit), skew(skew),
        yield(cast<scf::YieldOp>(loop.getBody()->getTerminator())) {}

  /// Decides; nothing is changed. False if there is nothing to be done.
  bool plan();
  void rewrite();

private:
  bool planStep();
  void planLoad(tile::LoadOp load, AccessAnalysis &analysis);
  std::optional<MemDescType> getSlotType(tile::LoadOp load, AccessAnalysis &analysis);
  bool planSlots();
  /// The loads, and the buffers that are slots now.
  llvm::SmallDenseSet<Operation *, 16> getReplaced() const;

  Value emitHasMore(OpBuilder &builder, Value iv, unsigned ahead);
  void emitCopies(OpBuilder &builder, Value iv, Value condition, Value slot,
                  SmallVectorImpl<Value> &ahead);
  void emitBody(OpBuilder &builder, IRMapping &mapping, Value slot);
  WarpgroupDotOp emitSkewedDot(OpBuilder &builder, Value slot, bool isAsync);
  void emitWait(OpBuilder &builder, unsigned pending);
  Value nextSlot(OpBuilder &builder, Value slot);
  void emitEnd(OpBuilder &builder);

  scf::ForOp loop;
  unsigned wanted;
  bool isHinted;
  int64_t limit;
  bool skew; ///< whether a dot may be done ahead
  scf::YieldOp yield;

  APInt step;
  SmallVector<PipelinedLoad> loads;
  LoopSlice slice;
  unsigned slots = 0, distance = 0;
  /// The product that goes on while the next iteration begins.
  WarpgroupDotOp asyncDot;
  /// The product that is done an iteration ahead.
  WarpgroupDotOp skewedDot;
  bool readsByTensorCores = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which loads
//===----------------------------------------------------------------------===//

/// What loads of later iterations may not be done before, any of them: those that tell others
/// where to load come early, too. Null if there is nothing. Of arrays of two arguments nobody
/// knows here that they are two.
static Operation *findObstacle(scf::ForOp loop, MemoryOrder &order) {
  SmallVector<tile::LoadOp> loads;
  loop.getBody()->walk([&](tile::LoadOp load) { loads.push_back(load); });
  Operation *obstacle = nullptr;
  loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    bool isPassed =
        !isa<BarrierOp>(op) && (!mayWriteMemory(op) || llvm::all_of(loads, [&](tile::LoadOp load) {
          return order.mayPass(load, op, loop).isIndependent();
        }));
    if (isPassed)
      return WalkResult::advance();
    obstacle = op;
    return WalkResult::interrupt();
  });
  return obstacle;
}

/// Bytes that a copy of this tile into this buffer moves at once.
static int64_t getCopyBytes(tile::LoadOp load, MemDescType buffer, AccessAnalysis &analysis) {
  AccessPattern pattern = getAccessPattern(load, analysis);
  limitToBuffer(pattern.chain, buffer);
  return pattern.elementBytes << pattern.chain.size();
}

/// A slot for the tile: that of a product if it goes to one as it is, else rows as they come
/// from memory.
std::optional<MemDescType> LoopPipeliner::getSlotType(tile::LoadOp load, AccessAnalysis &analysis) {
  for (Operation *user : load->getUsers())
    if (auto buffer = dyn_cast<LocalAllocOp>(user))
      if (getCopyBytes(load, buffer.getType(), analysis) >= kNarrowestCopy)
        return buffer.getType();
  auto type = cast<RankedTensorType>(load.getType());
  AccessPattern pattern = getAccessPattern(load, analysis);
  unsigned rank = type.getRank(), fast = rank - 1;
  LinearLayout memory(type.getShape());
  for (unsigned dim = 0; dim < rank; ++dim)
    if (!pattern.chain.empty() && memory.dimMask(dim) >> pattern.chain.front() & 1)
      fast = dim;
  int64_t bits = 8 * getElementBytes(type.getElementType());
  if (rank == 2) {
    memory = fragmentMemory(type.getShape(), fast, bits);
  } else {
    for (bool isFast : {true, false})
      for (unsigned bit = 0; bit < memory.elementBits(); ++bit)
        if ((memory.dimMask(fast) >> bit & 1) == isFast)
          memory.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  }
  auto slot = MemDescType::get(load.getContext(), type.getShape(), type.getElementType(),
                               LayoutAttr::get(load.getContext(), memory));
  if (getCopyBytes(load, slot, analysis) >= kNarrowestCopy)
    return slot;
  return std::nullopt;
}

void LoopPipeliner::planLoad(tile::LoadOp load, AccessAnalysis &analysis) {
  auto refuse = [&](const Twine &why) { load.emitRemark("load is not pipelined: ") << why; };
  if (load.getCache() == tile::CacheModifier::CV)
    return refuse("it is not to be cached");
  if (load.getOther() && !isZero(load.getOther()))
    return refuse("what masked-off lanes read is not 0");
  LoopSlice ofLoad(loop);
  for (Value operand : {load.getPtr(), load.getMask()})
    if (operand)
      if (std::string why = ofLoad.add(operand); !why.empty())
        return refuse(why);
  std::optional<MemDescType> slot = getSlotType(load, analysis);
  if (!slot)
    return refuse("no 4 bytes of it are known to lie side by side, aligned and masked together");
  slice.merge(ofLoad);
  PipelinedLoad &planned = loads.emplace_back();
  planned.load = load;
  planned.slot = *slot;
  for (Operation *user : load->getUsers())
    if (auto buffer = dyn_cast<LocalAllocOp>(user))
      if (buffer.getType() == *slot && user->getBlock() == loop.getBody())
        planned.buffers.push_back(buffer);
}

//===----------------------------------------------------------------------===//
// How far ahead
//===----------------------------------------------------------------------===//

llvm::SmallDenseSet<Operation *, 16> LoopPipeliner::getReplaced() const {
  llvm::SmallDenseSet<Operation *, 16> replaced;
  for (const PipelinedLoad &planned : loads) {
    replaced.insert(planned.load);
    replaced.insert(planned.buffers.begin(), planned.buffers.end());
  }
  return replaced;
}

bool LoopPipeliner::planSlots() {
  int64_t perSlot = 0;
  for (PipelinedLoad &planned : loads)
    perSlot += planned.slot.getRing(1).getSlotBytes();
  int64_t fitting = (limit - kExchangeBytes - getOtherBytes(loop, getReplaced())) / perSlot;
  // The operands of a product that goes on take a slot more.
  slots = std::clamp<int64_t>(fitting, 0, wanted + (asyncDot ? 1 : 0));
  if (slots < 2) {
    loop.emitRemark("loop is not pipelined: two stages of ")
        << perSlot << " bytes do not fit into shared memory";
    return false;
  }
  if (slots < wanted)
    loop.emitRemark("loop is pipelined in ")
        << slots << " stages, not " << wanted << ": a stage takes " << perSlot
        << " bytes of shared memory";
  if (slots < 3)
    asyncDot = skewedDot = nullptr;
  distance = slots - (asyncDot ? 2 : 1);
  return true;
}

bool LoopPipeliner::planStep() {
  unsigned width = loop.getInductionVar().getType().isIndex()
                       ? 64
                       : loop.getInductionVar().getType().getIntOrFloatBitWidth();
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return false;
  step = step.sextOrTrunc(width);
  // The way ahead has to be a number of this type.
  return step.isStrictlyPositive() && step.getSignificantBits() + 16 < width;
}

bool LoopPipeliner::plan() {
  SmallVector<tile::LoadOp> candidates;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) &&
        (isHinted || reachesProduct(load.getResult(), loop.getBody())))
      candidates.push_back(load);
  if (candidates.empty())
    return false;
  auto refuse = [&](const Twine &why, Operation *place) {
    InFlightDiagnostic remark = loop.emitRemark("loop is not pipelined: ") << why;
    if (place)
      remark.attachNote(place->getLoc()) << "here";
    return false;
  };
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  if (Operation *obstacle = findObstacle(loop, order))
    return refuse("it writes to memory, or orders accesses to it", obstacle);
  if (!planStep())
    return refuse("its step is not a small constant", nullptr);
  slice = LoopSlice(loop);
  for (tile::LoadOp load : candidates)
    planLoad(load, analysis);
  if (loads.empty())
    return false;
  loop.getBody()->walk([&](WarpgroupDotOp) { readsByTensorCores = true; });
  llvm::SmallDenseSet<Operation *, 16> replaced = getReplaced();
  asyncDot = findAsyncProduct(loop, replaced);
  if (skew)
    skewedDot = findSkewedProduct(loop, replaced);
  // A factor half as wide is held at once with both results.
  constexpr int64_t kOthers = 48, kMost = 255, kOfMultiprocessor = 65536;
  unsigned warps = tilegpu::getNumWarps(loop).value_or(4);
  if (skewedDot) {
    int64_t sum = getRegisters(skewedDot.getType(), warps);
    int64_t wanted = kOthers + getSkewedRegisters(loop, skewedDot, warps) + sum / 2;
    int64_t available = kOfMultiprocessor / (32 * warps);
    // Where two programs fit without that, one multiplies while the other computes.
    if (wanted > std::min(kMost, available) || 2 * (wanted - sum) <= available)
      skewedDot = nullptr;
  }
  return planSlots();
}

//===----------------------------------------------------------------------===//
// The new loop
//===----------------------------------------------------------------------===//

static Value makeNumber(OpBuilder &builder, Location loc, Type type, const APInt &value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

static Value makeSlot(OpBuilder &builder, Location loc, unsigned slot) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(slot));
}

/// Whether there is an iteration `ahead` after that of `iv`, which there is. What is left up
/// to the bound is a positive number, whatever its sign as an i32.
Value LoopPipeliner::emitHasMore(OpBuilder &builder, Value iv, unsigned ahead) {
  Location loc = loop.getLoc();
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), iv);
  Value way = makeNumber(builder, loc, iv.getType(), step * ahead);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, way);
}

/// The copies of one iteration; `ahead` is moved on by one.
void LoopPipeliner::emitCopies(OpBuilder &builder, Value iv, Value condition, Value slot,
                               SmallVectorImpl<Value> &ahead) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), iv);
  slice.emit(builder, mapping, condition, ahead);
  for (PipelinedLoad &planned : loads) {
    tile::LoadOp load = planned.load;
    Value mask = load.getMask() ? mapping.lookupOrDefault(load.getMask()) : Value();
    Value buffer = MemDescIndexOp::create(builder, load.getLoc(), planned.ring, slot);
    auto copy = AsyncCopyOp::create(builder, load.getLoc(), mapping.lookupOrDefault(load.getPtr()),
                                    buffer, mask, condition);
    CopyHints::of(load).attachTo(copy);
  }
  AsyncCommitOp::create(builder, loop.getLoc());
}

Value LoopPipeliner::nextSlot(OpBuilder &builder, Value slot) {
  Location loc = loop.getLoc();
  Value next = arith::AddIOp::create(builder, loc, slot, makeSlot(builder, loc, 1));
  Value isEnd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                                      makeSlot(builder, loc, slots));
  return arith::SelectOp::create(builder, loc, isEnd, makeSlot(builder, loc, 0), next);
}

/// What the old body computes, with the tiles in `slot` for what it loads.
void LoopPipeliner::emitBody(OpBuilder &builder, IRMapping &mapping, Value slot) {
  llvm::SmallDenseSet<Operation *, 16> replaced = getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  llvm::DenseMap<Operation *, PipelinedLoad *> ofLoad;
  for (PipelinedLoad &planned : loads)
    ofLoad[planned.load] = &planned;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (PipelinedLoad *planned = ofLoad.lookup(&op)) {
      Value buffer = MemDescIndexOp::create(builder, op.getLoc(), planned->ring, slot);
      for (LocalAllocOp replacedBuffer : planned->buffers)
        mapping.map(replacedBuffer.getResult(), buffer);
      bool isRead = llvm::any_of(op.getUsers(), [&](Operation *user) {
        while (user->getBlock() != loop.getBody())
          user = user->getParentOp();
        return user == yield || (!replaced.contains(user) && live.contains(user));
      });
      if (isRead)
        mapping.map(op.getResult(0),
                    LocalLoadOp::create(builder, op.getLoc(), op.getResult(0).getType(), buffer));
      continue;
    }
    if (replaced.contains(&op) || !live.contains(&op) || &op == skewedDot)
      continue;
    // The end of a buffer that is no more.
    if (isa<LocalDeallocOp>(op) && replaced.contains(op.getOperand(0).getDefiningOp()))
      continue;
    Operation *copy = builder.clone(op, mapping);
    if (&op == asyncDot) {
      cast<WarpgroupDotOp>(copy).setIsAsync(true);
      WarpgroupWaitOp::create(builder, op.getLoc(), TypeRange(), ValueRange(),
                              builder.getI32IntegerAttr(1));
    }
  }
}

/// The product that is done ahead, of the tile in `slot`.
WarpgroupDotOp LoopPipeliner::emitSkewedDot(OpBuilder &builder, Value slot, bool isAsync) {
  Location loc = skewedDot.getLoc();
  IRMapping mapping;
  SmallVector<MemDescTransOp> turns;
  Value buffer = skewedDot.getB();
  for (; auto trans = buffer.getDefiningOp<MemDescTransOp>(); buffer = trans.getBuffer())
    turns.push_back(trans);
  for (PipelinedLoad &planned : loads)
    if (llvm::is_contained(planned.buffers, buffer.getDefiningOp<LocalAllocOp>()))
      mapping.map(buffer, MemDescIndexOp::create(builder, loc, planned.ring, slot).getResult());
  for (MemDescTransOp trans : llvm::reverse(turns))
    builder.clone(*trans, mapping);
  auto dot = cast<WarpgroupDotOp>(builder.clone(*skewedDot, mapping));
  dot.setIsAsync(isAsync);
  return dot;
}

void LoopPipeliner::emitWait(OpBuilder &builder, unsigned pending) {
  AsyncWaitOp::create(builder, loop.getLoc(), pending);
  if (readsByTensorCores)
    ProxyFenceOp::create(builder, loop.getLoc());
}

void LoopPipeliner::emitEnd(OpBuilder &builder) {
  AsyncWaitOp::create(builder, loop.getLoc(), 0);
  for (PipelinedLoad &planned : loads)
    LocalDeallocOp::create(builder, loop.getLoc(), planned.ring);
}

void LoopPipeliner::rewrite() {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  for (PipelinedLoad &planned : loads)
    planned.ring =
        LocalAllocOp::create(builder, planned.load.getLoc(), planned.slot.getRing(slots), Value());

  // The prologue.
  SmallVector<Value> ahead;
  for (unsigned index : slice.getCarried())
    ahead.push_back(loop.getInitArgs()[index]);
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs =
      arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  for (unsigned k = 0; k < distance; ++k) {
    Value iv = loop.getLowerBound(), condition = runs;
    if (k > 0) {
      condition = arith::AndIOp::create(builder, loc, runs, emitHasMore(builder, iv, k));
      iv =
          arith::AddIOp::create(builder, loc, iv, makeNumber(builder, loc, iv.getType(), step * k));
    }
    emitCopies(builder, iv, condition, makeSlot(builder, loc, k), ahead);
  }

  // Old values that are still needed, those that are ahead, and the two slots.
  SmallVector<unsigned> kept = getLiveCarried(loop, getReplaced());
  SmallVector<Value> inits;
  for (unsigned index : kept)
    inits.push_back(loop.getInitArgs()[index]);
  llvm::append_range(inits, ahead);
  Value firstInto = makeSlot(builder, loc, distance % slots), first = makeSlot(builder, loc, 0);
  // Where a loop that does not run joins one that does, sums must not be under way.
  scf::IfOp guarded;
  if (asyncDot || skewedDot) {
    SmallVector<Type> types;
    for (unsigned index : kept)
      types.push_back(loop.getResult(index).getType());
    guarded = scf::IfOp::create(builder, loc, types, runs, /*withElseRegion=*/true);
    guarded->setAttr(kIsLikelyAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(builder, loc, ArrayRef(inits).take_front(kept.size()));
    builder.setInsertionPointToStart(guarded.thenBlock());
  }
  if (skewedDot) {
    emitWait(builder, distance - 1);
    inits.push_back(emitSkewedDot(builder, first, /*isAsync=*/false).getResult());
  }
  inits.append({firstInto, first});
  auto to =
      scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                         inits, /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  to->removeAttr(kStagesAttr);
  if (!to.getBody()->empty())
    to.getBody()->back().erase();

  builder.setInsertionPointToEnd(to.getBody());
  unsigned needed = skewedDot ? 2 : 1;
  emitWait(builder, distance - needed);
  Value iv = to.getInductionVar();
  ValueRange arguments = to.getRegionIterArgs();
  Value into = arguments[arguments.size() - 2], from = arguments.back();
  ahead = llvm::to_vector(arguments.slice(kept.size(), ahead.size()));
  Value later = arith::AddIOp::create(builder, loc, iv,
                                      makeNumber(builder, loc, iv.getType(), step * distance));
  emitCopies(builder, later, emitHasMore(builder, iv, distance), into, ahead);

  IRMapping mapping;
  mapping.map(loop.getInductionVar(), iv);
  for (auto [index, argument] : llvm::zip(kept, arguments))
    mapping.map(loop.getRegionIterArg(index), argument);
  Value begun;
  if (skewedDot) {
    mapping.map(skewedDot.getResult(), arguments[kept.size() + ahead.size()]);
    begun = emitSkewedDot(builder, nextSlot(builder, from), /*isAsync=*/true).getResult();
  }
  emitBody(builder, mapping, from);
  SmallVector<Value> yielded;
  for (unsigned index : kept)
    yielded.push_back(mapping.lookupOrDefault(yield.getOperand(index)));
  llvm::append_range(yielded, ahead);
  if (skewedDot)
    yielded.push_back(WarpgroupWaitOp::create(builder, loc, TypeRange(begun.getType()),
                                              ValueRange(begun), builder.getI32IntegerAttr(0))
                          .getResult(0));
  yielded.push_back(nextSlot(builder, into));
  yielded.push_back(nextSlot(builder, from));
  scf::YieldOp::create(builder, loc, yielded);

  // The epilogue. The rings end before anything else may want their place.
  builder.setInsertionPointAfter(to);
  SmallVector<Value> results(to.getResults().take_front(kept.size()));
  if (guarded) {
    for (auto [index, value] : llvm::zip_equal(kept, results))
      if (asyncDot && yield.getOperand(index) == asyncDot.getResult())
        value = WarpgroupWaitOp::create(builder, loc, TypeRange(value.getType()), ValueRange(value),
                                        builder.getI32IntegerAttr(0))
                    .getResult(0);
    emitEnd(builder);
    scf::YieldOp::create(builder, loc, results);
    builder.setInsertionPointToStart(guarded.elseBlock());
    results = llvm::to_vector_of<Value>(guarded.getResults());
  }
  emitEnd(builder);
  for (auto [index, value] : llvm::zip_equal(kept, results))
    loop.getResult(index).replaceAllUsesWith(value);
  loop.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUPipelinePass : tessera::tilegpu::impl::TileGPUPipelinePassBase<TileGPUPipelinePass> {
  using TileGPUPipelinePassBase::TileGPUPipelinePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<StringRef> target = requireTarget(module);
    if (failed(target))
      return signalPassFailure();
    // There are no asynchronous copies before.
    if (getCapability(module) < 80)
      return;
    SmallVector<scf::ForOp> loops;
    module.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      unsigned stages = numStages;
      auto hint = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
      if (hint)
        stages = std::clamp<int64_t>(hint.getInt(), 0, kMostStages);
      if (stages < 2)
        continue;
      LoopPipeliner pipeliner(loop, std::min(stages, kMostStages), hint != nullptr,
                              getSharedMemoryLimit(*target), skew);
      if (!pipeliner.plan())
        continue;
      pipeliner.rewrite();
    }
  }

  static constexpr unsigned kMostStages = 64;
};

} // namespace
