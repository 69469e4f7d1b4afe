// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A nest has a loop for each dimension of the group; the innermost one runs over
// strips along the *lane dimension*, in which most accesses are contiguous:
//
//     for i            rows
//       bound = ...    how many lanes of this row no mask excludes
//       for j < bound  several strips an iteration, without masks
//       for j < extent the other strips, with masks
//
// A reduction along the lane dimension keeps a vector for each strip of an iteration, and
// folds them at the end of the row. A reduction along another dimension has the loop
// over that dimension inside the one over strips, and its vectors are results.

#include "StripNestState.h"

#include "AccessChoice.h"

#include "Combine.h"
#include "Functions/MathFunctions.h"
#include "Grouping/CostModel.h"
#include "Grouping/GroupRoots.h"
#include "ScalarMemory.h"
#include "ZeroRows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool StripNest::haveNeutralElements() const {
  return llvm::all_of(reductions, [](tile::ReduceOp reduce) {
    return bool(getNeutralElement(const_cast<tile::ReduceOp &>(reduce).getCombine()));
  });
}

/// Accumulators for `copies` strips: those of the first, then those of the second, ...
SmallVector<Value> StripNest::makeNeutralElements(unsigned copies) {
  SmallVector<Value> values;
  for (tile::ReduceOp reduce : reductions) {
    OpBuilder &b = emitter.atEnd();
    TypedAttr neutral = getNeutralElement(reduce.getCombine());
    Value scalar = arith::ConstantOp::create(b, reduce.getLoc(), neutral);
    if (lanes > 1)
      scalar = vector::BroadcastOp::create(b, reduce.getLoc(),
                                           VectorType::get(lanes, scalar.getType()), scalar);
    values.push_back(scalar);
  }
  SmallVector<Value> all;
  for (unsigned copy = 0; copy < copies; ++copy)
    all.append(values);
  return all;
}

/// Combines the accumulators of several strips into those of one.
SmallVector<Value> StripNest::combineCopies(ArrayRef<Value> accumulators, unsigned copies) {
  SmallVector<Value> all(accumulators);
  unsigned count = countAccumulators();
  for (; copies > 1; copies /= 2) {
    SmallVector<Value> half;
    for (unsigned copy = 0; copy < copies / 2; ++copy) {
      unsigned first = 0;
      for (tile::ReduceOp reduce : reductions) {
        unsigned n = reduce.getNumOperands();
        SmallVector<Value> arguments;
        for (unsigned side : {copy, copy + copies / 2})
          llvm::append_range(arguments, ArrayRef(all).slice(side * count + first, n));
        llvm::append_range(
            half, buildRegion(emitter.atEnd(), reduce.getLoc(), reduce.getCombine(), arguments));
        first += n;
      }
    }
    all = std::move(half);
  }
  return all;
}

/// A buffer for the elements of one line (or strip of lines) of a reduction's operand.
Value StripNest::getLineBuffer(unsigned slot, Type element, int64_t count) {
  if (lines.size() <= slot)
    lines.resize(slot + 1);
  if (!lines[slot]) {
    auto type = MemRefType::get({count}, strips::getStoredType(element));
    lines[slot] =
        strips::ScratchOp::create(emitter.atStart(), group.getLoc(), type, uint64_t(scratchEnd));
    int64_t bits = type.getElementType().getIntOrFloatBitWidth();
    scratchEnd += llvm::alignTo(count * bits / 8, 64);
  }
  return lines[slot];
}

/// Keeps the elements that some strips give a reduction; `position` counts elements.
void StripNest::keepElements(ArrayRef<Value> elements, Value position) {
  unsigned operands = countAccumulators();
  bool foldsLanes = axis == laneDim;
  int64_t extent = shape[*axis];
  for (auto [number, value] : llvm::enumerate(elements)) {
    unsigned strip = number / operands, operand = number % operands;
    // Strips of one line follow each other; strips of several have a buffer each.
    unsigned slot = foldsLanes ? operand : number;
    Value buffer = getLineBuffer(slot, getElementTypeOrSelf(value.getType()),
                                 foldsLanes ? extent : extent * lanes);
    Value at = position;
    if (foldsLanes && strip != 0) {
      Value offset = emitter.getIndexConstant(strip * lanes);
      at = arith::AddIOp::create(emitter.atEnd(), group.getLoc(), position, offset);
    }
    OpBuilder &b = emitter.atEnd();
    Value stored =
        toMemory(b, group.getLoc(), value, cast<MemRefType>(buffer.getType()).getElementType());
    if (lanes > 1)
      vector::StoreOp::create(b, group.getLoc(), stored, buffer, at);
    else
      memref::StoreOp::create(b, group.getLoc(), stored, buffer, at);
  }
}

/// Folds what was kept for a reduction, from slot `first` on: `count` elements that are
/// `width` lanes wide. While their number is even the second half is combined with the
/// first; what remains is combined from the left. No vector width changes that order.
SmallVector<Value> StripNest::foldKept(tile::ReduceOp reduce, unsigned first, int64_t count,
                                       int64_t width) {
  Location loc = reduce.getLoc();
  unsigned operands = reduce.getNumOperands();
  auto loadAt = [&](Value position, int64_t size) {
    SmallVector<Value> values;
    OpBuilder &b = emitter.atEnd();
    for (unsigned operand = 0; operand < operands; ++operand) {
      Value buffer = lines[first + operand], value;
      Type stored = cast<MemRefType>(buffer.getType()).getElementType();
      if (size > 1)
        value = vector::LoadOp::create(b, loc, VectorType::get(size, stored), buffer, position);
      else
        value = memref::LoadOp::create(b, loc, buffer, position);
      values.push_back(
          fromMemory(b, loc, value, getElementTypeOrSelf(reduce.getOperand(operand).getType())));
    }
    return values;
  };
  auto combine = [&](ArrayRef<Value> left, ArrayRef<Value> right) {
    SmallVector<Value> arguments(left);
    llvm::append_range(arguments, right);
    return buildRegion(emitter.atEnd(), loc, reduce.getCombine(), arguments);
  };
  while (count % 2 == 0) {
    count /= 2;
    int64_t half = count * width;
    int64_t size = width > 1 ? width : std::min(lanes, half & -half);
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(half);
    scf::ForOp loop = emitter.beginLoop(zero, end, size);
    Value position = loop.getInductionVar();
    Value partner = arith::AddIOp::create(emitter.atEnd(), loc, position, end);
    SmallVector<Value> left = loadAt(position, size), right = loadAt(partner, size);
    SmallVector<Value> values = combine(left, right);
    OpBuilder &b = emitter.atEnd();
    for (auto [operand, value] : llvm::enumerate(values)) {
      Value buffer = lines[first + operand];
      Value stored = toMemory(b, loc, value, cast<MemRefType>(buffer.getType()).getElementType());
      if (size > 1)
        vector::StoreOp::create(b, loc, stored, buffer, position);
      else
        memref::StoreOp::create(b, loc, stored, buffer, position);
    }
    emitter.endLoop();
  }
  SmallVector<Value> result = loadAt(emitter.getIndexConstant(0), width);
  for (int64_t next = 1; next < count; ++next) {
    Value position = emitter.getIndexConstant(next * width);
    SmallVector<Value> right = loadAt(position, width);
    result = combine(result, right);
  }
  return result;
}

/// Puts the results of a reduction where the group wants them. `at` has no entry for
/// the reduced dimension.
void StripNest::storeResults(tile::ReduceOp reduce, ArrayRef<Index> at, ValueRange values) {
  for (auto [result, value] : llvm::zip_equal(reduce.getResults(), values)) {
    for (Operation *user : result.getUsers()) {
      if (auto write = dyn_cast<strips::WriteOp>(user)) {
        emitter.perform(emitter.prepareWrite(write, at, {value, emitter.getLevel()}));
        continue;
      }
      auto yield = cast<strips::YieldOp>(user);
      for (auto [operand, groupResult] : llvm::zip_equal(yield.getOperands(), group.getResults()))
        if (operand == result)
          groupResult.replaceAllUsesWith(value);
    }
  }
}

/// The operands of a reduction that increase along its axis, and of which it returns one. Indices
/// are such operands, which are compared only where values tie. In a loop along the axis, what was
/// found so far has lower indices than what comes.
SmallVector<unsigned> StripNest::findIncreasing(tile::ReduceOp reduce) {
  SmallVector<unsigned> found;
  for (auto [number, operand] : llvm::enumerate(reduce.getOperands())) {
    if (!getElementTypeOrSelf(operand.getType()).isInteger() ||
        !choosesOperand(reduce.getCombine(), number))
      continue;
    const AccessForm &form = access.getExactForm(operand);
    if (!form.isAffineAlong(*axis))
      continue;
    int64_t stride = form.strides[*axis].getConstant().value_or(0);
    if (stride > 0 && access.getRanges().isExact(operand, stride, /*isSigned=*/true))
      found.push_back(number);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Emits some strips: first everything that they compute, then what they store, so
/// that loads do not wait for stores of the same iteration. `accumulators` has those of
/// one strip after those of the other, all of them from earlier along the axis; if it is empty, it
/// is given the elements.
/// Has the operations of strips take turns, from the last ones backwards: strips differ in what
/// comes first, such as addresses. `ends` has each strip's last operation, and `before` the one in
/// front of all.
static void takeTurns(Operation *before, ArrayRef<Operation *> ends) {
  struct Turn {
    size_t untilEnd; ///< operations of the strip that follow
    size_t strip;
    Operation *op;
  };
  SmallVector<Turn> turns;
  Operation *next = before ? before->getNextNode() : &ends.front()->getBlock()->front();
  for (auto [strip, end] : llvm::enumerate(ends)) {
    size_t first = turns.size();
    for (; next != end->getNextNode(); next = next->getNextNode()) {
      if (next->getNumRegions() != 0 || mayWriteMemory(next))
        return;
      turns.push_back({0, strip, next});
    }
    for (size_t i = first; i < turns.size(); ++i)
      turns[i].untilEnd = turns.size() - 1 - i;
  }
  llvm::sort(turns, [](const Turn &x, const Turn &y) {
    return std::pair(y.untilEnd, x.strip) < std::pair(x.untilEnd, y.strip);
  });
  // Values that the first strip has computed for all of them may come too late.
  llvm::DenseMap<Operation *, size_t> places;
  for (auto [place, turn] : llvm::enumerate(turns))
    places[turn.op] = place;
  for (auto [place, turn] : llvm::enumerate(turns))
    for (Value operand : turn.op->getOperands()) {
      auto found = places.find(operand.getDefiningOp());
      if (found != places.end() && found->second > place)
        return;
    }
  Block *block = ends.front()->getBlock();
  auto end = std::next(ends.back()->getIterator());
  for (const Turn &turn : turns)
    turn.op->moveBefore(block, end);
}

void StripNest::emitStrips(ArrayRef<IndexTuple> strips, SmallVectorImpl<Value> &accumulators) {
  SmallVector<PreparedStore> stores;
  SmallVector<Value> elements;
  auto getLast = [&]() -> Operation * {
    OpBuilder at = emitter.atEnd();
    auto point = at.getInsertionPoint();
    return point == at.getInsertionBlock()->begin() ? nullptr : &*std::prev(point);
  };
  Operation *before = getLast();
  SmallVector<Operation *> ends;
  for (const IndexTuple &strip : strips) {
    auto dim = getLaneDim(strip);
    int64_t count = dim ? strip[*dim].lanes : 1;
    for (Operation *root : roots) {
      emitter.setLoc(root->getLoc());
      if (auto store = dyn_cast<tile::StoreOp>(root)) {
        stores.push_back(emitter.prepareStore(
            store, strip, emitter.evaluate(store.getValue(), strip), nonTemporal.lookup(root)));
        continue;
      }
      auto write = cast<strips::WriteOp>(root);
      stores.push_back(
          emitter.prepareWrite(write, strip, emitter.evaluate(write.getValue(), strip)));
    }
    for (tile::ReduceOp reduce : reductions) {
      emitter.setLoc(reduce.getLoc());
      for (Value operand : reduce.getOperands())
        elements.push_back(emitter.broadcast(emitter.evaluate(operand, strip), count));
    }
    ends.push_back(getLast());
  }
  bool hasChains =
      llvm::any_of(group.getBody().front(), [](Operation &op) { return hasLongChain(&op); });
  if (hasChains && strips.size() > 1 && !llvm::is_contained(ends, nullptr))
    takeTurns(before, ends);
  emitter.perform(stores);
  if (accumulators.empty()) {
    accumulators = std::move(elements);
    return;
  }
  unsigned next = 0;
  for (unsigned strip = 0; strip < strips.size(); ++strip)
    for (tile::ReduceOp reduce : reductions) {
      unsigned n = reduce.getNumOperands();
      SmallVector<Value> arguments(ArrayRef(accumulators).slice(next, n));
      llvm::append_range(arguments, ArrayRef(elements).slice(next, n));
      SmallVector<Value> combined = buildRegion(
          emitter.atEnd(), reduce.getLoc(), reduce.getCombine(), arguments, findIncreasing(reduce));
      llvm::copy(combined, accumulators.begin() + next);
      next += n;
    }
}

/// Stores of long rows may be non-temporal, if the launch is large.
void StripNest::findNonTemporalStores() {
  // A row of fewer lines would leave too many of them half written.
  constexpr int64_t kMinRowBytes = 256;
  if (!laneDim || transposedDim || group->hasAttr(strips::kUnrollAttr))
    return;
  for (Operation *root : roots) {
    auto store = dyn_cast<tile::StoreOp>(root);
    if (!store)
      continue;
    auto pointer = cast<tile::PointerType>(getElementTypeOrSelf(store.getPtr().getType()));
    // Only stores of other types have been measured to gain by it.
    if (pointer.getPointee().isBF16())
      continue;
    // Stores to one place stay in their order, which non-temporal ones do not.
    bool isOnlyOne = llvm::count_if(roots, [&](Operation *other) {
                       return isa<tile::StoreOp>(other) && other->getOperand(0) == store.getPtr();
                     }) == 1;
    if (!isOnlyOne || !access.getRun(store.getPtr(), *laneDim).isRow() ||
        shape[*laneDim] * pointer.getPointeeBytes() < kMinRowBytes ||
        !options.nonTemporalStores.mayBeNonTemporal(store))
      continue;
    OpBuilder &b = emitter.atStart();
    Value bytes = options.nonTemporalStores.buildBytes(b, store);
    Value isLarge = strips::ExceedsCachesOp::create(b, root->getLoc(), b.getI1Type(), bytes);
    if (Value isApart = options.nonTemporalStores.buildIsApart(b, store))
      isLarge = arith::AndIOp::create(b, root->getLoc(), isLarge, isApart);
    nonTemporal[root] = isLarge;
  }
}

/// The end of the loop without masks: a multiple of `step`.
Value StripNest::emitMainEnd(ArrayRef<MaskLeaf> leaves, ArrayRef<Value> bounds, int64_t step) {
  Location loc = group.getLoc();
  Value end, uniform;
  for (auto [leaf, bound] : llvm::zip_equal(leaves, bounds)) {
    if (bound) {
      end = end ? Value(arith::MinUIOp::create(emitter.atEnd(), loc, end, bound)) : bound;
      continue;
    }
    IndexTuple at(leaf.index);
    if (auto dim = getLaneDim(at))
      at[*dim] = Index();
    Value holds = emitter.evaluate(leaf.value, at).value;
    OpBuilder &b = emitter.atEnd();
    uniform = uniform ? Value(arith::AndIOp::create(b, loc, uniform, holds)) : holds;
  }
  Value all = emitter.getIndexConstant(shape[*laneDim] / step * step);
  Value steps = emitter.getIndexConstant(-step), zero = emitter.getIndexConstant(0);
  OpBuilder &b = emitter.atEnd();
  end = end ? Value(arith::AndIOp::create(b, loc, end, steps)) : all;
  if (uniform)
    end = arith::SelectOp::create(b, loc, uniform, end, zero);
  return end;
}

/// The loop over the reduced dimension inside a strip, and the results of that strip.
void StripNest::emitReducedLoop(ArrayRef<Index> strips) {
  auto tuples = [&](Value position, unsigned level) {
    SmallVector<IndexTuple> result;
    for (const Index &strip : strips) {
      IndexTuple at(index);
      if (laneDim)
        at[*laneDim] = strip;
      at[*axis] = {position, 0, 1, level};
      result.push_back(at);
    }
    return result;
  };
  SmallVector<Value> accumulators;
  int64_t begin = 0, extent = shape[*axis];
  // Several short rows are in flight at once as it is.
  constexpr unsigned kMinStrips = 8;
  bool fetchesAhead = laneDim && !inFixedOrder && strips.size() >= kMinStrips &&
                      int64_t(strips.size()) * lanes == shape[*laneDim];
  if (fetchesAhead)
    emitFirstPrefetches(emitter, group, access, *axis, index, {laneDim, transposedDim, lanes});
  if (inFixedOrder) {
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(extent);
    scf::ForOp loop = emitter.beginLoop(zero, end, 1);
    SmallVector<Value> elements;
    emitStrips(tuples(loop.getInductionVar(), emitter.getLevel()), elements);
    Value width = emitter.getIndexConstant(lanes);
    Value position =
        arith::MulIOp::create(emitter.atEnd(), group.getLoc(), loop.getInductionVar(), width);
    keepElements(elements, position);
    emitter.endLoop();
    unsigned first = 0;
    for (unsigned strip = 0; strip < strips.size(); ++strip)
      for (tile::ReduceOp reduce : reductions) {
        llvm::append_range(accumulators, foldKept(reduce, first, extent, lanes));
        first += reduce.getNumOperands();
      }
    begin = extent;
  } else if (haveNeutralElements()) {
    accumulators = makeNeutralElements(strips.size());
  } else {
    emitStrips(tuples({}, 0), accumulators);
    begin = 1;
  }
  if (begin < extent) {
    scf::ForOp loop = emitter.beginLoop(emitter.getIndexConstant(begin),
                                        emitter.getIndexConstant(shape[*axis]), 1, accumulators);
    SmallVector<Value> inner(loop.getRegionIterArgs());
    if (fetchesAhead) {
      IndexTuple at(index);
      at[*axis] = {loop.getInductionVar(), 0, 1, emitter.getLevel()};
      emitPrefetches(emitter, group, access, *axis, at, {laneDim, transposedDim, lanes});
    }
    emitStrips(tuples(loop.getInductionVar(), emitter.getLevel()), inner);
    emitter.endLoop(inner);
    accumulators.assign(loop.result_begin(), loop.result_end());
  }
  unsigned next = 0;
  for (const Index &strip : strips)
    for (tile::ReduceOp reduce : reductions) {
      IndexTuple at(index);
      if (laneDim)
        at[*laneDim] = strip;
      at.erase(at.begin() + *axis);
      emitter.setLoc(reduce.getLoc());
      unsigned n = reduce.getNumOperands();
      storeResults(reduce, at, ArrayRef(accumulators).slice(next, n));
      next += n;
    }
}

void StripNest::emitLaneLoops() {
  int64_t extent = shape[*laneDim];
  bool foldsLanes = axis == laneDim;
  bool carries = foldsLanes && !inFixedOrder;
  auto tuplesAt = [&](Value position, unsigned level, unsigned count) {
    SmallVector<IndexTuple> result;
    for (unsigned strip = 0; strip < count; ++strip) {
      IndexTuple at(index);
      at[*laneDim] = {position, int64_t(strip) * lanes, lanes, level};
      result.push_back(at);
    }
    return result;
  };

  // Masks that a bound on the lane dimension can take care of.
  SmallVector<MaskLeaf> leaves;
  SmallVector<Value> bounds; ///< null for what is uniform
  {
    IndexTuple at(index);
    at[*laneDim].lanes = lanes;
    if (axis && !foldsLanes) {
      // The index along the reduced dimension is not known yet: no mask that varies
      // there is of use here. A value that no index has stands for it.
      at[*axis] = {emitter.getIndexConstant(0), 0, 1, ~0u};
    }
    SmallVector<MaskLeaf> found;
    visitRoots(at, [&](Operation *op, ArrayRef<Index> where) {
      Value mask;
      if (auto load = dyn_cast<tile::LoadOp>(op))
        mask = load.getMask();
      else if (auto store = dyn_cast<tile::StoreOp>(op))
        mask = store.getMask();
      if (mask)
        emitter.collectMaskLeaves(mask, where, found);
    });
    // Code for the rare case that addresses overlap is short: all of it with masks.
    if (group->hasAttr(strips::kUnrollAttr))
      found.clear();
    for (MaskLeaf &leaf : found) {
      bool isKnown = llvm::none_of(leaf.index, [](const Index &i) { return i.level == ~0u; });
      if (!isKnown || llvm::is_contained(leaves, leaf))
        continue;
      Value bound;
      if (!emitter.isUniform(leaf) && !(bound = emitter.getBound(leaf, extent)))
        continue;
      leaves.push_back(leaf);
      bounds.push_back(bound);
    }
  }

  unsigned count = countAccumulators();
  SmallVector<Value> accumulators;
  int64_t begin = 0;
  unsigned copies = unroll;
  if (carries) {
    if (haveNeutralElements()) {
      accumulators = makeNeutralElements(copies);
    } else {
      emitStrips(tuplesAt({}, 0, copies), accumulators);
      begin = lanes * copies;
    }
  }
  Value lower = emitter.getIndexConstant(begin), upper = emitter.getIndexConstant(extent);
  Value mainEnd = leaves.empty() ? upper : emitMainEnd(leaves, bounds, lanes * copies);

  auto emitLoop = [&](Value from, Value to, unsigned strips, bool isRest) {
    ArrayRef<Value> inits = carries ? ArrayRef(accumulators) : ArrayRef<Value>();
    scf::ForOp loop = emitter.beginLoop(from, to, lanes * strips, inits);
    Value position = loop.getInductionVar();
    unsigned level = emitter.getLevel();
    SmallVector<Value> inner(loop.getRegionIterArgs());
    if (!isRest)
      options.fetchAhead.emit(emitter, group, position, lanes * strips);
    if (axis && !foldsLanes) {
      SmallVector<Index> indices;
      for (unsigned strip = 0; strip < strips; ++strip)
        indices.push_back({position, int64_t(strip) * lanes, lanes, level});
      emitReducedLoop(indices);
    } else {
      emitStrips(tuplesAt(position, level, strips), inner);
      if (foldsLanes && inFixedOrder)
        keepElements(inner, position);
    }
    emitter.endLoop(carries ? ValueRange(inner) : ValueRange());
    if (carries)
      accumulators.assign(loop.result_begin(), loop.result_end());
  };

  if (begin < extent) {
    emitter.assume(leaves);
    emitLoop(lower, mainEnd, copies, /*isRest=*/false);
    emitter.assumeNothing();
  }
  if (carries && copies > 1) {
    accumulators = combineCopies(accumulators, copies);
    copies = 1;
  }
  if (begin < extent && !leaves.empty()) {
    Value from = mainEnd;
    if (begin)
      from = arith::MaxUIOp::create(emitter.atEnd(), group.getLoc(), mainEnd, lower);
    emitLoop(from, upper, 1, /*isRest=*/true);
  }
  if (!foldsLanes)
    return;
  unsigned next = 0;
  for (tile::ReduceOp reduce : reductions) {
    unsigned n = reduce.getNumOperands();
    SmallVector<Value> scalars;
    if (inFixedOrder)
      scalars = foldKept(reduce, next, extent, 1);
    else
      scalars = foldLanes(emitter.atEnd(), reduce.getLoc(), reduce.getCombine(),
                          ArrayRef(accumulators).slice(next, n));
    IndexTuple at(index);
    at.erase(at.begin() + *axis);
    storeResults(reduce, at, scalars);
    next += n;
  }
  assert(next == count && "one accumulator an operand");
  (void)count;
}

void StripNest::emitOuterLoops(unsigned dim) {
  // The lane dimension and a reduced one come inside all others.
  while (dim < shape.size() &&
         (dim == laneDim || dim == axis || dim == transposedDim || shape[dim] == 1))
    ++dim;
  if (dim < shape.size()) {
    bool isLast = llvm::all_of(llvm::seq<unsigned>(dim + 1, shape.size()), [&](unsigned inner) {
      return inner == laneDim || shape[inner] == 1;
    });
    bool fetchesAhead = isLast && !group->hasAttr(strips::kUnrollAttr);
    if (fetchesAhead)
      emitFirstPrefetches(emitter, group, access, dim, index, {laneDim, transposedDim, lanes});
    scf::ForOp loop =
        emitter.beginLoop(emitter.getIndexConstant(0), emitter.getIndexConstant(shape[dim]), 1);
    index[dim] = {loop.getInductionVar(), 0, 1, emitter.getLevel()};
    if (fetchesAhead)
      emitPrefetches(emitter, group, access, dim, index, {laneDim, transposedDim, lanes});
    emitOuterLoops(dim + 1);
    emitter.endLoop();
    return;
  }
  if (transposedDim)
    return emitTransposedBlocks();
  if (laneDim)
    return emitLaneLoops();
  Index none;
  if (axis)
    return emitReducedLoop(none);
  SmallVector<Value> accumulators;
  emitStrips(index, accumulators);
}

LogicalResult StripNest::run() {
  index.assign(shape.size(), Index());
  emitter.setShortestRun(getShortestRun(options.machine));
  findNonTemporalStores();
  options.fetchAhead.collect(emitter, group, access, {laneDim, transposedDim, lanes});
  if (options.remarks) {
    remark();
    remarkAccesses(
        group, access, {laneDim, transposedDim, lanes, getShortestRun(options.machine)},
        describeNoLanes(), findNarrowLoads(),
        [&](tile::StoreOp store) { return nonTemporal.contains(store); }, options.fetchAhead);
  }
  prepareZeroRow(emitter, group, access, {laneDim, transposedDim, lanes}, scratchEnd);
  emitOuterLoops(0);
  return success();
}

LogicalResult lowerFusedGroup(strips::GroupOp group, AccessAnalysis &access,
                              const StripOptions &options, int64_t &scratchEnd) {
  return StripNest(group, access, options, scratchEnd).run();
}

} // namespace tessera
