// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The partition of producer warps: the program's loops and branches with copies in them, and the
// messages with their bounds, conditions and coordinates.

#include "Facts/ResultOverlap.h"
#include "KernelExpander.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Messages to the producer
//===----------------------------------------------------------------------===//

/// Collect the scalars that the current producer needs for its loops, or all of them for all, and
/// the tensor maps that the kernel makes.
ProducerSlice KernelExpander::getSlice() const {
  SmallVector<scf::ForOp> loops;
  for (const LoopSchedule &schedule : schedules)
    if (isOfPartition(schedule))
      loops.push_back(schedule.getLoop());
  ProducerSlice result(kernel, loops);
  for (const LoopSchedule &schedule : schedules) {
    if (!isOfPartition(schedule))
      continue;
    result.needLoop(schedule.getLoop());
    for (const ScheduledCopy &copy : schedule.getCopies()) {
      if (!isOfPartition(rings.getIndex(schedule.getChannels()[copy.channel])))
        continue;
      result.needBox(rings.boxes.find(copy.load)->second);
      if (Value map = rings.maps.lookup(copy.load); map && map.getDefiningOp<MakeTensorMapOp>())
        result.send(map);
    }
  }
  return result;
}

/// Mark the place of the message that lets a producer copy for a loop in place. The place is before
/// the loop. It is before the loop around it if later stores are known to be to other places.
void KernelExpander::addMarkers(const LoopSchedule &schedule) {
  scf::ForOp loop = schedule.getLoop();
  auto mark = [&](OpBuilder &builder) {
    markers.insert(ProxyFenceOp::create(builder, loop.getLoc(), /*of_memory=*/true));
  };
  SmallVector<const BoxAccess *> copied;
  for (const ScheduledCopy &copy : schedule.getCopies())
    copied.push_back(&rings.boxes.find(copy.load)->second);
  OpBuilder builder(loop);
  std::optional<ResultOverlap> overlap = ResultOverlap::find(loop, copied, analysis);
  if (!overlap)
    return mark(builder);
  builder.setInsertionPoint(overlap->getLoop());
  Value may = overlap->emit(builder, loop.getLoc());
  overlaps.push_back(may);
  mark(builder);
  builder.setInsertionPoint(loop);
  auto branch = scf::IfOp::create(builder, loop.getLoc(), may, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  mark(builder);
}

void KernelExpander::planMessages() {
  for (const LoopSchedule &schedule : schedules)
    if (isInPlace(schedule))
      addMarkers(schedule);
  slice = getSlice();
  for (Operation *marker : markers)
    slice->signalWrites(marker);
  for (Value may : overlaps)
    slice->send(may);
  messages = slice->getMessages();
}

void KernelExpander::receiveMessage(OpBuilder &builder, Operation *op, IRMapping &mapping) {
  ChannelPlace &place = places.back();
  mailbox.receive(builder, op->getLoc(), place, messages.find(op)->second, mapping);
  place = mailbox.getNext(builder, op->getLoc(), place);
}

//===----------------------------------------------------------------------===//
// Its loops and branches
//===----------------------------------------------------------------------===//

/// A scalar computed again, in a region that does not see it.
Value KernelExpander::emitAgain(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() == &kernel.getBody().front())
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, emitAgain(builder, operand, mapping));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// Compute the operands that a loop or branch of the partition carries: the scalars with these
/// numbers among the old ones, and the places in the channels that are used.
SmallVector<Value> KernelExpander::emitCarried(OpBuilder &builder, ValueRange old,
                                               ArrayRef<unsigned> numbers, ArrayRef<unsigned> used,
                                               IRMapping &mapping) {
  SmallVector<Value> result;
  for (unsigned number : numbers)
    result.push_back(emitAgain(builder, old[number], mapping));
  llvm::append_range(result, getPlaces(used));
  return result;
}

/// The other way round: variables or results that have what is carried.
void KernelExpander::setCarried(ValueRange old, ValueRange carried, ArrayRef<unsigned> numbers,
                                ArrayRef<unsigned> used, IRMapping &mapping) {
  for (auto [index, number] : llvm::enumerate(numbers))
    mapping.map(old[number], carried[index]);
  setPlaces(used, carried.drop_front(numbers.size()));
}

void KernelExpander::emitProducer(OpBuilder &builder, scf::ForOp loop, IRMapping &mapping) {
  Location loc = loop.getLoc();
  SmallVector<unsigned> used = getChannels(loop), carried = slice->getCarried(loop);
  SmallVector<Value> inits = emitCarried(builder, loop.getInitArgs(), carried, used, mapping);
  auto copy = scf::ForOp::create(builder, loc, emitAgain(builder, loop.getLowerBound(), mapping),
                                 emitAgain(builder, loop.getUpperBound(), mapping),
                                 emitAgain(builder, loop.getStep(), mapping), inits,
                                 /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  if (!copy.getBody()->empty())
    copy.getBody()->back().erase();
  OpBuilder inside = OpBuilder::atBlockEnd(copy.getBody());
  IRMapping inner = mapping;
  inner.map(loop.getInductionVar(), copy.getInductionVar());
  setCarried(loop.getRegionIterArgs(), copy.getRegionIterArgs(), carried, used, inner);
  if (auto found = ofLoop.find(loop); found != ofLoop.end()) {
    const LoopSchedule &schedule = schedules[found->second];
    for (const ScheduledChannel &channel : schedule.getChannels()) {
      unsigned index = rings.getIndex(channel);
      if (!isOfPartition(index))
        continue;
      rings.emitCopies(inside, schedule, channel, places[index], inner);
      places[index] = rings.channels[index].getNext(inside, loc, places[index]);
    }
  } else {
    emitProducer(inside, loop.getBody(), inner);
  }
  scf::YieldOp::create(inside, loc,
                       emitCarried(inside, loop.getYieldedValues(), carried, used, inner));
  setCarried(loop.getResults(), copy.getResults(), carried, used, mapping);
}

void KernelExpander::emitProducer(OpBuilder &builder, scf::WhileOp loop, IRMapping &mapping) {
  Location loc = loop.getLoc();
  SmallVector<unsigned> used = getChannels(loop), carried = slice->getCarried(loop),
                        passed = slice->getPassed(loop);
  SmallVector<Value> inits = emitCarried(builder, loop.getInits(), carried, used, mapping);
  SmallVector<Type> types;
  for (unsigned number : passed)
    types.push_back(loop.getResult(number).getType());
  llvm::append_range(types, ValueRange(getPlaces(used)).getTypes());
  auto copy = scf::WhileOp::create(builder, loc, types, inits);
  auto begin = [&](Region &region, TypeRange arguments, Block *old, ArrayRef<unsigned> numbers,
                   IRMapping &inner) {
    Block *block = &region.emplaceBlock();
    block->addArguments(arguments, SmallVector<Location>(arguments.size(), loc));
    setCarried(old->getArguments(), block->getArguments(), numbers, used, inner);
    return OpBuilder::atBlockEnd(block);
  };
  IRMapping before = mapping;
  OpBuilder inside =
      begin(copy.getBefore(), ValueRange(inits).getTypes(), loop.getBeforeBody(), carried, before);
  emitProducer(inside, loop.getBeforeBody(), before);
  scf::ConditionOp condition = loop.getConditionOp();
  Value holds = emitAgain(inside, condition.getCondition(), before);
  scf::ConditionOp::create(inside, loc, holds,
                           emitCarried(inside, condition.getArgs(), passed, used, before));
  IRMapping after = mapping;
  inside = begin(copy.getAfter(), types, loop.getAfterBody(), passed, after);
  emitProducer(inside, loop.getAfterBody(), after);
  scf::YieldOp::create(inside, loc,
                       emitCarried(inside, loop.getYieldOp().getResults(), carried, used, after));
  setCarried(loop.getResults(), copy.getResults(), passed, used, mapping);
}

void KernelExpander::emitProducer(OpBuilder &builder, scf::IfOp branch, IRMapping &mapping) {
  Location loc = branch.getLoc();
  SmallVector<unsigned> used = getChannels(branch), carried = slice->getCarried(branch);
  SmallVector<Value> before = getPlaces(used);
  Value condition = emitAgain(builder, branch.getCondition(), mapping);
  SmallVector<Type> types;
  for (unsigned number : carried)
    types.push_back(branch.getResult(number).getType());
  llvm::append_range(types, ValueRange(before).getTypes());
  auto copy = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/true);
  for (bool isThen : {true, false}) {
    Block *from = isThen ? branch.thenBlock() : branch.elseBlock();
    OpBuilder inside = OpBuilder::atBlockEnd(isThen ? copy.thenBlock() : copy.elseBlock());
    setPlaces(used, before);
    IRMapping inner = mapping;
    ValueRange results;
    if (from) {
      emitProducer(inside, from, inner);
      results = from->getTerminator()->getOperands();
    }
    scf::YieldOp::create(inside, loc, emitCarried(inside, results, carried, used, inner));
  }
  setCarried(branch.getResults(), copy.getResults(), carried, used, mapping);
}

/// The loops and branches of a block, with copies in them.
void KernelExpander::emitProducer(OpBuilder &builder, Block *block, IRMapping &mapping) {
  for (Operation &op : block->without_terminator()) {
    if (messages.contains(&op))
      receiveMessage(builder, &op, mapping);
    if (markers.contains(&op) || !hasScheduled(&op))
      continue;
    if (isa<tile::LoadOp>(op)) {
      auto *copy =
          llvm::find_if(programCopies, [&](const ScheduledCopy &copy) { return copy.load == &op; });
      unsigned index = getIndex(*copy);
      ChannelPlace &place = places[index];
      const Channel &channel = rings.channels[index];
      Value full = channel.beginToFill(builder, op.getLoc(), place);
      rings.emitCopy(builder, *copy, channel, place.slot, full, mapping);
      place = channel.getNext(builder, op.getLoc(), place);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      emitProducer(builder, loop, mapping);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      emitProducer(builder, loop, mapping);
    } else {
      emitProducer(builder, cast<scf::IfOp>(op), mapping);
    }
  }
}
