// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots by multiply-adds and by mma.sync read their operands from the buffers where copies
// have put them, a few steps along k at a time: what is multiplied next is on its way to
// registers while threads multiply.
//
//     a0, b0 = local_load A from 0, B from 0
//     for each slice s of k:
//       a', b' = local_load A from s + 1, B from s + 1
//       acc = dot as, bs, acc                            in registers alone
//
// In a loop of mma.sync over a ring of buffers the first slice of the next iteration is fetched
// before the last slice of this one is multiplied. The iteration's beginning, where it waits for
// what was copied and orders the next copies, goes there with it:
//
//     if there is an iteration:
//       begin iteration 0; a0, b0 = its first slice
//       for i, with a0, b0:
//         all slices but the last
//         begin iteration i + 1; a0', b0' = its first slice
//         the last slice
//
// so that nobody waits with nothing to multiply. The last iteration begins none: it copies nothing
// more, and reads its own buffer once again.
//
// Without that, a dot by multiply-adds takes its operands in whatever registers they come,
// writes them to shared memory a second time and meets there: for operands that are in shared
// memory already that is a way for nothing. What a slice looks like in registers follows from the
// layout of the accumulators, which tilegpu-assign-layouts chooses with these reads in mind.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPREFETCHPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Words of 32 bits that a thread holds of both operands for a slice at most, and the steps
/// along k in one, as bits.
static constexpr int64_t kSliceWords = 32;
static constexpr unsigned kSliceBits = 2;
/// Multiply-adds of a thread that are written out one after another at most.
static constexpr int64_t kWrittenOut = 2048;

namespace {

class SlicedDot {
public:
  /// A dot by multiply-adds or by mma.sync.
  SlicedDot(Operation *dot)
      : dot(dot), a(dot->getOperand(0).getDefiningOp<LocalLoadOp>()),
        b(dot->getOperand(1).getDefiningOp<LocalLoadOp>()) {}

  /// Decides; nothing is changed. False if the operands do not come from buffers that are as
  /// they were when the dot is computed.
  bool plan();
  void rewrite();

  /// What rewriting has made, if it is all in the block of the dot: the loads of the first
  /// slice, and the dot of the last.
  SmallVector<LocalLoadOp, 2> firstLoads;
  Operation *lastDot = nullptr;

private:
  struct Slice {
    Value a, b;
  };
  Slice load(OpBuilder &builder, Value first);
  Value multiply(OpBuilder &builder, Slice slice, Value acc);

  /// What threads hold of the operands in `length` steps along k.
  void setSlice(int64_t length);

  Operation *dot;
  LocalLoadOp a, b;
  RankedTensorType sliceA, sliceB;
  int64_t depth = 0, steps = 0;
};

} // namespace

/// Whether nothing is written to shared memory on the way from one op to another in its block.
static bool isUnchangedBetween(Operation *from, Operation *to) {
  if (from->getBlock() != to->getBlock())
    return false;
  auto isShared = [](const OpAccess &access) {
    return !access.resource || access.resource == SharedMemory::get();
  };
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode())
    for (const OpAccess &access : getMemoryAccesses(op))
      if (access.writes && isShared(access))
        return false;
  return true;
}

/// The part of an operand that a thread multiplies with its part of the accumulators, for `steps`
/// steps along k: what is left of the accumulators' layout without the dimension `other`.
static RankedTensorType getSliceType(RankedTensorType operand, const LinearLayout &acc,
                                     unsigned other, unsigned k, int64_t steps) {
  SmallVector<int64_t> shape(operand.getShape());
  shape[k] = steps;
  LinearLayout layout(shape), slice = acc.project(other);
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp})
    for (uint64_t column : slice.columns(dim)) {
      SmallVector<int64_t> place = slice.coordinates(column);
      place.insert(place.begin() + k, 0);
      layout.columns(dim).push_back(layout.element(place));
    }
  for (unsigned bit = 0; bit < layout.dimBits(k); ++bit)
    layout.columns(HwDim::Reg).push_back(uint64_t(1) << (layout.dimShift(k) + bit));
  auto encoding = LayoutAttr::get(operand.getContext(), layout.canonical());
  return RankedTensorType::get(shape, operand.getElementType(), encoding);
}

static int64_t countWords(RankedTensorType type) {
  return getLayoutAttr(type).getNumRegisters() *
         std::max<int64_t>(1, getElementBytes(type.getElementType()) / 4);
}

void SlicedDot::setSlice(int64_t length) {
  steps = length;
  auto typeA = cast<RankedTensorType>(a.getType()), typeB = cast<RankedTensorType>(b.getType());
  if (auto mma = dyn_cast<MmaDotOp>(dot)) {
    ArrayRef<int32_t> warps = mma.getWarps();
    unsigned bits = mma.getOperandBits();
    auto make = [&](RankedTensorType type, unsigned k, auto layoutOf) {
      SmallVector<int64_t> shape(type.getShape());
      shape[k] = length;
      LinearLayout layout = layoutOf(shape, bits, /*kRegisters=*/1, warps[0], warps[1]);
      return RankedTensorType::get(shape, type.getElementType(),
                                   LayoutAttr::get(type.getContext(), layout));
    };
    sliceA = make(typeA, 1, mmaOperandA);
    sliceB = make(typeB, 0, mmaOperandB);
    return;
  }
  const LinearLayout &acc = getLayout(dot->getResult(0).getType());
  sliceA = getSliceType(typeA, acc, /*other=*/1, /*k=*/1, steps);
  sliceB = getSliceType(typeB, acc, /*other=*/0, /*k=*/0, steps);
}

bool SlicedDot::plan() {
  Type type = dot->getResult(0).getType();
  // Sums of f16 by multiply-adds are rounded once, behind the last dot.
  if (!a || !b || a.getFirst() || b.getFirst() || !a->hasOneUse() || !b->hasOneUse() ||
      tile::getShape(type).size() != 2 ||
      (isa<tile::DotOp>(dot) && getElementTypeOrSelf(type).isF16()))
    return false;
  if (!isUnchangedBetween(a, dot) || !isUnchangedBetween(b, dot))
    return false;
  depth = cast<RankedTensorType>(a.getType()).getShape()[1];
  if (!llvm::isPowerOf2_64(depth))
    return false;
  if (auto mma = dyn_cast<MmaDotOp>(dot)) {
    // An instruction's; of two where dots are summed apart, while there are registers.
    constexpr int64_t kBytes = 32, kManyAccumulators = 64;
    int64_t length = kBytes * 8 / mma.getOperandBits();
    if (mma.getPrecision() == tile::InputPrecision::TF32x3 &&
        getLayoutAttr(type).getNumRegisters() <= kManyAccumulators)
      length *= 2;
    if (length >= depth || mma.getOperandBits() > 32)
      return false;
    setSlice(length);
    return true;
  }
  setSlice(1);
  int64_t words = countWords(sliceA) + countWords(sliceB);
  int64_t length = 1;
  while (length < std::min<int64_t>(depth, 1 << kSliceBits) && words * length * 2 <= kSliceWords)
    length *= 2;
  setSlice(length);
  return true;
}

SlicedDot::Slice SlicedDot::load(OpBuilder &builder, Value first) {
  auto part = [&](LocalLoadOp whole, RankedTensorType type, int32_t k) -> Value {
    return LocalLoadOp::create(builder, whole.getLoc(), type, whole.getBuffer(), first,
                               builder.getI32IntegerAttr(k));
  };
  return {part(a, sliceA, 1), part(b, sliceB, 0)};
}

Value SlicedDot::multiply(OpBuilder &builder, Slice slice, Value acc) {
  IRMapping mapping;
  mapping.map(dot->getOperand(0), slice.a);
  mapping.map(dot->getOperand(1), slice.b);
  mapping.map(dot->getOperand(2), acc);
  return builder.clone(*dot, mapping)->getResult(0);
}

static Value makeNumber(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
}

void SlicedDot::rewrite() {
  Location loc = dot->getLoc();
  OpBuilder builder(dot);
  int64_t perSlice = getLayoutAttr(dot->getResult(0).getType()).getNumRegisters() * steps;
  int64_t slices = depth / steps;
  int64_t together = slices;
  while (isa<tile::DotOp>(dot) && together > 1 && together * perSlice > kWrittenOut)
    together /= 2;
  Value acc = dot->getOperand(2);
  Slice current = load(builder, makeNumber(builder, loc, 0));
  auto firstA = current.a.getDefiningOp<LocalLoadOp>(),
       firstB = current.b.getDefiningOp<LocalLoadOp>();
  scf::ForOp loop;
  if (together < slices) {
    loop = scf::ForOp::create(
        builder, loc, makeNumber(builder, loc, 0), makeNumber(builder, loc, depth),
        makeNumber(builder, loc, together * steps), ValueRange{acc, current.a, current.b});
    builder.setInsertionPointToStart(loop.getBody());
    acc = loop.getRegionIterArg(0);
    current = {loop.getRegionIterArg(1), loop.getRegionIterArg(2)};
  }
  for (int64_t slice = 0; slice < together; ++slice) {
    Slice next = current;
    Value first = makeNumber(builder, loc, (slice + 1) * steps);
    if (loop) {
      // The last iteration fetches the first slice again, which nobody uses.
      first = arith::AddIOp::create(builder, loc, loop.getInductionVar(), first);
      if (slice + 1 == together)
        first = arith::AndIOp::create(builder, loc, first, makeNumber(builder, loc, depth - 1));
    }
    if (loop || slice + 1 < slices)
      next = load(builder, first);
    acc = multiply(builder, current, acc);
    current = next;
  }
  if (loop) {
    scf::YieldOp::create(builder, loc, ValueRange{acc, current.a, current.b});
    acc = loop.getResult(0);
  } else {
    firstLoads = {firstA, firstB};
    lastDot = acc.getDefiningOp();
  }
  dot->getResult(0).replaceAllUsesWith(acc);
  dot->erase();
  a.erase();
  b.erase();
}

//===----------------------------------------------------------------------===//
// Across iterations
//===----------------------------------------------------------------------===//

namespace {

/// A loop whose iterations begin with the first loads of a dot, and are to begin earlier.
class IterationRotation {
public:
  IterationRotation(scf::ForOp loop, ArrayRef<LocalLoadOp> firstLoads, Operation *lastDot)
      : loop(loop), firstLoads(firstLoads), lastDot(lastDot),
        yield(cast<scf::YieldOp>(loop.getBody()->getTerminator())) {}

  bool plan();
  void rewrite();

private:
  bool isBeginning(Operation *op) const;
  bool readsWhatIsCopied() const;
  /// The value in the iteration that `mapping` is of; what it takes to compute it is copied.
  Value get(OpBuilder &builder, Value value, IRMapping &mapping);
  void cloneInto(OpBuilder &builder, Operation *op, IRMapping &mapping);
  /// The beginning of an iteration; of one that there may not be where `exists` is given, then with
  /// `current` for the iteration before.
  SmallVector<Value> begin(OpBuilder &builder, IRMapping &mapping, Value exists,
                           IRMapping *current);

  scf::ForOp loop;
  ArrayRef<LocalLoadOp> firstLoads;
  Operation *lastDot;
  scf::YieldOp yield;
  Operation *lastOfBeginning = nullptr;
};

} // namespace

bool IterationRotation::isBeginning(Operation *op) const {
  return op == lastOfBeginning || op->isBeforeInBlock(lastOfBeginning);
}

/// Whether a value of the loop's body can be computed again for little.
static bool isScalarWork(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return true;
  if (isa<RankedTensorType>(value.getType()) || !isPure(op) || op->getNumRegions() != 0)
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isScalarWork(operand, loop); });
}

/// Whether an op that stays behind the next iteration's beginning looks at a ring that is copied
/// to there: with the last slot of a ring free, that is where this iteration's tile lies.
bool IterationRotation::readsWhatIsCopied() const {
  auto getRing = [](Value buffer) {
    while (Operation *view = buffer.getDefiningOp()) {
      if (!isa<MemDescTransOp, MemDescIndexOp>(view))
        break;
      buffer = view->getOperand(0);
    }
    return buffer;
  };
  llvm::SmallDenseSet<Value, 4> filled;
  scf::ForOp of = loop;
  for (auto copy : of.getBody()->getOps<AsyncCopyOp>())
    filled.insert(getRing(copy.getBuffer()));
  for (Operation *op = lastDot; op; op = op->getNextNode()) {
    WalkResult result = op->walk([&](Operation *inner) {
      bool reads =
          !isa<MemDescTransOp, MemDescIndexOp>(inner) &&
          llvm::any_of(inner->getOperands(), [&](Value operand) {
            return isa<MemDescType>(operand.getType()) && filled.contains(getRing(operand));
          });
      return reads ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return true;
  }
  return false;
}

bool IterationRotation::plan() {
  Block *body = loop.getBody();
  lastOfBeginning = firstLoads.front();
  for (LocalLoadOp load : firstLoads) {
    auto slot = load.getBuffer().getDefiningOp<MemDescIndexOp>();
    if (load->getBlock() != body || !slot || slot->getBlock() != body)
      return false;
    if (lastOfBeginning->isBeforeInBlock(load))
      lastOfBeginning = load;
  }
  bool waits = false;
  for (Operation &op : *body) {
    if (!isBeginning(&op))
      break;
    waits |= isa<AsyncWaitOp>(op);
    auto load = dyn_cast<LocalLoadOp>(op);
    bool isFirst = load && llvm::is_contained(firstLoads, load);
    if (!isFirst && !isa<AsyncWaitOp, AsyncCopyOp, AsyncCommitOp>(op) &&
        (!isPure(&op) || op.getNumRegions() != 0))
      return false;
    // What the rest of the iteration takes from its beginning.
    for (Operation *user : op.getUsers()) {
      Operation *ancestor = body->findAncestorOpInBlock(*user);
      if (!isFirst && !isBeginning(ancestor) &&
          llvm::any_of(op.getResults(), [&](Value result) { return !isScalarWork(result, loop); }))
        return false;
    }
    // What the beginning takes from the iteration before.
    for (Value operand : op.getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argument.getOwner() == body && argument != loop.getInductionVar() &&
          !isScalarWork(yield.getOperand(argument.getArgNumber() - 1), loop))
        return false;
    }
  }
  return waits && !isBeginning(lastDot) && !readsWhatIsCopied();
}

Value IterationRotation::get(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return value;
  cloneInto(builder, op, mapping);
  return mapping.lookup(value);
}

void IterationRotation::cloneInto(OpBuilder &builder, Operation *op, IRMapping &mapping) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      get(builder, operand, mapping);
  });
  builder.clone(*op, mapping);
}

SmallVector<Value> IterationRotation::begin(OpBuilder &builder, IRMapping &mapping, Value exists,
                                            IRMapping *current) {
  SmallVector<Value> loaded;
  for (Operation &op : *loop.getBody()) {
    if (!isBeginning(&op))
      break;
    auto load = dyn_cast<LocalLoadOp>(op);
    if (load && exists) {
      // The buffer of an iteration that there is not may be one that nothing was copied to.
      auto index = load.getBuffer().getDefiningOp<MemDescIndexOp>();
      Value slot = arith::SelectOp::create(builder, op.getLoc(), exists,
                                           get(builder, index.getSlot(), mapping),
                                           get(builder, index.getSlot(), *current));
      mapping.map(
          load.getBuffer(),
          MemDescIndexOp::create(builder, op.getLoc(), get(builder, index.getRing(), mapping), slot)
              .getResult());
    }
    // Work on scalars may have been copied already.
    if (op.getNumResults() == 0 || !mapping.contains(op.getResult(0)))
      cloneInto(builder, &op, mapping);
    if (auto copy = dyn_cast<AsyncCopyOp>(op); copy && exists) {
      auto made = cast<AsyncCopyOp>(&*std::prev(builder.getInsertionPoint()));
      OpBuilder before(made);
      Value condition = made.getCondition();
      made.getConditionMutable().assign(
          condition ? arith::AndIOp::create(before, op.getLoc(), condition, exists).getResult()
                    : exists);
    }
    if (load)
      loaded.push_back(mapping.lookup(load.getResult()));
  }
  return loaded;
}

void IterationRotation::rewrite() {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs =
      arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  auto guarded =
      scf::IfOp::create(builder, loc, loop.getResultTypes(), runs, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(builder, loc, loop.getInitArgs());

  builder.setInsertionPointToStart(guarded.thenBlock());
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  SmallVector<Value> inits(loop.getInitArgs());
  llvm::append_range(inits, begin(builder, first, /*exists=*/{}, /*current=*/nullptr));
  auto to =
      scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                         inits, /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  if (!to.getBody()->empty())
    to.getBody()->back().erase();
  scf::YieldOp::create(builder, loc, to.getResults().take_front(loop.getNumResults()));

  builder.setInsertionPointToEnd(to.getBody());
  IRMapping current, next;
  Value iv = to.getInductionVar();
  current.map(loop.getInductionVar(), iv);
  unsigned kept = loop.getNumRegionIterArgs();
  current.map(loop.getRegionIterArgs(), to.getRegionIterArgs().take_front(kept));
  // In the order in which the beginning has them.
  unsigned carried = kept;
  for (Operation &op : *loop.getBody())
    if (auto load = dyn_cast<LocalLoadOp>(op); load && isBeginning(&op))
      current.map(load.getResult(), to.getRegionIterArg(carried++));
  SmallVector<Value> begun;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (isBeginning(&op))
      continue;
    if (&op == lastDot) {
      // What is left up to the bound is a positive number, whatever its sign.
      Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), iv);
      Value exists =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, loop.getStep());
      next.map(loop.getInductionVar(), arith::AddIOp::create(builder, loc, iv, loop.getStep()));
      for (auto [argument, yielded] :
           llvm::zip_equal(loop.getRegionIterArgs(), yield.getOperands()))
        if (isScalarWork(yielded, loop) && !isa<RankedTensorType>(yielded.getType()))
          next.map(argument, get(builder, yielded, current));
      begun = begin(builder, next, exists, &current);
    }
    if (op.getNumResults() == 0 || !current.contains(op.getResult(0)))
      cloneInto(builder, &op, current);
  }
  SmallVector<Value> yielded;
  for (Value value : yield.getOperands())
    yielded.push_back(get(builder, value, current));
  llvm::append_range(yielded, begun);
  scf::YieldOp::create(builder, loc, yielded);
  loop.replaceAllUsesWith(guarded.getResults());
  loop.erase();
}

namespace {

struct TileGPUPrefetchPass : tessera::tilegpu::impl::TileGPUPrefetchPassBase<TileGPUPrefetchPass> {
  void runOnOperation() final {
    if (getNumBlocks(getOperation()) > 1)
      return;
    SmallVector<Operation *> dots;
    getOperation().walk([&](Operation *op) {
      if (isa<tile::DotOp>(op) || isa<MmaDotOp>(op))
        dots.push_back(op);
    });
    for (Operation *dot : dots) {
      SlicedDot sliced(dot);
      auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
      bool isOnly = loop && isOnlyWork(dot, loop), isMma = isa<MmaDotOp>(dot);
      if (!sliced.plan())
        continue;
      sliced.rewrite();
      // Of multiply-adds there are enough to wait behind, and none too many registers.
      if (!isOnly || !sliced.lastDot || !isMma)
        continue;
      IterationRotation rotation(loop, sliced.firstLoads, sliced.lastDot);
      if (!rotation.plan())
        continue;
      rotation.rewrite();
    }
  }

private:
  /// Whether the loop has no other dot and no loop in it.
  static bool isOnlyWork(Operation *dot, scf::ForOp loop) {
    WalkResult result = loop.getBody()->walk([&](Operation *op) {
      bool isOther =
          isa<LoopLikeOpInterface>(op) ||
          (op != dot && isa<tile::DotOp, tile::DotScaledOp, MmaDotOp, WarpgroupDotOp>(op));
      return isOther ? WalkResult::interrupt() : WalkResult::advance();
    });
    return !result.wasInterrupted();
  }
};

} // namespace
