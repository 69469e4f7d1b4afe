// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProducerPartition.h"

#include "Programs/PersistentKernel.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

void ProducerPartition::receiveMessage(OpBuilder &builder, Operation *op, IRMapping &mapping) {
  ChannelPlace &place = side.getPlace(transfers.getMailboxChannel());
  transfers.mailbox.receive(builder, op->getLoc(), place, transfers.messages.find(op)->second,
                            mapping);
  place = transfers.mailbox.getNext(builder, op->getLoc(), place);
}

/// A scalar computed again, in a region that does not see it.
Value ProducerPartition::emitAgain(OpBuilder &builder, Value value, IRMapping &mapping) {
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
SmallVector<Value> ProducerPartition::emitCarried(OpBuilder &builder, ValueRange old,
                                                  ArrayRef<unsigned> numbers,
                                                  ArrayRef<unsigned> used, IRMapping &mapping) {
  SmallVector<Value> result;
  for (unsigned number : numbers)
    result.push_back(emitAgain(builder, old[number], mapping));
  llvm::append_range(result, side.getPlaces(used));
  return result;
}

/// The other way round: variables or results that have what is carried.
void ProducerPartition::setCarried(ValueRange old, ValueRange carried, ArrayRef<unsigned> numbers,
                                   ArrayRef<unsigned> used, IRMapping &mapping) {
  for (auto [index, number] : llvm::enumerate(numbers))
    mapping.map(old[number], carried[index]);
  side.setPlaces(used, carried.drop_front(numbers.size()));
}

void ProducerPartition::emit(OpBuilder &builder, scf::ForOp loop, IRMapping &mapping) {
  Location loc = loop.getLoc();
  SmallVector<unsigned> used = side.getChannels(loop), carried = slice.getCarried(loop);
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
  if (auto found = transfers.ofLoop.find(loop); found != transfers.ofLoop.end()) {
    const LoopSchedule &schedule = transfers.schedules[found->second];
    for (const ScheduledChannel &channel : schedule.getChannels()) {
      unsigned index = transfers.rings.getIndex(channel);
      if (!side.has(index))
        continue;
      transfers.rings.emitCopies(inside, schedule, channel, side.getPlace(index), inner);
      side.getPlace(index) =
          transfers.rings.channels[index].getNext(inside, loc, side.getPlace(index));
    }
  } else {
    emit(inside, loop.getBody(), inner);
  }
  scf::YieldOp::create(inside, loc,
                       emitCarried(inside, loop.getYieldedValues(), carried, used, inner));
  setCarried(loop.getResults(), copy.getResults(), carried, used, mapping);
}

void ProducerPartition::emit(OpBuilder &builder, scf::WhileOp loop, IRMapping &mapping) {
  Location loc = loop.getLoc();
  SmallVector<unsigned> used = side.getChannels(loop), carried = slice.getCarried(loop),
                        passed = slice.getPassed(loop);
  SmallVector<Value> inits = emitCarried(builder, loop.getInits(), carried, used, mapping);
  SmallVector<Type> types;
  for (unsigned number : passed)
    types.push_back(loop.getResult(number).getType());
  llvm::append_range(types, ValueRange(side.getPlaces(used)).getTypes());
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
  emit(inside, loop.getBeforeBody(), before);
  scf::ConditionOp condition = loop.getConditionOp();
  Value holds = emitAgain(inside, condition.getCondition(), before);
  scf::ConditionOp::create(inside, loc, holds,
                           emitCarried(inside, condition.getArgs(), passed, used, before));
  IRMapping after = mapping;
  inside = begin(copy.getAfter(), types, loop.getAfterBody(), passed, after);
  emit(inside, loop.getAfterBody(), after);
  scf::YieldOp::create(inside, loc,
                       emitCarried(inside, loop.getYieldOp().getResults(), carried, used, after));
  setCarried(loop.getResults(), copy.getResults(), passed, used, mapping);
}

void ProducerPartition::emit(OpBuilder &builder, scf::IfOp branch, IRMapping &mapping) {
  Location loc = branch.getLoc();
  SmallVector<unsigned> used = side.getChannels(branch), carried = slice.getCarried(branch);
  SmallVector<Value> before = side.getPlaces(used);
  Value condition = emitAgain(builder, branch.getCondition(), mapping);
  SmallVector<Type> types;
  for (unsigned number : carried)
    types.push_back(branch.getResult(number).getType());
  llvm::append_range(types, ValueRange(before).getTypes());
  auto copy = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/true);
  for (bool isThen : {true, false}) {
    Block *from = isThen ? branch.thenBlock() : branch.elseBlock();
    OpBuilder inside = OpBuilder::atBlockEnd(isThen ? copy.thenBlock() : copy.elseBlock());
    side.setPlaces(used, before);
    IRMapping inner = mapping;
    ValueRange results;
    if (from) {
      emit(inside, from, inner);
      results = from->getTerminator()->getOperands();
    }
    scf::YieldOp::create(inside, loc, emitCarried(inside, results, carried, used, inner));
  }
  setCarried(branch.getResults(), copy.getResults(), carried, used, mapping);
}

/// The loops and branches of a block, with copies in them.
void ProducerPartition::emit(OpBuilder &builder, Block *block, IRMapping &mapping) {
  for (Operation &op : block->without_terminator()) {
    if (transfers.messages.contains(&op))
      receiveMessage(builder, &op, mapping);
    if (transfers.markers.contains(&op) || !side.hasTransfers(&op))
      continue;
    if (isa<tile::LoadOp>(op)) {
      auto *copy = llvm::find_if(transfers.programCopies,
                                 [&](const ScheduledCopy &copy) { return copy.load == &op; });
      unsigned index = copy->channel;
      ChannelPlace &place = side.getPlace(index);
      const Channel &channel = transfers.rings.channels[index];
      Value full = channel.beginToFill(builder, op.getLoc(), place, copy->tile.getNumBytes());
      transfers.rings.emitCopy(builder, *copy, channel, place.slot, full, mapping);
      place = channel.getNext(builder, op.getLoc(), place);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      emit(builder, loop, mapping);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      emit(builder, loop, mapping);
    } else {
      emit(builder, cast<scf::IfOp>(op), mapping);
    }
  }
}

void ProducerPartition::emit(Region &partition, Block *program,
                             const std::optional<PersistentKernel> &persistent) {
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(&partition.front());
  side.emitPlaces(builder, loc);
  IRMapping mapping;
  if (persistent) {
    SmallVector<unsigned> all =
        llvm::filter_to_vector(llvm::seq<unsigned>(transfers.rings.channels.size()),
                               [&](unsigned channel) { return side.has(channel); });
    scf::ForOp loop = persistent->emitLoop(builder, side.getPlaces(all));
    OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
    side.setPlaces(all, loop.getRegionIterArgs());
    persistent->mapIds(inside, loop, mapping);
    emit(inside, program, mapping);
    scf::YieldOp::create(inside, loc, side.getPlaces(all));
  } else {
    emit(builder, program, mapping);
  }
  PartitionEndOp::create(builder, loc);
  // Divisions on the way to coordinates take as long as a short dot.
  partition.walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); });
}
