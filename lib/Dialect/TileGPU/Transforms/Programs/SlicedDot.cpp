// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SlicedDot.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Layouts of slices
//===----------------------------------------------------------------------===//

int64_t SlicedDot::getDepth() const {
  return cast<RankedTensorType>(dot->getOperand(0).getType()).getShape()[1];
}

int64_t SlicedDot::getStepsOfInstruction() const { return getDot().getStepsOfInstruction(); }

/// The part of an operand that a thread multiplies for its part of the accumulators, for `steps`
/// steps along k. It is the accumulators' layout without the dimension `other`.
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

SlicedDot::Types SlicedDot::getTypes(int64_t steps) const {
  auto typeA = cast<RankedTensorType>(dot->getOperand(0).getType()),
       typeB = cast<RankedTensorType>(dot->getOperand(1).getType());
  if (isByTensorCores()) {
    auto make = [&](RankedTensorType type, unsigned operand) {
      LinearLayout layout = *getDot().getSliceFragment(operand, steps);
      return RankedTensorType::get(layout.shape(), type.getElementType(),
                                   LayoutAttr::get(type.getContext(), layout));
    };
    return {make(typeA, 0), make(typeB, 1)};
  }
  const LinearLayout &acc = getLayout(dot->getResult(0).getType());
  return {getSliceType(typeA, acc, /*other=*/1, /*k=*/1, steps),
          getSliceType(typeB, acc, /*other=*/0, /*k=*/0, steps)};
}

static int64_t countWordsOf(RankedTensorType type) {
  return getLayoutAttr(type).getNumRegisters() *
         std::max<int64_t>(1, getElementBytes(type.getElementType()) / GPUMachine::kRegisterBytes);
}

int64_t SlicedDot::Types::countWords() const { return countWordsOf(a) + countWordsOf(b); }

int64_t SlicedDot::countTogether(int64_t slices) const {
  int64_t perSlice =
      getLayoutAttr(dot->getResult(0).getType()).getNumRegisters() * (getDepth() / slices);
  int64_t together = slices;
  bool isByThreads = !isByTensorCores();
  while (isByThreads && together > 1 && together * perSlice > ScheduleSizes::kMaxMultiplyAdds)
    together /= 2;
  return together;
}

//===----------------------------------------------------------------------===//
// Dots of slices
//===----------------------------------------------------------------------===//

SlicedDot::Slice SlicedDot::load(OpBuilder &builder, Value first, const Types &types) const {
  auto part = [&](LocalLoadOp whole, RankedTensorType type, int32_t k) -> Value {
    return LocalLoadOp::create(builder, whole.getLoc(), type, whole.getBuffer(), first,
                               builder.getI32IntegerAttr(k));
  };
  return {part(a, types.a, 1), part(b, types.b, 0)};
}

Value SlicedDot::multiply(OpBuilder &builder, Slice slice, Value acc) const {
  IRMapping mapping;
  mapping.map(dot->getOperand(0), slice.a);
  mapping.map(dot->getOperand(1), slice.b);
  mapping.map(dot->getOperand(2), acc);
  return builder.clone(*dot, mapping)->getResult(0);
}

static Value makeNumber(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
}

//===----------------------------------------------------------------------===//
// Across iterations
//===----------------------------------------------------------------------===//

namespace {

/// A loop whose iterations begin with the first loads of a dot, and are to begin earlier.
class IterationRotation {
public:
  IterationRotation(scf::ForOp loop, Operation *lastOfBeginning, Operation *lastDot)
      : loop(loop), lastOfBeginning(lastOfBeginning), lastDot(lastDot),
        yield(cast<scf::YieldOp>(loop.getBody()->getTerminator())) {}

  void rewrite();

private:
  bool isBeginning(Operation *op) const {
    return op == lastOfBeginning || op->isBeforeInBlock(lastOfBeginning);
  }
  /// The value in the iteration that `mapping` is of; what it takes to compute it is copied.
  Value get(OpBuilder &builder, Value value, IRMapping &mapping);
  void cloneInto(OpBuilder &builder, Operation *op, IRMapping &mapping);
  /// The beginning of an iteration; of one that there may not be where `exists` is given, then with
  /// `current` for the iteration before.
  SmallVector<Value> begin(OpBuilder &builder, IRMapping &mapping, Value exists,
                           IRMapping *current);

  scf::ForOp loop;
  Operation *lastOfBeginning, *lastDot;
  scf::YieldOp yield;
};

} // namespace

bool tessera::tilegpu::isScalarWork(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return true;
  if (isa<RankedTensorType>(value.getType()) || !isPure(op) || op->getNumRegions() != 0)
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isScalarWork(operand, loop); });
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
      // The distance to the bound is a positive number, whatever its sign.
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

//===----------------------------------------------------------------------===//
// The dot, and the loop around it
//===----------------------------------------------------------------------===//

void SlicedDot::expand(NodeAttr node) {
  dot->removeAttr(kNodeAttr);
  Location loc = dot->getLoc();
  OpBuilder builder(dot);
  auto around = dyn_cast<scf::ForOp>(dot->getParentOp());
  int64_t slices = node.getSlices(), depth = getDepth(), steps = depth / slices;
  int64_t together = countTogether(slices);
  Types types = getTypes(steps);
  Value acc = dot->getOperand(2);
  Slice current = load(builder, makeNumber(builder, loc, 0), types);
  Operation *lastOfBeginning = current.b.getDefiningOp();
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
      // The last iteration fetches the first slice again, unused.
      first = arith::AddIOp::create(builder, loc, loop.getInductionVar(), first);
      if (slice + 1 == together)
        first = arith::AndIOp::create(builder, loc, first, makeNumber(builder, loc, depth - 1));
    }
    if (loop || slice + 1 < slices)
      next = load(builder, first, types);
    acc = multiply(builder, current, acc);
    current = next;
  }
  Operation *lastDot = acc.getDefiningOp();
  if (loop) {
    scf::YieldOp::create(builder, loc, ValueRange{acc, current.a, current.b});
    acc = loop.getResult(0);
  }
  dot->getResult(0).replaceAllUsesWith(acc);
  dot->erase();
  a.erase();
  b.erase();
  if (node.getAhead() != 0)
    IterationRotation(around, lastOfBeginning, lastDot).rewrite();
}
