// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScheduledLoop.h"

#include "Layouts/LayoutGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

void KernelRings::emitCopies(OpBuilder &builder, const LoopSchedule &schedule,
                             const ScheduledChannel &channel, ChannelPlace place,
                             IRMapping mapping) const {
  const Channel &rings = channels[getIndex(channel)];
  Value full = rings.beginToFill(builder, schedule.getLoop().getLoc(), place);
  for (unsigned index : channel.copies)
    emitCopy(builder, schedule.getCopies()[index], rings, place.slot, full, mapping);
}

void KernelRings::emitCopy(OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                           Value slot, Value full, IRMapping mapping) const {
  tile::LoadOp load = copy.load;
  const BoxAccess &box = boxes.find(load)->second;
  Location at = load.getLoc();
  SmallVector<Value> coordinates;
  for (unsigned dim = 0; dim < box.getDims().size(); ++dim)
    coordinates.push_back(box.emitCoordinate(builder, at, dim, mapping));
  Value tile = channel.getTile(builder, at, copy.ring, slot);
  auto made = TMALoadOp::create(builder, at, mapping.lookupOrDefault(maps.lookup(load)),
                                coordinates, tile, full, copy.isMulticast);
  CopyHints::of(load).attachTo(made);
}

static Value makeNumber(OpBuilder &builder, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

static Value makeSlot(OpBuilder &builder, Location loc, unsigned slot) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(slot));
}

//===----------------------------------------------------------------------===//
// What the new loop carries
//===----------------------------------------------------------------------===//

/// In which stage a variable of the loop gets its next value.
int ScheduledLoop::getYieldedStage(unsigned index) const {
  Value value = scf::ForOp(loop).getYieldedValues()[index];
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == scf::ForOp(loop).getBody() ? schedule.getStage(value) : 0;
}

ScheduledLoop::AsyncRings *ScheduledLoop::getAsyncRings(unsigned channel) {
  for (AsyncRings &rings : async)
    if (rings.channel == channel)
      return &rings;
  return nullptr;
}

/// Count the rings that cp.async fills.
unsigned ScheduledLoop::countAsync() const {
  return llvm::count_if(async, [](const AsyncRings &rings) { return !rings.isByThreads; });
}

void ScheduledLoop::planCarried() {
  Block *body = loop.getBody();
  kept = getLiveCarried(loop, schedule.getReplaced());
  for (unsigned index : kept)
    values.push_back(loop.getInitArgs()[index]);
  inPlace.resize(kept.size());
  // Which values each stage takes from another one.
  SmallVector<std::pair<Operation *, Value>> late, own;
  for (const ScheduleEvent &event : schedule.getEvents()) {
    if (event.kind != ScheduleEvent::Op || schedule.getReplaced().contains(event.op))
      continue;
    int stage = schedule.getOp(event.op).stage;
    event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (stage >= 0 && operand.getParentRegion() == &loop.getRegion() &&
            operand != loop.getInductionVar() &&
            !(isa<MemDescType>(operand.getType()) && schedule.getCopy(operand)))
          (stage > 0 ? late : own).push_back({event.op, operand});
    });
  }
  auto isUsedLate = [&](Value value) {
    return llvm::any_of(late, [&](const auto &use) { return use.second == value; });
  };
  for (auto [place, index] : llvm::enumerate(kept)) {
    if (getYieldedStage(index) <= 0 || isUsedLate(loop.getRegionIterArg(index)))
      continue;
    // The accumulator of the dot that makes the variable is carried where its result was.
    auto dot = loop.getYieldedValues()[index].getDefiningOp<AsyncDotOp>();
    Operation *acc = dot ? dot.getAcc().getDefiningOp() : nullptr;
    if (acc && acc->getBlock() == body && schedule.getStage(dot.getAcc()) == 0 &&
        !llvm::is_contained(inPlace, dot.getAcc()))
      inPlace[place] = dot.getAcc();
  }
  auto add = [&](Value value, int stage) {
    if (!llvm::is_contained(crossing, std::pair<Value, int>(value, stage)))
      crossing.push_back({value, stage});
  };
  for (auto [user, value] : late) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (getYieldedStage(argument.getArgNumber() - 1) == 0)
        add(value, 0);
    } else if (schedule.getStage(value) == 0 && !llvm::is_contained(inPlace, value)) {
      add(value, 0);
    }
  }
  for (auto [user, value] : own)
    if (value.getDefiningOp() && schedule.getStage(value) < 0)
      add(value, -1);
  crossed.resize(crossing.size());
}

SmallVector<Value> ScheduledLoop::getPlaces() const {
  SmallVector<Value> result;
  for (unsigned channel : carriedPlaces) {
    ChannelPlace place = places[kernel.getIndex(schedule.getChannels()[channel])];
    result.append({place.slot, place.phase});
  }
  return result;
}

void ScheduledLoop::setPlaces(ValueRange from) {
  for (auto [index, channel] : llvm::enumerate(byTMA)) {
    unsigned at = carriedPlaces.size() == byTMA.size() ? 2 * index : 0;
    getPlace(channel) = {from[at], from[at + 1]};
  }
}

SmallVector<Value> ScheduledLoop::getCarried() const {
  SmallVector<Value> result(values);
  for (const AsyncRings &rings : async)
    llvm::append_range(result, rings.ahead);
  llvm::append_range(result, crossed);
  for (const auto &[channel, slot] : previous)
    result.push_back(slot);
  for (const AsyncRings &rings : async)
    result.append({rings.into, rings.from});
  llvm::append_range(result, getPlaces());
  return result;
}

void ScheduledLoop::setCarried(ValueRange from) {
  auto take = [&](Value &value) {
    value = from.front();
    from = from.drop_front();
  };
  llvm::for_each(values, take);
  for (AsyncRings &rings : async)
    llvm::for_each(rings.ahead, take);
  llvm::for_each(crossed, take);
  for (auto &[channel, slot] : previous)
    take(slot);
  for (AsyncRings &rings : async) {
    take(rings.into);
    take(rings.from);
  }
  setPlaces(from);
}

//===----------------------------------------------------------------------===//
// Numbers of iterations, slots and places
//===----------------------------------------------------------------------===//

Value ScheduledLoop::emitRuns(OpBuilder &builder) {
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(builder, getLoc(), predicate, loop.getLowerBound(),
                               loop.getUpperBound());
}

/// From an iteration to the one `ahead` of it. Any step will do for the next one.
Value ScheduledLoop::emitDistance(OpBuilder &builder, int64_t ahead) {
  if (std::optional<int64_t> step = getSmallStep(loop))
    return makeNumber(builder, getLoc(), loop.getStep().getType(), *step * ahead);
  assert(ahead == 1 && "copies further ahead are of loops with small steps");
  return loop.getStep();
}

/// True if there is an iteration `ahead` after that of `variable`, which exists. The difference to
/// the bound is positive, and so is compared as an unsigned number.
Value ScheduledLoop::emitHasMore(OpBuilder &builder, Value variable, unsigned ahead) {
  Location loc = getLoc();
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), variable);
  Value way = emitDistance(builder, ahead);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, way);
}

Value ScheduledLoop::emitAhead(OpBuilder &builder, Value variable, int ahead) {
  return arith::AddIOp::create(builder, getLoc(), variable, emitDistance(builder, ahead));
}

/// Select the value of the next iteration, for ops of stage -1. After the last iteration there may
/// be nothing to load, and `own`, the value of that iteration, is used again.
Value ScheduledLoop::emitUnlessLast(OpBuilder &builder, Value next, Value own) {
  if (!schedule.hasLoadsAhead() || next == own || !own.getType().isIntOrIndex())
    return next;
  Value hasMore = emitHasMore(builder, current.variable, 1);
  return arith::SelectOp::create(builder, getLoc(), hasMore, next, own);
}

/// The loop's variable for ops of a stage.
Value ScheduledLoop::emitVariable(OpBuilder &builder, int stage) {
  if (stage == 0)
    return current.variable;
  if (stage > 0)
    return current.ofLate;
  Value next = arith::AddIOp::create(builder, getLoc(), current.variable, loop.getStep());
  return emitUnlessLast(builder, next, current.variable);
}

/// The variable of the last iteration of a loop that runs.
Value ScheduledLoop::emitLast(OpBuilder &builder) {
  Location loc = getLoc();
  Value way = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
  Value one = makeNumber(builder, loc, way.getType(), 1);
  way = arith::SubIOp::create(builder, loc, way, one);
  Value steps = arith::DivUIOp::create(builder, loc, way, loop.getStep());
  way = arith::MulIOp::create(builder, loc, steps, loop.getStep());
  return arith::AddIOp::create(builder, loc, loop.getLowerBound(), way);
}

Value ScheduledLoop::emitNextSlot(OpBuilder &builder, Value slot, unsigned slots, bool isNext) {
  Location loc = getLoc();
  Value one = makeSlot(builder, loc, 1);
  if (isNext) {
    Value next = arith::AddIOp::create(builder, loc, slot, one);
    Value isEnd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                                        makeSlot(builder, loc, slots));
    return arith::SelectOp::create(builder, loc, isEnd, makeSlot(builder, loc, 0), next);
  }
  Value before = arith::SubIOp::create(builder, loc, slot, one);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot,
                                        makeSlot(builder, loc, 0));
  return arith::SelectOp::create(builder, loc, isFirst, makeSlot(builder, loc, slots - 1), before);
}

/// Where a TMA channel is for ops of a stage.
ChannelPlace ScheduledLoop::emitPlace(OpBuilder &builder, unsigned channel, int stage) {
  const ScheduledChannel &of = schedule.getChannels()[channel];
  auto found = left.find(channel);
  bool hasLeft = found != left.end();
  if (hasLeft && stage == of.base - 1)
    return getPlace(channel);
  ChannelPlace place = hasLeft ? found->second : getPlace(channel);
  if (stage == of.base - 1)
    return getRings(channel).getNext(builder, getLoc(), place);
  for (int at = of.base; at < stage; ++at)
    place = getRings(channel).getPrevious(builder, getLoc(), place);
  return place;
}

/// The slot that ops of a stage read.
Value ScheduledLoop::emitSlot(OpBuilder &builder, unsigned channel, int stage) {
  AsyncRings *rings = getAsyncRings(channel);
  if (!rings)
    return emitPlace(builder, channel, stage).slot;
  unsigned slots = schedule.getChannels()[channel].slots;
  if (stage < 0)
    return emitNextSlot(builder, rings->from, slots, /*isNext=*/true);
  return stage > 0 ? emitNextSlot(builder, rings->from, slots, /*isNext=*/false) : rings->from;
}

void ScheduledLoop::moveOn(OpBuilder &builder, unsigned channel) {
  if (left.contains(channel))
    return;
  left[channel] = getPlace(channel);
  getPlace(channel) = getRings(channel).getNext(builder, getLoc(), getPlace(channel));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The copies of one iteration; the addresses are then those of the next one.
void ScheduledLoop::emitAsyncCopies(OpBuilder &builder, AsyncRings &rings, Value variable,
                                    Value condition, Value slot) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variable);
  rings.addresses.emit(builder, mapping, condition, rings.ahead);
  for (auto [number, index] : llvm::enumerate(schedule.getChannels()[rings.channel].copies)) {
    tile::LoadOp load = schedule.getCopies()[index].load;
    Value mask = load.getMask() ? mapping.lookupOrDefault(load.getMask()) : Value();
    Value buffer = MemDescIndexOp::create(builder, load.getLoc(), rings.rings[number], slot);
    if (rings.isByThreads) {
      auto exists = scf::IfOp::create(builder, load.getLoc(), condition, /*withElseRegion=*/false);
      OpBuilder inside = exists.getThenBodyBuilder();
      Value tile = inside.clone(*load, mapping)->getResult(0);
      LocalStoreOp::create(inside, load.getLoc(), tile, buffer);
      continue;
    }
    // Where tiles have layouts, threads hold elements in pairs, which a branch would take apart.
    Value isCopied = condition;
    if (getLayoutAttr(load.getType())) {
      auto type = cast<RankedTensorType>(load.getType()).clone(builder.getI1Type());
      Value all = tile::SplatOp::create(builder, load.getLoc(), type, condition);
      mask = mask ? arith::AndIOp::create(builder, load.getLoc(), mask, all) : all;
      isCopied = Value();
    }
    auto copy = AsyncCopyOp::create(builder, load.getLoc(), mapping.lookupOrDefault(load.getPtr()),
                                    buffer, mask, isCopied);
    CopyHints::of(load).attachTo(copy);
  }
}

/// Rings for cp.async.
void ScheduledLoop::emitRings(OpBuilder &builder) {
  for (auto [index, channel] : llvm::enumerate(schedule.getChannels())) {
    if (channel.isByTMA()) {
      byTMA.push_back(index);
      continue;
    }
    AsyncRings &rings = async.emplace_back();
    rings.channel = index;
    rings.isByThreads = channel.isByThreads();
    rings.addresses = LoopSlice(loop);
    for (unsigned number : channel.copies) {
      const ScheduledCopy &copy = schedule.getCopies()[number];
      tile::LoadOp load = copy.load;
      Value other = rings.isByThreads ? load.getOther() : Value();
      for (Value operand : {load.getPtr(), load.getMask(), other})
        if (operand)
          (void)rings.addresses.add(operand);
      rings.rings.push_back(LocalAllocOp::create(
          builder, load.getLoc(), MemDescType(copy.tile).getRing(channel.slots), Value()));
    }
    for (unsigned carried : rings.addresses.getCarried())
      rings.ahead.push_back(loop.getInitArgs()[carried]);
  }
  carriedPlaces = byTMA;
  if (kernel.isInStep && byTMA.size() > 1)
    carriedPlaces.truncate(1);
}

/// The prologue of cp.async: a group of copies for each of the first iterations.
void ScheduledLoop::emitFirstCopies(OpBuilder &builder, Value runs) {
  Location loc = getLoc();
  int most = 0;
  for (const AsyncRings &rings : async)
    most = std::max(most, schedule.getChannels()[rings.channel].ahead);
  for (int group = 0; group < most; ++group) {
    for (AsyncRings &rings : async) {
      const ScheduledChannel &channel = schedule.getChannels()[rings.channel];
      int iteration = group - (most - channel.ahead);
      if (iteration < 0)
        continue;
      Value variable = loop.getLowerBound(), condition = runs;
      if (iteration > 0) {
        condition =
            arith::AndIOp::create(builder, loc, runs, emitHasMore(builder, variable, iteration));
        variable = emitAhead(builder, variable, iteration);
      }
      emitAsyncCopies(builder, rings, variable, condition,
                      makeSlot(builder, loc, iteration % channel.slots));
    }
    if (countAsync() != 0)
      AsyncCommitOp::create(builder, loc);
  }
  for (AsyncRings &rings : async) {
    const ScheduledChannel &channel = schedule.getChannels()[rings.channel];
    rings.into = makeSlot(builder, loc, channel.ahead % channel.slots);
    rings.from = makeSlot(builder, loc, 0);
  }
}

/// The prologue of copies by TMA that the program's first thread begins.
void ScheduledLoop::emitFirstTMACopies(OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = getLoc();
  int most = 0;
  for (unsigned channel : byTMA)
    most = std::max(most, schedule.getChannels()[channel].ahead);
  if (most == 0)
    return;
  auto alone = OneThreadOp::create(builder, loc, emitRuns(builder));
  builder.createBlock(&alone.getBody());
  llvm::SmallDenseMap<unsigned, ChannelPlace> next;
  for (int iteration = 0; iteration < most; ++iteration) {
    if (iteration > 0) {
      auto branch =
          scf::IfOp::create(builder, loc, emitHasMore(builder, loop.getLowerBound(), iteration));
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    for (unsigned channel : byTMA) {
      const ScheduledChannel &of = schedule.getChannels()[channel];
      if (iteration >= of.ahead)
        continue;
      auto [place, isNew] = next.try_emplace(channel, getPlace(channel));
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), emitAhead(builder, loop.getLowerBound(), iteration));
      kernel.emitCopies(builder, schedule, of, place->second, mapping);
      place->second = getRings(channel).getNext(builder, loc, place->second);
    }
  }
}

/// Copies by TMA for later iterations, into slots that have been left: in this iteration, or in
/// one before.
void ScheduledLoop::emitTMACopies(OpBuilder &builder, ArrayRef<unsigned> channels) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = getLoc();
  struct Copied {
    int ahead;
    unsigned channel;
    ChannelPlace place;
  };
  SmallVector<Copied> copies;
  for (unsigned channel : channels) {
    const ScheduledChannel &of = schedule.getChannels()[channel];
    copies.push_back(
        {of.ahead, channel, emitPlace(builder, channel, static_cast<int>(of.slots) - of.ahead)});
  }
  // Copies are in the order in which iterations need them.
  llvm::sort(copies, [](const Copied &a, const Copied &b) {
    return std::tie(a.ahead, a.channel) < std::tie(b.ahead, b.channel);
  });
  int known = 0;
  for (const Copied &copy : copies) {
    if (copy.ahead != known) {
      Value isThere = emitHasMore(builder, current.variable, copy.ahead);
      if (known == 0) {
        auto alone = OneThreadOp::create(builder, loc, isThere);
        builder.createBlock(&alone.getBody());
      } else {
        auto branch = scf::IfOp::create(builder, loc, isThere);
        builder.setInsertionPointToStart(branch.thenBlock());
      }
      known = copy.ahead;
    }
    // The next round of the slot.
    Value phase = arith::XOrIOp::create(builder, loc, copy.place.phase, makeSlot(builder, loc, 1));
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), emitAhead(builder, current.variable, copy.ahead));
    kernel.emitCopies(builder, schedule, schedule.getChannels()[copy.channel],
                      {copy.place.slot, phase}, mapping);
  }
}

void ScheduledLoop::emitCopies(OpBuilder &builder, ArrayRef<unsigned> channels) {
  SmallVector<unsigned> ofTMA;
  for (unsigned channel : channels) {
    AsyncRings *rings = getAsyncRings(channel);
    if (!rings) {
      ofTMA.push_back(channel);
      continue;
    }
    if (!hasMet && needsBarrier())
      BarrierOp::create(builder, getLoc());
    hasMet = true;
    int ahead = schedule.getChannels()[channel].ahead;
    Value later = emitAhead(builder, current.variable, ahead);
    Value hasMore = emitHasMore(builder, current.variable, ahead);
    emitAsyncCopies(builder, *rings, later, hasMore, rings->into);
    // One group an iteration.
    if (!rings->isByThreads && ++filled == countAsync())
      AsyncCommitOp::create(builder, getLoc());
  }
  if (!ofTMA.empty())
    emitTMACopies(builder, ofTMA);
}

/// True if all warps have to meet before copies by cp.async. tilegpu-insert-barriers takes a dot to
/// read where it begins. Where a warp waits for it later on, in the iteration before the copy, a
/// barrier in between tells nothing of what other warps' dots still read.
bool ScheduledLoop::needsBarrier() const {
  auto getEvent = [&](ScheduleEvent::Kind kind, Operation *op) {
    return llvm::find_if(schedule.getEvents(), [&](const ScheduleEvent &event) {
      return event.kind == kind && event.op == op;
    });
  };
  for (const AsyncRings &rings : async) {
    const ScheduledChannel &channel = schedule.getChannels()[rings.channel];
    for (const ChannelReader &reader : channel.readers) {
      if (schedule.getReplaced().contains(reader.op) || !schedule.getOp(reader.op).isAsync())
        continue;
      const ScheduledOp &dot = schedule.getOp(reader.op);
      int iterations = channel.ahead - static_cast<int>(channel.slots) + dot.stage +
                       static_cast<int>(dot.inFlight);
      bool isWaitedForAtOnce =
          dot.inFlight != 0 && getEvent(ScheduleEvent::DotWait, dot.op) ==
                                   std::next(getEvent(ScheduleEvent::Op, dot.op));
      if (iterations == -1 && !isWaitedForAtOnce)
        return true;
    }
  }
  return false;
}

/// Waits for the copies that this iteration reads, or that the prologue does.
void ScheduledLoop::emitWait(OpBuilder &builder, bool isFirst) {
  int pending = std::numeric_limits<int>::max();
  for (const AsyncRings &rings : async) {
    if (rings.isByThreads)
      continue;
    const ScheduledChannel &channel = schedule.getChannels()[rings.channel];
    int stage = channel.readers.empty() ? 0 : channel.getFirstReader().stage;
    if (isFirst && stage >= 0)
      continue;
    pending = std::min(pending, channel.ahead - 1 + (isFirst ? 0 : stage));
  }
  if (pending == std::numeric_limits<int>::max())
    return;
  AsyncWaitOp::create(builder, getLoc(), pending);
  if (asyncDot)
    ProxyFenceOp::create(builder, getLoc());
}

//===----------------------------------------------------------------------===//
// Ops of an iteration
//===----------------------------------------------------------------------===//

/// A slot of a ring, and what looks at it in another way, for ops of a stage.
Value ScheduledLoop::emitView(OpBuilder &builder, Value buffer, int stage) {
  IRMapping &mapping = getMapping(stage);
  if (Value known = mapping.lookupOrNull(buffer))
    return known;
  Operation *op = buffer.getDefiningOp();
  if (auto trans = dyn_cast<MemDescTransOp>(op)) {
    emitView(builder, trans.getBuffer(), stage);
    return builder.clone(*op, mapping)->getResult(0);
  }
  const ScheduledCopy &copy = *schedule.getCopy(buffer);
  tile::LoadOp load = copy.load;
  Value slot = emitSlot(builder, copy.channel, stage);
  AsyncRings *rings = getAsyncRings(copy.channel);
  Value view = rings ? MemDescIndexOp::create(builder, load.getLoc(), rings->rings[copy.ring], slot)
                           .getResult()
                     : getRings(copy.channel).getTile(builder, load.getLoc(), copy.ring, slot);
  for (LocalAllocOp same : copy.buffers)
    mapping.map(same.getResult(), view);
  return view;
}

/// Map an operand of an op of a stage, if its mapping does not have it yet.
void ScheduledLoop::mapOperand(OpBuilder &builder, Value value, int stage) {
  IRMapping &mapping = getMapping(stage);
  if (mapping.contains(value) || value.getParentRegion() != &loop.getRegion())
    return;
  if (isa<MemDescType>(value.getType()) && schedule.getCopy(value)) {
    emitView(builder, value, stage);
    return;
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return;
  if (argument == loop.getInductionVar()) {
    mapping.map(value, emitVariable(builder, stage));
    return;
  }
  if (stage >= 0)
    return;
  // The value at the beginning of the next iteration.
  Value next = getMapping(0).lookupOrDefault(loop.getYieldedValues()[argument.getArgNumber() - 1]);
  mapping.map(value, emitUnlessLast(builder, next, getMapping(0).lookupOrDefault(value)));
}

/// A variable that a late op makes is there for ops of stage 0 from then on.
void ScheduledLoop::mapCarried(Operation *op) {
  if (schedule.getOp(op).stage != 1)
    return;
  for (auto [index, value] : llvm::enumerate(loop.getYieldedValues()))
    if (value.getDefiningOp() == op)
      getMapping(0).map(loop.getRegionIterArg(index), getMapping(1).lookup(value));
}

void ScheduledLoop::emitOp(OpBuilder &builder, Operation *op) {
  const ScheduledOp &node = schedule.getOp(op);
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      mapOperand(builder, operand, node.stage);
  });
  Operation *copy = builder.clone(*op, getMapping(node.stage));
  if (node.isAsync()) {
    cast<AsyncOpInterface>(copy).setInFlight();
    begun.push_back(op);
    return;
  }
  mapCarried(op);
  finishUse(builder, op);
}

/// Where a tile was loaded: its slot, and the tile itself for who computes with it.
void ScheduledLoop::emitTile(OpBuilder &builder, Operation *load) {
  for (const ScheduledCopy &copy : schedule.getCopies()) {
    AsyncRings *rings = copy.load == load ? getAsyncRings(copy.channel) : nullptr;
    if (!rings)
      continue;
    ArrayRef<ChannelReader> readers = schedule.getChannels()[copy.channel].readers;
    if (llvm::none_of(readers, [](const ChannelReader &reader) { return reader.stage == 0; }))
      return;
    Value buffer = MemDescIndexOp::create(builder, load->getLoc(), rings->rings[copy.ring],
                                          emitSlot(builder, copy.channel, /*stage=*/0));
    for (LocalAllocOp same : copy.buffers)
      getMapping(0).map(same.getResult(), buffer);
    if (llvm::any_of(readers, [&](const ChannelReader &reader) { return reader.op == load; }))
      getMapping(0).map(
          load->getResult(0),
          LocalLoadOp::create(builder, load->getLoc(), load->getResult(0).getType(), buffer));
  }
}

/// The slots that an op is the last to look at are empty.
void ScheduledLoop::finishUse(OpBuilder &builder, Operation *reader) {
  for (unsigned channel : byTMA) {
    const ScheduledChannel &of = schedule.getChannels()[channel];
    if (of.lastReader != reader)
      continue;
    const ScheduledOp &node = schedule.getOp(reader);
    Value slot = emitPlace(builder, channel, node.stage).slot;
    if (node.inFlight != 0) {
      auto *before =
          llvm::find_if(previous, [&](const auto &entry) { return entry.first == channel; });
      getRings(channel).release(builder, reader->getLoc(), before->second);
      before->second = slot;
    } else {
      getRings(channel).release(builder, reader->getLoc(), slot);
    }
    if (current.hasOwn || of.base != 0)
      moveOn(builder, channel);
  }
}

void ScheduledLoop::emitTileWait(OpBuilder &builder, unsigned channel) {
  const ScheduledChannel &of = schedule.getChannels()[channel];
  int stage = 0;
  Location loc = of.lastReader->getLoc();
  if (!of.wait) {
    stage = of.getFirstReader().stage;
    loc = of.getFirstReader().op->getLoc();
  }
  if (!current.has(stage))
    return;
  // The place is that of the iteration before, of which the last op looks at it.
  if (stage < of.base && current.hasLate())
    moveOn(builder, channel);
  ChannelPlace place = stage < of.base ? getPlace(channel) : emitPlace(builder, channel, stage);
  getRings(channel).waitUntilFull(builder, loc, place);
}

/// How many dots that were begun later may still be under way when one has to be done.
unsigned ScheduledLoop::countPending(Operation *dot) const {
  if (schedule.getOp(dot).inFlight == 0)
    return begun.end() - llvm::find(begun, dot) - 1;
  auto countAfter = [&](ArrayRef<Operation *> dots) -> unsigned {
    return dots.end() - llvm::find(dots, dot) - 1;
  };
  unsigned later = countAfter(ofIteration);
  if (llvm::is_contained(ofFirst, dot))
    later = std::min(later, countAfter(ofFirst));
  return later + begun.size();
}

void ScheduledLoop::emitDotWait(OpBuilder &builder, Operation *dot) {
  const ScheduledOp &node = schedule.getOp(dot);
  auto work = cast<AsyncOpInterface>(dot);
  unsigned pending = std::min(work.getMaxPendingGroups(), countPending(dot));
  Value result = dot->getResult(0);
  bool isAccumulator =
      llvm::all_of(result.getUses(), [](OpOperand &use) { return isAccOfDot(use); });
  if (node.inFlight != 0 || isAccumulator) {
    work.createWait(builder, dot->getLoc(), ValueRange(), pending);
  } else {
    IRMapping &mapping = getMapping(node.stage);
    Value begun = mapping.lookup(result);
    mapping.map(result, work.createWait(builder, dot->getLoc(), begun, pending)->getResult(0));
    mapCarried(dot);
  }
  finishUse(builder, dot);
}

/// Ping-pong: warpgroups begin dots that follow on each other alternately.
void ScheduledLoop::emitPingPong(OpBuilder &builder, const ScheduleEvent &event) {
  bool isDot = event.kind == ScheduleEvent::Op && isa<AsyncDotOp>(event.op);
  if (!schedule.isPingPong() || isDot == hasTurn)
    return;
  hasTurn = isDot;
  if (hasTurn)
    PingPongWaitOp::create(builder, getLoc());
  else
    PingPongPassOp::create(builder, getLoc());
}

void ScheduledLoop::emitEvent(OpBuilder &builder, const ScheduleEvent &event) {
  switch (event.kind) {
  case ScheduleEvent::TileWait:
    return emitTileWait(builder, event.channel);
  case ScheduleEvent::DotWait:
    return emitDotWait(builder, event.op);
  case ScheduleEvent::Copy:
    return;
  case ScheduleEvent::Op:
    return schedule.getReplaced().contains(event.op) ? emitTile(builder, event.op)
                                                     : emitOp(builder, event.op);
  }
}

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

void ScheduledLoop::beginIteration(Iteration iteration) {
  current = iteration;
  for (IRMapping &mapping : mappings)
    mapping.clear();
  begun.clear();
  left.clear();
  filled = 0;
  hasMet = false;
  if (current.hasOwn)
    getMapping(0).map(loop.getInductionVar(), current.variable);
  for (auto [index, value, other] : llvm::zip_equal(kept, values, inPlace)) {
    Value argument = loop.getRegionIterArg(index);
    bool isMadeLate = getYieldedStage(index) == 1;
    if (!isMadeLate || !current.hasLate())
      getMapping(0).map(argument, value);
    else
      getMapping(1).map(other ? other : argument, value);
  }
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (value)
      getMapping(from.second + 1).map(from.first, value);
}

void ScheduledLoop::endIteration(OpBuilder &builder) {
  // The tensor cores are passed on with the end of the iteration.
  emitPingPong(builder, ScheduleEvent{ScheduleEvent::TileWait});
  for (auto [index, value, other] : llvm::zip_equal(kept, values, inPlace)) {
    Value yielded = loop.getYieldedValues()[index];
    if (other)
      value = getMapping(0).lookup(other);
    else if (getYieldedStage(index) != 1)
      value = getMapping(0).lookupOrDefault(yielded);
    else if (current.hasLate())
      value = getMapping(1).lookup(yielded);
  }
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    value = getMapping(from.second).lookup(from.first);
  for (AsyncRings &rings : async) {
    unsigned slots = schedule.getChannels()[rings.channel].slots;
    rings.into = emitNextSlot(builder, rings.into, slots, /*isNext=*/true);
    rings.from = emitNextSlot(builder, rings.from, slots, /*isNext=*/true);
  }
  for (unsigned channel : byTMA)
    if (schedule.getChannels()[channel].base == 0)
      moveOn(builder, channel);
}

void ScheduledLoop::emitIteration(OpBuilder &builder, Iteration iteration) {
  beginIteration(iteration);
  emitWait(builder, /*isFirst=*/false);
  for (unsigned channel : byTMA)
    for (unsigned index : schedule.getChannels()[channel].copies)
      if (const ScheduledCopy &copy = schedule.getCopies()[index];
          schedule.getChannels()[channel].base == 0)
        emitView(builder, LocalAllocOp(copy.buffers.front()).getResult(), /*stage=*/0);
  ArrayRef<ScheduleEvent> events = schedule.getEvents();
  while (!events.empty()) {
    const ScheduleEvent &event = events.front();
    if (event.kind == ScheduleEvent::Copy) {
      SmallVector<unsigned> channels;
      while (!events.empty() && events.front().kind == ScheduleEvent::Copy) {
        channels.push_back(events.front().channel);
        events = events.drop_front();
      }
      emitPingPong(builder, event);
      emitCopies(builder, channels);
      continue;
    }
    events = events.drop_front();
    if (event.op && !schedule.getReplaced().contains(event.op) &&
        !current.has(schedule.getOp(event.op).stage))
      continue;
    emitPingPong(builder, event);
    emitEvent(builder, event);
  }
  endIteration(builder);
}

/// Ops of stage -1 for iteration 0.
void ScheduledLoop::emitEarly(OpBuilder &builder) {
  emitWait(builder, /*isFirst=*/true);
  IRMapping &mapping = getMapping(-1);
  mapping.clear();
  mapping.map(loop.getInductionVar(), loop.getLowerBound());
  mapping.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (const ScheduleEvent &event : schedule.getEvents()) {
    if (event.kind != ScheduleEvent::Op || schedule.getReplaced().contains(event.op) ||
        schedule.getOp(event.op).stage >= 0)
      continue;
    event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isa<MemDescType>(operand.getType()) && schedule.getCopy(operand)) {
          // The tile of iteration 0 is in the slot that ops of stage 0 begin with.
          SmallVector<Operation *> views;
          Value buffer = operand;
          for (; auto trans = buffer.getDefiningOp<MemDescTransOp>(); buffer = trans.getBuffer())
            views.push_back(trans);
          const ScheduledCopy &copy = *schedule.getCopy(buffer);
          AsyncRings &rings = *getAsyncRings(copy.channel);
          if (!mapping.contains(buffer))
            mapping.map(buffer, MemDescIndexOp::create(builder, event.op->getLoc(),
                                                       rings.rings[copy.ring], rings.from)
                                    .getResult());
          for (Operation *view : llvm::reverse(views))
            if (!mapping.contains(view->getResult(0)))
              builder.clone(*view, mapping);
        }
    });
    builder.clone(*event.op, mapping);
  }
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (from.second < 0)
      value = mapping.lookup(from.first);
}

/// The steady state: up to `end`, or where ops are late, of all iterations but the first.
void ScheduledLoop::emitLoop(OpBuilder &builder, Value end) {
  Location loc = getLoc();
  SmallVector<Value> inits = getCarried();
  auto to = scf::ForOp::create(builder, loc, loop.getLowerBound(), end, loop.getStep(), inits,
                               /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  to->removeAttr(kStagesAttr);
  if (!to.getBody()->empty())
    to.getBody()->back().erase();
  OpBuilder inside = OpBuilder::atBlockEnd(to.getBody());
  setCarried(to.getRegionIterArgs());
  Iteration iteration{to.getInductionVar(), Value()};
  // The first iteration stands before the loop.
  if (schedule.hasStage(1)) {
    iteration.ofLate = to.getInductionVar();
    iteration.variable = arith::AddIOp::create(inside, loc, to.getInductionVar(), loop.getStep());
  }
  emitIteration(inside, iteration);
  scf::YieldOp::create(inside, loc, getCarried());
  setCarried(to.getResults());
}

/// The ops of stage 1 of the last iteration.
void ScheduledLoop::emitLate(OpBuilder &builder, Value last) {
  Iteration iteration{Value(), last};
  iteration.hasOwn = false;
  beginIteration(iteration);
  for (const ScheduleEvent &event : schedule.getEvents()) {
    bool isOfOp = event.op && !schedule.getReplaced().contains(event.op);
    if (event.kind == ScheduleEvent::Copy || (event.op && !isOfOp) ||
        (isOfOp && schedule.getOp(event.op).stage != 1))
      continue;
    emitPingPong(builder, event);
    emitEvent(builder, event);
  }
  emitPingPong(builder, ScheduleEvent{ScheduleEvent::TileWait});
}

/// Emit the loop's results, after the waits for everything in flight.
SmallVector<Value> ScheduledLoop::emitResults(OpBuilder &builder) {
  SmallVector<Value> results;
  for (auto [index, value] : llvm::zip_equal(kept, values)) {
    Value yielded = loop.getYieldedValues()[index];
    Operation *op = yielded.getDefiningOp();
    Value result = getYieldedStage(index) == 1 ? getMapping(1).lookup(yielded) : value;
    bool isOwn = op && op->getBlock() == loop.getBody() && !schedule.getReplaced().contains(op);
    if (isOwn && schedule.getOp(op).inFlight != 0)
      result = cast<AsyncOpInterface>(op)
                   .createWait(builder, getLoc(), result, /*pending=*/0)
                   ->getResult(0);
    results.push_back(result);
  }
  for (const auto &[channel, slot] : previous)
    getRings(channel).release(builder, getLoc(), slot);
  return results;
}

/// The rings of cp.async end before anything else may want their place.
void ScheduledLoop::emitEnd(OpBuilder &builder) {
  if (async.empty())
    return;
  if (countAsync() != 0)
    AsyncWaitOp::create(builder, getLoc(), 0);
  for (AsyncRings &rings : async)
    for (Value ring : rings.rings)
      LocalDeallocOp::create(builder, getLoc(), ring);
}

/// The loop, where it is known to run.
void ScheduledLoop::emitGuarded(OpBuilder &builder) {
  if (schedule.hasStage(-1))
    emitEarly(builder);
  for (unsigned channel : byTMA)
    if (Operation *reader = schedule.getChannels()[channel].lastReader;
        schedule.getOp(reader).inFlight != 0)
      previous.push_back({channel, getRings(channel).getNoSlot(builder, getLoc())});
  if (!schedule.hasStage(1)) {
    emitLoop(builder, loop.getUpperBound());
    return;
  }
  emitIteration(builder, Iteration{loop.getLowerBound(), Value()});
  Value last = emitLast(builder);
  emitLoop(builder, last);
  emitLate(builder, last);
}

void ScheduledLoop::expand() {
  Location loc = getLoc();
  OpBuilder builder(loop);
  loop->removeAttr(kScheduleAttr);
  for (Operation &op : *loop.getBody()) {
    // Slices come when tiles have layouts.
    auto node = op.getAttrOfType<NodeAttr>(kNodeAttr);
    op.removeAttr(kNodeAttr);
    if (node && node.getSlices() != 0)
      op.setAttr(kNodeAttr,
                 NodeAttr::getSliced(op.getContext(), node.getSlices(), node.getAhead()));
  }
  loop.getBody()->walk([&](AsyncDotOp dot) { asyncDot = dot; });
  ofIteration = schedule.getAsyncDots(/*lastStage=*/1);
  if (schedule.hasStage(1))
    ofFirst = schedule.getAsyncDots(/*lastStage=*/0);
  planCarried();
  emitRings(builder);
  bool isInFlight =
      llvm::any_of(ofIteration, [&](Operation *dot) { return schedule.getOp(dot).inFlight != 0; });
  bool isGuarded = isInFlight || schedule.hasStage(-1) || schedule.hasStage(1);
  emitFirstTMACopies(builder);
  Value runs = isGuarded || !async.empty() ? emitRuns(builder) : Value();
  emitFirstCopies(builder, runs);
  SmallVector<Value> results;
  if (!isGuarded) {
    emitGuarded(builder);
    results = emitResults(builder);
    emitEnd(builder);
  } else {
    // Where a loop that does not run joins one that does, accumulators must not be under way.
    SmallVector<Value> before(values);
    llvm::append_range(before, getPlaces());
    auto guarded = scf::IfOp::create(builder, loc, ValueRange(before).getTypes(), runs,
                                     /*withElseRegion=*/true);
    guarded->setAttr(kIsLikelyAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(guarded.elseBlock());
    // Something to do, or what the accumulators are then would be set on the way to the loop, too.
    if (async.empty() && asyncDot)
      asyncDot.asAsync().createWait(builder, loc, ValueRange(), /*pending=*/0);
    emitEnd(builder);
    scf::YieldOp::create(builder, loc, before);
    builder.setInsertionPointToStart(guarded.thenBlock());
    emitGuarded(builder);
    SmallVector<Value> after = emitResults(builder);
    llvm::append_range(after, getPlaces());
    emitEnd(builder);
    scf::YieldOp::create(builder, loc, after);
    builder.setInsertionPointAfter(guarded);
    results = llvm::to_vector_of<Value>(guarded.getResults().take_front(kept.size()));
    setPlaces(guarded.getResults().drop_front(kept.size()));
  }
  for (auto [index, value] : llvm::zip_equal(kept, results))
    loop.getResult(index).replaceAllUsesWith(value);
  loop.erase();
}
