// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AsyncRings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static Value makeSlot(OpBuilder &builder, Location loc, unsigned slot) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(slot));
}

static Value emitNextSlot(OpBuilder &builder, Location loc, Value slot, unsigned slots) {
  Value one = makeSlot(builder, loc, 1);
  Value next = arith::AddIOp::create(builder, loc, slot, one);
  Value isEnd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                                      makeSlot(builder, loc, slots));
  return arith::SelectOp::create(builder, loc, isEnd, makeSlot(builder, loc, 0), next);
}

static Value emitSlotBefore(OpBuilder &builder, Location loc, Value slot, unsigned slots) {
  Value one = makeSlot(builder, loc, 1);
  Value before = arith::SubIOp::create(builder, loc, slot, one);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot,
                                        makeSlot(builder, loc, 0));
  return arith::SelectOp::create(builder, loc, isFirst, makeSlot(builder, loc, slots - 1), before);
}

AsyncRings::AsyncRings(const LoopSchedule &schedule)
    : schedule(schedule), loop(schedule.getLoop()), counter(loop) {
  loop.getBody()->walk([&](AsyncDotOp) { hasAsyncDot = true; });
  for (auto [index, channel] : llvm::enumerate(schedule.getChannels())) {
    if (channel.isByTMA())
      continue;
    Rings &of = rings.emplace_back();
    of.channel = index;
    of.isByThreads = channel.isByThreads();
    of.addresses = LoopSlice(loop);
  }
}

unsigned AsyncRings::countByCpAsync() const {
  return llvm::count_if(rings, [](const Rings &of) { return !of.isByThreads; });
}

//===----------------------------------------------------------------------===//
// Before the loop and behind it
//===----------------------------------------------------------------------===//

void AsyncRings::allocate(OpBuilder &builder) {
  for (Rings &of : rings) {
    for (unsigned number : getChannel(of).copies) {
      const ScheduledCopy &copy = schedule.getCopies()[number];
      tile::LoadOp load = copy.load;
      Value other = of.isByThreads ? load.getOther() : Value();
      for (Value operand : {load.getPtr(), load.getMask(), other})
        if (operand)
          (void)of.addresses.add(operand);
      of.buffers.push_back(LocalAllocOp::create(
          builder, load.getLoc(), MemDescType(copy.tile).getRing(getChannel(of).slots), Value()));
    }
    for (unsigned carried : of.addresses.getCarried())
      of.ahead.push_back(loop.getInitArgs()[carried]);
  }
}

void AsyncRings::emitFirstCopies(OpBuilder &builder, Value runs) {
  Location loc = getLoc();
  int most = 0;
  for (const Rings &of : rings)
    most = std::max(most, getChannel(of).ahead);
  for (int group = 0; group < most; ++group) {
    for (Rings &of : rings) {
      int iteration = group - (most - getChannel(of).ahead);
      if (iteration < 0)
        continue;
      Value variable = loop.getLowerBound(), condition = runs;
      if (iteration > 0) {
        condition = arith::AndIOp::create(builder, loc, runs,
                                          counter.emitHasMore(builder, variable, iteration));
        variable = counter.emitAhead(builder, variable, iteration);
      }
      emitTiles(builder, of, variable, condition,
                makeSlot(builder, loc, iteration % getChannel(of).slots));
    }
    if (countByCpAsync() != 0)
      AsyncCommitOp::create(builder, loc);
  }
  for (Rings &of : rings) {
    of.into = makeSlot(builder, loc, getChannel(of).ahead % getChannel(of).slots);
    of.from = makeSlot(builder, loc, 0);
  }
}

void AsyncRings::emitEnd(OpBuilder &builder) const {
  if (rings.empty())
    return;
  if (countByCpAsync() != 0)
    AsyncWaitOp::create(builder, getLoc(), 0);
  for (const Rings &of : rings)
    for (Value buffer : of.buffers)
      LocalDeallocOp::create(builder, getLoc(), buffer);
}

void AsyncRings::forEachAddress(llvm::function_ref<void(Value &)> visit) {
  for (Rings &of : rings)
    llvm::for_each(of.ahead, visit);
}

void AsyncRings::forEachSlot(llvm::function_ref<void(Value &)> visit) {
  for (Rings &of : rings) {
    visit(of.into);
    visit(of.from);
  }
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Waits until at most so many groups are pending as each channel allows, if any limits it.
void AsyncRings::emitPendingWait(
    OpBuilder &builder,
    llvm::function_ref<std::optional<int>(const ScheduledChannel &)> count) const {
  std::optional<int> pending;
  for (const Rings &of : rings)
    if (!of.isByThreads)
      if (std::optional<int> most = count(getChannel(of)))
        pending = std::min(pending.value_or(*most), *most);
  if (!pending)
    return;
  AsyncWaitOp::create(builder, getLoc(), *pending);
  if (hasAsyncDot)
    ProxyFenceOp::create(builder, getLoc());
}

static int getFirstReadingStage(const ScheduledChannel &channel) {
  return channel.readers.empty() ? 0 : channel.getFirstReader().stage;
}

void AsyncRings::emitWait(OpBuilder &builder, const LoopIteration &iteration) const {
  int drained = iteration.drained;
  emitPendingWait(builder, [&](const ScheduledChannel &channel) -> std::optional<int> {
    int stage = getFirstReadingStage(channel);
    // Iterations of the epilogue begin no group, and wait for tiles that none before has read.
    if (drained == 0)
      return channel.ahead - 1 + stage;
    return stage < drained ? std::nullopt : std::optional(channel.ahead - drained + stage);
  });
}

void AsyncRings::emitEarlyWait(OpBuilder &builder, int last) const {
  emitPendingWait(builder, [&](const ScheduledChannel &channel) -> std::optional<int> {
    int stage = getFirstReadingStage(channel);
    return stage > last ? std::nullopt : std::optional(channel.ahead - 1 - (last - stage));
  });
}

//===----------------------------------------------------------------------===//
// An iteration
//===----------------------------------------------------------------------===//

void AsyncRings::beginIteration() {
  filled = 0;
  hasMet = false;
}

void AsyncRings::endIteration(OpBuilder &builder) {
  for (Rings &of : rings) {
    unsigned slots = getChannel(of).slots;
    of.into = emitNextSlot(builder, getLoc(), of.into, slots);
    of.from = emitNextSlot(builder, getLoc(), of.from, slots);
  }
}

/// The slot of the iteration so many before the next one to be read; after it if negative.
Value AsyncRings::emitSlot(OpBuilder &builder, const Rings &of, int iterationsBefore) const {
  Value slot = of.from;
  unsigned slots = getChannel(of).slots;
  for (; iterationsBefore < 0; ++iterationsBefore)
    slot = emitNextSlot(builder, getLoc(), slot, slots);
  for (; iterationsBefore > 0; --iterationsBefore)
    slot = emitSlotBefore(builder, getLoc(), slot, slots);
  return slot;
}

Value AsyncRings::emitBuffer(OpBuilder &builder, const ScheduledCopy &copy,
                             const LoopIteration &iteration, int stage) const {
  const Rings &of = getRings(copy.channel);
  // Iterations of the epilogue move no slot on.
  int before = iteration.drained == 0 ? stage : stage - iteration.drained + 1;
  Value slot = emitSlot(builder, of, before);
  return MemDescIndexOp::create(builder, tile::LoadOp(copy.load).getLoc(), of.buffers[copy.ring],
                                slot);
}

Value AsyncRings::emitFirstBuffer(OpBuilder &builder, Location loc, const ScheduledCopy &copy,
                                  int iteration) const {
  const Rings &of = getRings(copy.channel);
  Value slot = emitSlot(builder, of, -iteration);
  return MemDescIndexOp::create(builder, loc, of.buffers[copy.ring], slot);
}

void AsyncRings::emitTile(OpBuilder &builder, const Rings &of, const ScheduledCopy &copy,
                          Value buffer, Value condition, IRMapping &mapping) const {
  tile::LoadOp load = copy.load;
  Location loc = load.getLoc();
  if (of.isByThreads) {
    auto exists = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
    OpBuilder inside = exists.getThenBodyBuilder();
    Value tile = inside.clone(*load, mapping)->getResult(0);
    LocalStoreOp::create(inside, loc, tile, buffer);
    return;
  }
  Value mask = load.getMask() ? mapping.lookupOrDefault(load.getMask()) : Value();
  // Where tiles have layouts, threads hold elements in pairs, which a branch would take apart.
  if (getLayoutAttr(load.getType())) {
    auto type = cast<RankedTensorType>(load.getType()).clone(builder.getI1Type());
    Value all = tile::SplatOp::create(builder, loc, type, condition);
    mask = mask ? arith::AndIOp::create(builder, loc, mask, all) : all;
    condition = Value();
  }
  auto made = AsyncCopyOp::create(builder, loc, mapping.lookupOrDefault(load.getPtr()), buffer,
                                  mask, condition);
  CopyHints::of(load).attachTo(made);
}

/// The copies of one iteration; the addresses are then those of the next one.
void AsyncRings::emitTiles(OpBuilder &builder, Rings &of, Value variable, Value condition,
                           Value slot) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variable);
  of.addresses.emit(builder, mapping, condition, of.ahead);
  for (auto [number, index] : llvm::enumerate(getChannel(of).copies)) {
    const ScheduledCopy &copy = schedule.getCopies()[index];
    Value buffer =
        MemDescIndexOp::create(builder, tile::LoadOp(copy.load).getLoc(), of.buffers[number], slot);
    emitTile(builder, of, copy, buffer, condition, mapping);
  }
}

void AsyncRings::emitCopies(OpBuilder &builder, unsigned channel, Value variable) {
  if (!hasMet && needsBarrier())
    BarrierOp::create(builder, getLoc());
  hasMet = true;
  Rings &of = *llvm::find_if(rings, [&](const Rings &other) { return other.channel == channel; });
  int ahead = getChannel(of).ahead;
  Value later = counter.emitAhead(builder, variable, ahead);
  Value hasMore = counter.emitHasMore(builder, variable, ahead);
  emitTiles(builder, of, later, hasMore, of.into);
  // One group an iteration.
  if (!of.isByThreads && ++filled == countByCpAsync())
    AsyncCommitOp::create(builder, getLoc());
}

/// True if all warps have to meet before copies by cp.async. tilegpu-insert-barriers takes a dot to
/// read where it begins. Where a warp waits for it later on, in the iteration before the copy, a
/// barrier in between tells nothing of what other warps' dots still read.
bool AsyncRings::needsBarrier() const {
  auto getEvent = [&](ScheduleEvent::Kind kind, Operation *op) {
    return llvm::find_if(schedule.getEvents(), [&](const ScheduleEvent &event) {
      return event.kind == kind && event.op == op;
    });
  };
  for (const Rings &of : rings) {
    const ScheduledChannel &channel = getChannel(of);
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
