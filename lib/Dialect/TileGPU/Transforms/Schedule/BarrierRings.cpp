// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BarrierRings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

BarrierRings::BarrierRings(const LoopSchedule &schedule, const KernelRings &kernel,
                           MutableArrayRef<ChannelPlace> places)
    : schedule(schedule), kernel(kernel), counter(schedule.getLoop()), places(places) {
  for (auto [index, channel] : llvm::enumerate(schedule.getChannels()))
    if (channel.isByTMA())
      channels.push_back(index);
}

//===----------------------------------------------------------------------===//
// Before the loop and behind it
//===----------------------------------------------------------------------===//

void BarrierRings::emitFirstCopies(OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = getLoc();
  Value lower = schedule.getLoop().getLowerBound();
  int most = 0;
  for (unsigned channel : channels)
    most = std::max(most, schedule.getChannels()[channel].ahead);
  if (most == 0)
    return;
  auto alone = OneThreadOp::create(builder, loc, counter.emitRuns(builder));
  builder.createBlock(&alone.getBody());
  llvm::SmallDenseMap<unsigned, ChannelPlace> next;
  for (int iteration = 0; iteration < most; ++iteration) {
    if (iteration > 0) {
      auto branch = scf::IfOp::create(builder, loc, counter.emitHasMore(builder, lower, iteration));
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    for (unsigned channel : channels) {
      const ScheduledChannel &of = schedule.getChannels()[channel];
      if (iteration >= of.ahead)
        continue;
      auto [place, isNew] = next.try_emplace(channel, getPlace(channel));
      IRMapping mapping;
      mapping.map(schedule.getLoop().getInductionVar(),
                  counter.emitAhead(builder, lower, iteration));
      kernel.emitCopies(builder, schedule, of, place->second, mapping);
      place->second = getRings(channel).getNext(builder, loc, place->second);
    }
  }
}

void BarrierRings::beginLoop(OpBuilder &builder) {
  for (unsigned channel : channels)
    if (Operation *reader = schedule.getChannels()[channel].lastReader;
        schedule.getOp(reader).inFlight != 0)
      previous.push_back({channel, getRings(channel).getNoSlot(builder, getLoc())});
}

void BarrierRings::emitEnd(OpBuilder &builder) const {
  for (const auto &[channel, slot] : previous)
    getRings(channel).release(builder, getLoc(), slot);
}

void BarrierRings::forEachSlot(llvm::function_ref<void(Value &)> visit) {
  for (auto &[channel, slot] : previous)
    visit(slot);
}

SmallVector<Value> BarrierRings::getPlaces() const {
  SmallVector<Value> result;
  for (unsigned channel : getCarried()) {
    const ChannelPlace &place = places[kernel.getIndex(schedule.getChannels()[channel])];
    result.append({place.slot, place.phase});
  }
  return result;
}

void BarrierRings::setPlaces(ValueRange from) {
  for (auto [index, channel] : llvm::enumerate(channels)) {
    size_t at = kernel.isInStep ? 0 : 2 * index;
    getPlace(channel) = {from[at], from[at + 1]};
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// How many iterations the place that the loop carries is after the tile that ops of a stage read.
/// It is the place of stage `base`: it stays at the first tile until that stage begins, and behind
/// the last one when that stage has ended.
int BarrierRings::getDistance(unsigned channel, const LoopIteration &iteration, int stage) const {
  int base = schedule.getChannels()[channel].base;
  if (iteration.drained > base)
    return stage - iteration.drained + 1;
  bool isBefore = iteration.drained == 0 && iteration.last < base;
  return stage - (isBefore ? iteration.last : base);
}

ChannelPlace BarrierRings::emitPlace(OpBuilder &builder, unsigned channel,
                                     const LoopIteration &iteration, int stage) {
  int distance = getDistance(channel, iteration, stage);
  ChannelPlace place = getPlace(channel);
  if (auto found = left.find(channel); found != left.end()) {
    if (distance < 0)
      ++distance;
    else
      place = found->second;
  }
  for (; distance < 0; ++distance)
    place = getRings(channel).getNext(builder, getLoc(), place);
  for (; distance > 0; --distance)
    place = getRings(channel).getPrevious(builder, getLoc(), place);
  return place;
}

void BarrierRings::moveOn(OpBuilder &builder, unsigned channel) {
  if (left.contains(channel))
    return;
  left[channel] = getPlace(channel);
  getPlace(channel) = getRings(channel).getNext(builder, getLoc(), getPlace(channel));
}

Value BarrierRings::emitBuffer(OpBuilder &builder, const ScheduledCopy &copy,
                               const LoopIteration &iteration, int stage) {
  Value slot = emitPlace(builder, copy.channel, iteration, stage).slot;
  return kernel.getTile(builder, copy, getRings(copy.channel), slot);
}

//===----------------------------------------------------------------------===//
// An iteration
//===----------------------------------------------------------------------===//

void BarrierRings::emitWait(OpBuilder &builder, unsigned channel, const LoopIteration &iteration) {
  const ScheduledChannel &of = schedule.getChannels()[channel];
  int stage = 0;
  Location loc = of.lastReader->getLoc();
  if (!of.wait) {
    stage = of.getFirstReader().stage;
    loc = of.getFirstReader().op->getLoc();
  }
  if (!iteration.has(stage))
    return;
  // The place is that of an iteration before, of which the last op looks at it.
  if (stage < of.base && iteration.has(of.base))
    moveOn(builder, channel);
  getRings(channel).waitUntilFull(builder, loc, emitPlace(builder, channel, iteration, stage));
}

void BarrierRings::emitCopies(OpBuilder &builder, ArrayRef<unsigned> of,
                              const LoopIteration &iteration) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = getLoc();
  struct Copied {
    int ahead;
    unsigned channel;
    ChannelPlace place;
  };
  SmallVector<Copied> copies;
  for (unsigned channel : of) {
    const ScheduledChannel &filled = schedule.getChannels()[channel];
    copies.push_back(
        {filled.ahead, channel,
         emitPlace(builder, channel, iteration, static_cast<int>(filled.slots) - filled.ahead)});
  }
  // Copies are in the order in which iterations need them.
  llvm::sort(copies, [](const Copied &a, const Copied &b) {
    return std::tie(a.ahead, a.channel) < std::tie(b.ahead, b.channel);
  });
  Value variable = iteration.variables.front();
  int known = 0;
  for (const Copied &copy : copies) {
    if (copy.ahead != known) {
      Value isThere = counter.emitHasMore(builder, variable, copy.ahead);
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
    Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
    Value phase = arith::XOrIOp::create(builder, loc, copy.place.phase, one);
    IRMapping mapping;
    mapping.map(schedule.getLoop().getInductionVar(),
                counter.emitAhead(builder, variable, copy.ahead));
    kernel.emitCopies(builder, schedule, schedule.getChannels()[copy.channel],
                      {copy.place.slot, phase}, mapping);
  }
}

void BarrierRings::finishUse(OpBuilder &builder, Operation *reader,
                             const LoopIteration &iteration) {
  for (unsigned channel : channels) {
    const ScheduledChannel &of = schedule.getChannels()[channel];
    if (of.lastReader != reader)
      continue;
    const ScheduledOp &node = schedule.getOp(reader);
    Value slot = emitPlace(builder, channel, iteration, node.stage).slot;
    if (node.inFlight != 0) {
      auto *before =
          llvm::find_if(previous, [&](const auto &entry) { return entry.first == channel; });
      getRings(channel).release(builder, reader->getLoc(), before->second);
      before->second = slot;
    } else {
      getRings(channel).release(builder, reader->getLoc(), slot);
    }
    if (iteration.has(of.base))
      moveOn(builder, channel);
  }
}

void BarrierRings::endIteration(OpBuilder &builder, const LoopIteration &iteration) {
  for (unsigned channel : channels)
    if (iteration.has(schedule.getChannels()[channel].base))
      moveOn(builder, channel);
}
