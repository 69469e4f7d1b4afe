// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelExpander.h"

#include "EarlyLoads.h"
#include "Facts/Multicast.h"
#include "ProducerPartition.h"
#include "ProgramCopies.h"
#include "Programs/PersistentKernel.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// What may be expanded
//===----------------------------------------------------------------------===//

LogicalResult KernelExpander::verifyOrder(ArrayRef<ScheduledCopy> copies, Operation *op) {
  SmallVector<tile::LoadOp> loads;
  for (const ScheduledCopy &copy : copies)
    loads.push_back(copy.load);
  std::optional<EarlyLoadObstacle> obstacle =
      findObstacle(kernel, loads, order, analysis, conditions);
  if (!obstacle)
    return success();
  InFlightDiagnostic error =
      op->emitError("copies by TMA a tile that the same program may have stored");
  error.attachNote(obstacle->op->getLoc()) << "here";
  return error;
}

/// True if copies of a loop begin where the program comes to it, and not before.
bool KernelExpander::isInPlace(const LoopSchedule &schedule) const {
  return llvm::any_of(schedule.getCopies(), [&](const ScheduledCopy &copy) {
    return transfers.rings.boxes.find(copy.load)->second.isFoundByKernel();
  });
}

/// Verify a loop that copies in place: only iterations after the first one are copied ahead. A
/// producer starts after the program signals it.
LogicalResult KernelExpander::verifyInPlace(const LoopSchedule &schedule) {
  scf::ForOp loop = schedule.getLoop();
  if (Operation *obstacle = findObstacleInLoop(loop, order)) {
    InFlightDiagnostic error =
        loop.emitError("copies a tile ahead of an op that may write to it, or that orders memory");
    error.attachNote(obstacle->getLoc()) << "here";
    return error;
  }
  return success();
}

/// Verify that each producer exists and has something to copy.
LogicalResult KernelExpander::verifyProducers() const {
  tile::FuncOp of = kernel;
  unsigned count = attr ? attr.getProducerWarps().size() : 0;
  for (const std::optional<unsigned> &producer : transfers.producers)
    if (producer && *producer >= count)
      return of.emitError("has copies by producer ")
             << *producer << ", but its schedule has " << count << " producers";
  for (unsigned number = 0; number < count; ++number)
    if (!llvm::is_contained(transfers.producers, number))
      return of.emitError("has producer ") << number << ", which copies nothing";
  return success();
}

/// Verify that a producer can run its loops.
LogicalResult KernelExpander::verifySlice(unsigned producer) const {
  tile::FuncOp of = kernel;
  ProducerSlice needs = getSlice(PartitionSide(transfers, producer));
  if (!needs.getWhyNot().empty())
    return of.emitError("has loops that a producer cannot run: ") << needs.getWhyNot();
  bool needsMessages =
      !needs.isEmpty() || llvm::any_of(transfers.schedules, [this](const LoopSchedule &schedule) {
        return isInPlace(schedule);
      });
  if (needsMessages && attr.getPersistent())
    return of.emitError("cannot be persistent: its producer needs messages from the program");
  if (needsMessages && attr.getProducerWarps().size() > 1)
    return of.emitError("has several producers, of which one needs messages from the program");
  if (needsMessages && getClusterSize(kernel) > 1)
    return of.emitError("has a producer that needs messages from the program, in a cluster");
  return success();
}

/// Plan the box that TMA copies for each load.
LogicalResult KernelExpander::planCopies(ArrayRef<ScheduledCopy> copies, Region &region) {
  for (const ScheduledCopy &copy : copies) {
    tile::LoadOp load = copy.load;
    std::string why;
    std::optional<BoxAccess> box = getBoxToCopy(region, load, copy.tile, analysis, why);
    if (!box)
      return load.emitError("cannot be copied by TMA: ") << why;
    transfers.rings.boxes.try_emplace(load, std::move(*box));
  }
  return success();
}

/// Rows of a box of the map that a copy is by.
int64_t KernelExpander::getRowsOfMap(const ScheduledCopy &copy) const {
  return copy.isMulticast ? *getRowsOfShares(copy.tile, getNumParts(kernel)) : kMaxBoxElements;
}

/// Channels of tiles that a program loads once.
LogicalResult KernelExpander::planProgramCopies() {
  FailureOr<SmallVector<ScheduledCopy, 1>> copies = readProgramCopies(kernel, attr);
  if (failed(copies) || failed(planCopies(*copies, kernel.getBody())))
    return failure();
  for (ScheduledCopy &copy : *copies) {
    tile::LoadOp load = copy.load;
    if (transfers.rings.boxes.find(load)->second.isFoundByKernel())
      return load.emitError(
          "loads from an array that the kernel finds in memory, which a producer cannot do");
    if (failed(verifyOrder(copy, load)))
      return failure();
    ChannelAttr channel = attr.getChannels()[copy.channel];
    if (!transfers.rings.numbers.try_emplace(channel.getNumber(), transfers.rings.channels.size())
             .second)
      return load.emitError("fills channel ") << channel.getNumber() << ", which a loop fills, too";
    copy.channel = transfers.rings.channels.size();
    transfers.rings.channels.emplace_back(copy.tile);
    transfers.slots.push_back(channel.getSlots());
    transfers.producers.push_back(load->getAttrOfType<NodeAttr>(kNodeAttr).getProducer());
  }
  transfers.programCopies = std::move(*copies);
  return success();
}

/// Copies for all blocks are of one tile, equally often.
LogicalResult KernelExpander::verifyMulticast(const LoopSchedule &schedule) const {
  unsigned blocks = getNumParts(kernel);
  for (const ScheduledCopy &copy : schedule.getCopies()) {
    if (!copy.isMulticast)
      continue;
    tile::LoadOp load = copy.load;
    if (blocks == 1)
      return load.emitError("is multicast, but a program has one block (") << kNumPartsAttr << ")";
    if (dependsOnBlock(load.getPtr()) || (load.getMask() && dependsOnBlock(load.getMask())))
      return load.emitError("is multicast, but its tile differs between blocks");
    if (!getRowsOfShares(copy.tile, blocks))
      return load.emitError("is copied by ")
             << blocks << " blocks, but its tile is not as many boxes";
  }
  bool isShared = llvm::any_of(schedule.getChannels(), [&](const ScheduledChannel &channel) {
    return transfers.rings.channels[transfers.rings.getIndex(channel)].isShared();
  });
  if (isShared && isUneven(schedule.getLoop()))
    return schedule.getLoop().emitError(
        "has multicast copies, but blocks have different numbers of iterations");
  return success();
}

/// Loops that have a channel of the same number have its rings in common.
LogicalResult KernelExpander::planRings() {
  for (const LoopSchedule &schedule : transfers.schedules)
    for (const ScheduledChannel &channel : schedule.getChannels()) {
      scf::ForOp loop = schedule.getLoop();
      if (!channel.isByTMA())
        return loop.emitError("has both rings that threads copy to and rings for TMA");
      if (channel.isCopiedInLoop() == (attr && attr.hasProducers()))
        return loop.emitError("has channel ")
               << channel.number << " filled by the "
               << (channel.isCopiedInLoop() ? "program, in a kernel with producer warps"
                                            : "producer, in a kernel without producer warps");
      SmallVector<MemDescType> tiles;
      for (unsigned index : channel.copies)
        tiles.push_back(schedule.getCopies()[index].tile);
      auto [found, isNew] =
          transfers.rings.numbers.try_emplace(channel.number, transfers.rings.channels.size());
      if (isNew) {
        transfers.rings.channels.emplace_back(ArrayRef<MemDescType>());
        transfers.slots.push_back(channel.slots);
        transfers.producers.push_back(channel.producer);
      } else if (transfers.producers[found->second] != channel.producer) {
        return loop.emitError("has channel ")
               << channel.number << " filled by another producer than in a loop before it";
      }
      FailureOr<SmallVector<unsigned, 2>> rings =
          transfers.rings.channels[found->second].join(tiles);
      if (transfers.slots[found->second] != channel.slots || failed(rings))
        return loop.emitError("has other slots in channel ")
               << channel.number << " than a loop before it";
      for (auto [index, ring] : llvm::zip_equal(channel.copies, *rings))
        transfers.rings.rings[schedule.getCopies()[index].load] = ring;
      if (llvm::any_of(channel.copies,
                       [&](unsigned index) { return schedule.getCopies()[index].isMulticast; }))
        transfers.rings.channels[found->second].setBlocks(getNumParts(kernel));
    }
  return success();
}

/// Verify that a kernel can have the maps that its copies need, beside those that it has.
LogicalResult KernelExpander::verifyMaps() const {
  llvm::SmallDenseSet<TensorMapAttr, kMaxTensorMaps> needed;
  for (BlockArgument argument : tile::FuncOp(kernel).getArguments())
    if (TensorMapAttr map = getTensorMap(argument))
      needed.insert(map);
  auto add = [&](ArrayRef<ScheduledCopy> copies) {
    for (const ScheduledCopy &copy : copies)
      if (const BoxAccess &box = transfers.rings.boxes.find(copy.load)->second;
          !box.isFoundByKernel())
        needed.insert(describeTensorMap(kernel, box, copy.tile, getRowsOfMap(copy)));
  };
  add(transfers.programCopies);
  for (const LoopSchedule &schedule : transfers.schedules)
    add(schedule.getCopies());
  if (needed.size() > kMaxTensorMaps)
    return tile::FuncOp(kernel).emitError("needs more tensor maps than a kernel may have");
  return success();
}

LogicalResult KernelExpander::verify() {
  attr = kernel->getAttrOfType<KernelScheduleAttr>(kKernelScheduleAttr);
  if (transfers.schedules.empty()) {
    if (attr && !attr.getChannels().empty())
      return kernel.emitError("has channels, but no loop that producer warps copy for");
    return success();
  }
  if (!kernel.isKernel() || !kernel.getBody().hasOneBlock())
    return kernel.emitError("has loops with copies by TMA, but is not a kernel of one basic block");
  if (Operation *barrier = findWaitForThreads(kernel))
    return barrier->emitError("may have a barrier, in a kernel with copies by TMA");
  if (failed(planRings()))
    return failure();
  for (const LoopSchedule &schedule : transfers.schedules) {
    if (failed(schedule.verify(limit)) ||
        failed(planCopies(schedule.getCopies(), schedule.getLoop().getRegion())) ||
        failed(verifyMulticast(schedule)))
      return failure();
    if (isInPlace(schedule)) {
      if (failed(verifyInPlace(schedule)))
        return failure();
      continue;
    }
    if (failed(verifyOrder(schedule.getCopies(), schedule.getLoop())))
      return failure();
  }
  if (failed(planProgramCopies()))
    return failure();
  if (failed(verifyProducers()))
    return failure();
  for (unsigned number = 0; attr && number < attr.getProducerWarps().size(); ++number)
    if (failed(verifySlice(number)))
      return failure();
  int64_t bytes = 0;
  for (auto [channel, count] : llvm::zip_equal(transfers.rings.channels, transfers.slots))
    bytes += channel.getSlotBytes() * count;
  if (bytes > limit)
    return kernel.emitError("has rings of ") << bytes << " bytes, of which " << limit << " fit";
  if (attr && attr.getPersistent() && !PersistentKernel::isPossible(kernel))
    return kernel.emitError(
        "cannot be persistent: its programs communicate, or read which block they are in");
  return verifyMaps();
}

void KernelExpander::addMaps() {
  addLaunchConditions(kernel, conditions);
  SmallVector<ArrayRef<ScheduledCopy>> all{transfers.programCopies};
  for (const LoopSchedule &schedule : transfers.schedules)
    all.push_back(schedule.getCopies());
  for (ArrayRef<ScheduledCopy> copies : all)
    for (const ScheduledCopy &copy : copies) {
      const BoxAccess &box = transfers.rings.boxes.find(copy.load)->second;
      if (box.isFoundByKernel()) {
        transfers.rings.maps[copy.load] = makeTensorMap(kernel, box, copy.tile).getResult();
        continue;
      }
      FailureOr<BlockArgument> map = addTensorMap(kernel, box, copy.tile, getRowsOfMap(copy));
      assert(succeeded(map) && "maps have been counted");
      transfers.rings.maps[copy.load] = *map;
    }
}

//===----------------------------------------------------------------------===//
// The program's warps
//===----------------------------------------------------------------------===//

void KernelExpander::allocateRings(OpBuilder &builder, Location loc) {
  for (auto [channel, count] : llvm::zip_equal(transfers.rings.channels, transfers.slots))
    channel.allocate(builder, loc, count, warps);
  if (!transfers.messages.empty())
    transfers.mailbox.allocate(builder, loc, ProducerSlice::countWords(transfers.messages), warps);
}

/// Replace the load and the buffers of a tile that is copied once in each program. The program
/// waits for the tile before its first reader, and releases it after its last one.
void KernelExpander::receive(const ScheduledCopy &copy) {
  unsigned index = copy.channel;
  const Channel &channel = transfers.rings.channels[index];
  ChannelPlace place = program.getPlace(index);
  OpBuilder builder(copy.load);
  Location loc = tile::LoadOp(copy.load).getLoc();
  Value tile = transfers.rings.getTile(builder, copy, channel, place.slot);
  program.getPlace(index) = channel.getNext(builder, loc, place);
  SmallVector<Operation *> readers = getReaders(copy);
  builder.setInsertionPoint(readers.front());
  channel.waitUntilFull(builder, loc, place);
  builder.setInsertionPointAfter(readers.back());
  channel.release(builder, loc, place.slot);
  for (LocalAllocOp buffer : copy.buffers) {
    for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
      if (isa<LocalDeallocOp>(user))
        user->erase();
    buffer.getResult().replaceAllUsesWith(tile);
    buffer.erase();
  }
  tile::LoadOp(copy.load).erase();
}

/// Send the producer the message that belongs after an op.
void KernelExpander::sendMessage(Operation *op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  ChannelPlace &place = program.getPlace(transfers.getMailboxChannel());
  transfers.mailbox.send(builder, op->getLoc(), place, transfers.messages.find(op)->second);
  place = transfers.mailbox.getNext(builder, op->getLoc(), place);
  transfers.messages.erase(op);
}

/// Loops wait for their tiles; what is around them carries the places.
void KernelExpander::expandLoops(Block *block) {
  llvm::erase_if(transfers.programCopies, [&](const ScheduledCopy &copy) {
    if (tile::LoadOp(copy.load)->getBlock() != block)
      return false;
    receive(copy);
    return true;
  });
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator())) {
    if (transfers.messages.contains(&op))
      sendMessage(&op);
    if (transfers.markers.remove(&op)) {
      op.erase();
      continue;
    }
    if (auto found = transfers.ofLoop.find(&op); found != transfers.ofLoop.end()) {
      const LoopSchedule &schedule = transfers.schedules[found->second];
      transfers.ofLoop.erase(found);
      // TMA has to see the program's earlier writes.
      if (isInPlace(schedule) && !slice) {
        OpBuilder builder(&op);
        ProxyFenceOp::create(builder, op.getLoc(), /*of_memory=*/true);
        BarrierOp::create(builder, op.getLoc());
      }
      ScheduledLoop(schedule, transfers.rings, program.getAllPlaces()).expand();
      continue;
    }
    if (!program.hasTransfers(&op))
      continue;
    SmallVector<unsigned> used = program.getChannels(&op);
    SmallVector<Value> before = program.getPlaces(used);
    OpBuilder builder(&op);
    auto finish = [&](Block *end) {
      auto yield = cast<scf::YieldOp>(end->getTerminator());
      yield->insertOperands(yield->getNumOperands(), program.getPlaces(used));
    };
    Operation *replacement = nullptr;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<Value> inits(loop.getInitArgs());
      llvm::append_range(inits, before);
      auto to = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits,
                                   /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
      to.getRegion().takeBody(loop.getRegion());
      SmallVector<Location> locs(before.size(), loop.getLoc());
      auto arguments = to.getBody()->addArguments(ValueRange(before).getTypes(), locs);
      program.setPlaces(used, SmallVector<Value>(arguments.begin(), arguments.end()));
      expandLoops(to.getBody());
      finish(to.getBody());
      replacement = to;
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      SmallVector<Value> inits(loop.getInits());
      llvm::append_range(inits, before);
      SmallVector<Type> types(loop.getResultTypes());
      llvm::append_range(types, ValueRange(before).getTypes());
      auto to = scf::WhileOp::create(builder, loop.getLoc(), types, inits);
      to.getBefore().takeBody(loop.getBefore());
      to.getAfter().takeBody(loop.getAfter());
      SmallVector<Location> locs(before.size(), loop.getLoc());
      for (Block *inner : {to.getBeforeBody(), to.getAfterBody()}) {
        auto arguments = inner->addArguments(ValueRange(before).getTypes(), locs);
        program.setPlaces(used, SmallVector<Value>(arguments.begin(), arguments.end()));
        expandLoops(inner);
        if (inner == to.getBeforeBody())
          to.getConditionOp().getArgsMutable().append(program.getPlaces(used));
        else
          finish(inner);
      }
      replacement = to;
    } else {
      auto branch = cast<scf::IfOp>(op);
      SmallVector<Type> types(branch.getResultTypes());
      llvm::append_range(types, ValueRange(before).getTypes());
      auto to = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(),
                                  /*withElseRegion=*/true);
      to.getThenRegion().takeBody(branch.getThenRegion());
      if (branch.elseBlock()) {
        to.getElseRegion().takeBody(branch.getElseRegion());
      } else {
        OpBuilder inside = OpBuilder::atBlockEnd(to.elseBlock());
        scf::YieldOp::create(inside, branch.getLoc());
      }
      for (Block *inner : {to.thenBlock(), to.elseBlock()}) {
        program.setPlaces(used, before);
        expandLoops(inner);
        finish(inner);
      }
      replacement = to;
    }
    replacement->setDiscardableAttrs(op.getDiscardableAttrDictionary());
    program.setPlaces(used, replacement->getResults().take_back(before.size()));
    op.replaceAllUsesWith(replacement->getResults().take_front(op.getNumResults()));
    op.erase();
  }
}

/// The last op of a block that needs, or has inside, one of these; null if some are elsewhere.
static Operation *findLast(Block *block, ArrayRef<Operation *> needs) {
  Operation *last = nullptr;
  for (Operation *need : needs) {
    Operation *around = block ? block->findAncestorOpInBlock(*need) : nullptr;
    if (!around)
      return nullptr;
    last = last && around->isBeforeInBlock(last) ? last : around;
  }
  return last;
}

/// The rings end with the last op that needs them, in the branch that all of these are in: what
/// comes after may have their place.
void KernelExpander::endRings(Block *block) {
  SmallVector<Operation *> needs;
  for (const auto &[loop, index] : transfers.ofLoop)
    needs.push_back(loop);
  for (const ScheduledCopy &copy : transfers.programCopies)
    needs.push_back(getReaders(copy).back());
  Operation *last = findLast(block, needs);
  while (auto branch = dyn_cast<scf::IfOp>(last)) {
    Operation *inside = findLast(branch.thenBlock(), needs);
    if (!inside)
      inside = findLast(branch.elseBlock(), needs);
    if (!inside)
      break;
    last = inside;
  }
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  for (Channel &channel : transfers.rings.channels)
    channel.deallocate(builder, last->getLoc());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

WarpSpecializeOp KernelExpander::emitRegions(OpBuilder &builder) {
  if (attr.getOccupancy() > 1)
    kernel->setAttr(kOccupancyAttr, builder.getI32IntegerAttr(attr.getOccupancy()));
  IntegerAttr own;
  DenseI32ArrayAttr others;
  if (attr.getRegisters() != 0) {
    own = builder.getI32IntegerAttr(attr.getRegisters());
    others = builder.getDenseI32ArrayAttr(attr.getProducerRegisters());
  }
  auto regions = WarpSpecializeOp::create(builder, kernel.getLoc(),
                                          builder.getDenseI32ArrayAttr(attr.getProducerWarps()),
                                          own, others, UnitAttr(), attr.getProducerWarps().size());
  regions.setInCluster(llvm::any_of(transfers.rings.channels,
                                    [](const Channel &channel) { return channel.isShared(); }));
  return regions;
}

/// Puts what the default region does into the loop over programs.
static void addPrograms(const PersistentKernel &programs, Block *body) {
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  Location loc = body->getParentOp()->getLoc();
  scf::ForOp loop = programs.emitLoop(builder, ValueRange());
  // There is nothing more to be copied ahead.
  loop->setAttr(kStagesAttr, builder.getI32IntegerAttr(1));
  for (Operation &op : llvm::make_early_inc_range(*body))
    if (&op != loop)
      op.moveBefore(loop.getBody(), loop.getBody()->end());
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  IRMapping mapping;
  programs.mapIds(inside, loop, mapping);
  programs.replaceIds(mapping);
  inside.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(inside, loc);
}

/// The kernel as it is, but for its loops.
void KernelExpander::expandInLoops() {
  transfers.rings.isInStep = llvm::all_of(transfers.schedules, [&](const LoopSchedule &schedule) {
    return schedule.getChannels().size() == transfers.rings.channels.size() &&
           llvm::all_of(schedule.getChannels(), [&](const ScheduledChannel &channel) {
             return channel.base == 0 && channel.slots == transfers.slots.front();
           });
  });
  Block *body = &kernel.getBody().front();
  Operation *first = nullptr;
  for (Operation &op : llvm::reverse(*body))
    if (program.hasTransfers(&op))
      first = &op;
  OpBuilder builder(first);
  Location loc = first->getLoc();
  allocateRings(builder, loc);
  // TMA sees new barriers, and comes after all that threads did to the memory of rings.
  ProxyFenceOp::create(builder, loc);
  BarrierOp::create(builder, loc);
  program.emitPlaces(builder, loc);
  endRings(body);
  expandLoops(body);
}

void KernelExpander::expandForProducer() {
  Location loc = kernel.getLoc();
  Block *body = &kernel.getBody().front();
  planMessages();
  SmallVector<Operation *> old;
  for (Operation &op : body->without_terminator())
    old.push_back(&op);
  OpBuilder builder(body->getTerminator());
  std::optional<PersistentKernel> persistent;
  if (attr.getPersistent()) {
    persistent.emplace(kernel, attr.getOrder(), attr.getGroup());
    persistent->emitBounds(builder);
  }
  allocateRings(builder, loc);
  WarpSpecializeOp regions = emitRegions(builder);
  for (Region &region : regions->getRegions())
    if (region.empty())
      region.emplaceBlock();
  Block *own = &regions.getDefaultRegion().front();
  for (Operation *op : old)
    op->moveBefore(own, own->end());

  for (auto [index, partition] : llvm::enumerate(regions.getPartitions()))
    ProducerPartition(kernel, transfers, *slice, index).emit(partition, own, persistent);

  if (persistent)
    addPrograms(*persistent, own);
  endRings(own);
  builder.setInsertionPointToStart(own);
  program.emitPlaces(builder, loc);
  builder.setInsertionPointToEnd(own);
  PartitionEndOp::create(builder, loc);
  expandLoops(own);
}

void KernelExpander::expand() {
  if (transfers.schedules.empty())
    return;
  addMaps();
  for (auto [index, schedule] : llvm::enumerate(transfers.schedules))
    transfers.ofLoop[schedule.getLoop()] = index;
  kernel->removeAttr(kKernelScheduleAttr);
  if (attr && attr.hasProducers())
    expandForProducer();
  else
    expandInLoops();
}
