// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ConsumerLoop.h"

#include "LayoutGraph.h"
#include "LoopFeeder.h"
#include "LoopSlice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

ReplacedOps BoxLoop::getReplaced() const {
  ReplacedOps replaced;
  for (const BoxLoad &planned : loads) {
    replaced.insert(planned.load);
    replaced.insert(planned.buffers.begin(), planned.buffers.end());
  }
  return replaced;
}

std::optional<unsigned> BoxLoop::getChannel(Value operand) const {
  Operation *buffer = skipTrans(operand).getDefiningOp();
  for (const BoxLoad &planned : loads)
    if (llvm::is_contained(planned.buffers, buffer))
      return planned.channel;
  return std::nullopt;
}

/// The channels of which the loop carries a place: one does for all that are at the same.
ArrayRef<unsigned> ConsumerLoop::getCarriedChannels() const {
  return plan.isInStep ? ArrayRef(plan.channels).take_front() : ArrayRef(plan.channels);
}

SmallVector<Value> ConsumerLoop::getPlaces() const {
  SmallVector<Value> result;
  for (unsigned channel : getCarriedChannels())
    result.append({places[channel].slot, places[channel].phase});
  return result;
}

void ConsumerLoop::setPlaces(ValueRange from) {
  for (auto [index, channel] : llvm::enumerate(plan.channels)) {
    unsigned at = plan.isInStep ? 0 : 2 * index;
    places[channel] = {from[at], from[at + 1]};
  }
}

void ConsumerLoop::moveOn(OpBuilder &builder, unsigned channel) {
  left[channel] = places[channel];
  places[channel] = channels[channel].getNext(builder, loop.getLoc(), places[channel]);
}

/// A product of the old body, with waits for the tiles that it is the first to need and
/// releases of those that it is the last to need.
void ConsumerLoop::emitDot(OpBuilder &builder, IRMapping &mapping, WarpgroupDotOp dot) {
  Location loc = dot.getLoc();
  SmallVector<unsigned, 2> used;
  for (Value operand : {Value(dot.getA()), Value(dot.getB())})
    if (std::optional<unsigned> channel = plan.getChannel(operand))
      if (!llvm::is_contained(used, *channel))
        used.push_back(*channel);
  for (unsigned channel : used)
    if (waited.insert(channel).second)
      channels[channel].waitUntilFull(builder, loc, places[channel]);
  auto copy = cast<WarpgroupDotOp>(builder.clone(*dot.getOperation(), mapping));
  if (feeder && dot == feeder->getLastProduct()) {
    copy.setIsAsync(true);
    feed(builder, mapping);
    Value sum = copy.getResult();
    auto wait = WarpgroupWaitOp::create(builder, loc, TypeRange(sum.getType()), ValueRange(sum),
                                        builder.getI32IntegerAttr(0));
    mapping.map(dot.getResult(), wait.getResult(0));
  }
  if (dot == asyncDot) {
    copy.setIsAsync(true);
    WarpgroupWaitOp::create(builder, loc, TypeRange(), ValueRange(), builder.getI32IntegerAttr(1));
    channels[used.front()].release(builder, loc, previous);
    previous = places[used.front()].slot;
    moveOn(builder, used.front());
    return;
  }
  for (unsigned channel : used) {
    bool isLast =
        llvm::none_of(loop.getBody()->getOps<WarpgroupDotOp>(), [&](WarpgroupDotOp other) {
          return dot->isBeforeInBlock(other) && (plan.getChannel(other.getA()) == channel ||
                                                 plan.getChannel(other.getB()) == channel);
        });
    if (!isLast)
      continue;
    channels[channel].release(builder, loc, places[channel].slot);
    moveOn(builder, channel);
  }
}

/// Orders the copies of later iterations, to slots that have been left: in this iteration, or
/// in the one before.
void ConsumerLoop::feed(OpBuilder &builder, IRMapping &mapping) {
  SmallVector<LeftPlace> last;
  for (unsigned number : plan.channels) {
    const Channel &channel = channels[number];
    if (left.contains(number))
      last.push_back({number, left.lookup(number), channel.getNumSlots()});
    else
      last.push_back({number, channel.getPrevious(builder, loop.getLoc(), places[number]),
                      channel.getNumSlots() - 1});
  }
  feeder->emitNext(builder, mapping.lookup(loop.getInductionVar()), last);
}

void ConsumerLoop::emitTurn(OpBuilder &builder, bool isBegin) {
  if (!plan.takesTurns)
    return;
  if (isBegin)
    PingPongWaitOp::create(builder, loop.getLoc());
  else
    PingPongPassOp::create(builder, loop.getLoc());
}

/// The product that is put off, of the iteration before.
void ConsumerLoop::emitLateDot(OpBuilder &builder) {
  Location loc = lateDot.getLoc();
  unsigned channel = *plan.getChannel(lateDot.getB());
  IRMapping mapping;
  SmallVector<MemDescTransOp> turns;
  Value buffer = lateDot.getB();
  for (; auto trans = buffer.getDefiningOp<MemDescTransOp>(); buffer = trans.getBuffer())
    turns.push_back(trans);
  for (const BoxLoad &planned : plan.loads)
    if (llvm::is_contained(planned.buffers, buffer.getDefiningOp()))
      mapping.map(buffer,
                  channels[channel].getTile(builder, loc, planned.ring, places[channel].slot));
  for (MemDescTransOp trans : llvm::reverse(turns))
    builder.clone(*trans.getOperation(), mapping);
  mapping.map(lateDot.getA(), factor);
  mapping.map(lateDot.getAcc(), values[lateIndex]);
  auto copy = cast<WarpgroupDotOp>(builder.clone(*lateDot.getOperation(), mapping));
  copy.setIsAsync(true);
  begun = copy.getResult();
}

/// Waits for it, if it is under way, and its slot is empty then. Before that, for the tile
/// that the next one takes: a loop, over which no instruction is moved, so that threads do not
/// wait before they have computed what the next one takes, too.
void ConsumerLoop::finishLateDot(OpBuilder &builder) {
  Location loc = lateDot.getLoc();
  unsigned channel = *plan.getChannel(lateDot.getB());
  ChannelPlace place = places[channel];
  if (begun)
    moveOn(builder, channel);
  channels[channel].waitUntilFull(builder, loc, places[channel]);
  if (!begun)
    return;
  waitForLateDot(builder);
  channels[channel].release(builder, loc, place.slot);
}

void ConsumerLoop::waitForLateDot(OpBuilder &builder) {
  values[lateIndex] = WarpgroupWaitOp::create(builder, lateDot.getLoc(), TypeRange(begun.getType()),
                                              ValueRange(begun), builder.getI32IntegerAttr(0))
                          .getResult(0);
  begun = Value();
}

/// Whether an op of the old body needs the sum of the product that is put off, or takes the
/// place of its factor.
bool ConsumerLoop::needsLateDot(Operation &op) {
  if (&op == lateDot.getA().getDefiningOp())
    return true;
  Value sum = loop.getRegionIterArg(kept[lateIndex]);
  return llvm::any_of(sum.getUsers(), [&](Operation *user) { return op.isAncestor(user); });
}

/// The product of this iteration that the other one is put behind.
void ConsumerLoop::emitEarlyDot(OpBuilder &builder, IRMapping &mapping, WarpgroupDotOp dot) {
  Location loc = dot.getLoc();
  unsigned channel = *plan.getChannel(dot.getB());
  bool isFirst = !factor;
  channels[channel].waitUntilFull(builder, loc, places[channel]);
  emitTurn(builder, /*isBegin=*/true);
  auto copy = cast<WarpgroupDotOp>(builder.clone(*dot.getOperation(), mapping));
  copy.setIsAsync(true);
  if (!isFirst)
    emitLateDot(builder);
  emitTurn(builder, /*isBegin=*/false);
  Value sum = copy.getResult();
  mapping.map(dot.getResult(),
              WarpgroupWaitOp::create(builder, loc, TypeRange(sum.getType()), ValueRange(sum),
                                      builder.getI32IntegerAttr(isFirst ? 0 : 1))
                  .getResult(0));
  channels[channel].release(builder, loc, places[channel].slot);
  moveOn(builder, channel);
}

/// What the old body computes in one iteration, with the tiles of this place.
void ConsumerLoop::emitBody(OpBuilder &builder, IRMapping &mapping) {
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  waited.clear();
  left.clear();
  bool isReady = false;
  for (const BoxLoad &planned : plan.loads) {
    if (lateDot && plan.getChannel(lateDot.getB()) == planned.channel)
      continue;
    Value tile = channels[planned.channel].getTile(builder, planned.load->getLoc(), planned.ring,
                                                   places[planned.channel].slot);
    for (LocalAllocOp buffer : planned.buffers)
      mapping.map(buffer->getResult(0), tile);
  }
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (replaced.contains(&op) || !live.contains(&op) || &op == lateDot)
      continue;
    // The end of a buffer that is no more.
    if (isa<LocalDeallocOp>(op) && replaced.contains(op.getOperand(0).getDefiningOp()))
      continue;
    // The product that is put off looks at its tile where it is begun.
    if (auto trans = dyn_cast<MemDescTransOp>(op))
      if (replaced.contains(skipTrans(trans).getDefiningOp()) &&
          !mapping.contains(trans.getBuffer()))
        continue;
    if (lateDot && !isReady && needsLateDot(op)) {
      isReady = true;
      finishLateDot(builder);
      mapping.map(loop.getRegionIterArg(kept[lateIndex]), values[lateIndex]);
    }
    auto dot = dyn_cast<WarpgroupDotOp>(op);
    if (dot && lateDot)
      emitEarlyDot(builder, mapping, dot);
    else if (dot)
      emitDot(builder, mapping, dot);
    else
      builder.clone(op, mapping);
  }
  if (feeder && !feeder->getLastProduct())
    feed(builder, mapping);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  if (lateDot) {
    mapping.map(lateDot.getResult(), mapping.lookupOrDefault(lateDot.getAcc()));
    factor = mapping.lookup(lateDot.getA());
  }
  for (auto [index, value] : llvm::zip_equal(kept, values))
    value = mapping.lookupOrDefault(yield.getOperand(index));
}

/// The loop up to `end`, or where a product is put off, that of all iterations but the first.
/// The values and places are then its results.
void ConsumerLoop::emitLoop(OpBuilder &builder, Value end) {
  Location loc = loop.getLoc();
  SmallVector<Value> inits(values);
  if (factor)
    inits.push_back(factor);
  if (previous)
    inits.push_back(previous);
  llvm::append_range(inits, getPlaces());
  auto to = scf::ForOp::create(builder, loc, loop.getLowerBound(), end, loop.getStep(), inits,
                               /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  to->removeAttr(kStagesAttr);
  if (!to.getBody()->empty())
    to.getBody()->back().erase();

  unsigned count = kept.size();
  auto take = [&](ValueRange from) {
    values.assign(from.begin(), from.begin() + count);
    if (factor)
      factor = from[count];
    if (previous)
      previous = from[count];
    setPlaces(from.take_back(2 * getCarriedChannels().size()));
  };
  OpBuilder inside = OpBuilder::atBlockEnd(to.getBody());
  take(to.getRegionIterArgs());
  IRMapping mapping;
  Value variable = to.getInductionVar();
  // The first iteration stands before the loop.
  if (factor)
    variable = arith::AddIOp::create(inside, loc, variable, loop.getStep());
  mapping.map(loop.getInductionVar(), variable);
  for (auto [index, value] : llvm::zip_equal(kept, values))
    mapping.map(loop.getRegionIterArg(index), value);
  emitBody(inside, mapping);
  SmallVector<Value> yielded(values);
  if (factor)
    yielded.push_back(factor);
  if (previous)
    yielded.push_back(previous);
  llvm::append_range(yielded, getPlaces());
  scf::YieldOp::create(inside, loc, yielded);
  take(to.getResults());
}

/// The variable of the last iteration of a loop that runs.
Value ConsumerLoop::emitLast(OpBuilder &builder) {
  Location loc = loop.getLoc();
  Value way = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
  Value one = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(way.getType(), 1));
  way = arith::SubIOp::create(builder, loc, way, one);
  Value trips = arith::DivUIOp::create(builder, loc, way, loop.getStep());
  way = arith::MulIOp::create(builder, loc, trips, loop.getStep());
  return arith::AddIOp::create(builder, loc, loop.getLowerBound(), way);
}

/// The loop, where it is known to run.
void ConsumerLoop::emitGuarded(OpBuilder &builder) {
  Location loc = loop.getLoc();
  if (lateDot) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), loop.getLowerBound());
    for (auto [index, value] : llvm::zip_equal(kept, values))
      mapping.map(loop.getRegionIterArg(index), value);
    emitBody(builder, mapping);
    emitLoop(builder, emitLast(builder));
    emitTurn(builder, /*isBegin=*/true);
    emitLateDot(builder);
    emitTurn(builder, /*isBegin=*/false);
    waitForLateDot(builder);
    unsigned channel = *plan.getChannel(lateDot.getB());
    channels[channel].release(builder, loc, places[channel].slot);
    moveOn(builder, channel);
    return;
  }
  if (asyncDot)
    previous = channels[plan.channels.front()].getNoSlot(builder, loc);
  emitLoop(builder, loop.getUpperBound());
  if (!asyncDot)
    return;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (auto [index, value] : llvm::zip_equal(kept, values))
    if (yield.getOperand(index) == asyncDot.getResult())
      value = WarpgroupWaitOp::create(builder, loc, TypeRange(value.getType()), ValueRange(value),
                                      builder.getI32IntegerAttr(0))
                  .getResult(0);
  channels[plan.channels.front()].release(builder, loc, previous);
}

void ConsumerLoop::rewrite() {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  kept = getLiveCarried(loop, replaced);
  for (unsigned index : kept)
    values.push_back(loop.getInitArgs()[index]);
  if (lateDot) {
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (auto [place, index] : llvm::enumerate(kept))
      if (yield.getOperand(index) == lateDot.getResult())
        lateIndex = place;
  }
  if (feeder)
    feeder->emitFirst(builder, places);
  if (!asyncDot && !lateDot) {
    emitGuarded(builder);
  } else {
    // Where a loop that does not run joins one that does, sums must not be under way.
    auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value runs =
        arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
    SmallVector<Value> before(values);
    llvm::append_range(before, getPlaces());
    auto guarded = scf::IfOp::create(builder, loc, ValueRange(before).getTypes(), runs,
                                     /*withElseRegion=*/true);
    guarded->setAttr(kIsLikelyAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(guarded.elseBlock());
    // Something to do, or what the sums are then would be set on the way to the loop, too.
    WarpgroupWaitOp::create(builder, loc, TypeRange(), ValueRange(), builder.getI32IntegerAttr(0));
    scf::YieldOp::create(builder, loc, before);
    builder.setInsertionPointToStart(guarded.thenBlock());
    emitGuarded(builder);
    SmallVector<Value> after(values);
    llvm::append_range(after, getPlaces());
    scf::YieldOp::create(builder, loc, after);
    values = llvm::to_vector_of<Value>(guarded.getResults().take_front(kept.size()));
    setPlaces(guarded.getResults().drop_front(kept.size()));
  }
  for (auto [index, value] : llvm::zip_equal(kept, values))
    loop.getResult(index).replaceAllUsesWith(value);
  loop.erase();
}
