// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScheduledLoop.h"

#include "Layouts/LayoutGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// What the new loop carries
//===----------------------------------------------------------------------===//

void ScheduledLoop::forEachCarried(llvm::function_ref<void(Value &)> visit) {
  carried.forEachValue(visit);
  async.forEachAddress(visit);
  carried.forEachCrossing(visit);
  byTMA.forEachSlot(visit);
  async.forEachSlot(visit);
}

SmallVector<Value> ScheduledLoop::getCarried() {
  SmallVector<Value> result;
  forEachCarried([&](Value &value) { result.push_back(value); });
  llvm::append_range(result, byTMA.getPlaces());
  return result;
}

void ScheduledLoop::setCarried(ValueRange from) {
  forEachCarried([&](Value &value) {
    value = from.front();
    from = from.drop_front();
  });
  byTMA.setPlaces(from);
}

//===----------------------------------------------------------------------===//
// Operands of an iteration's ops
//===----------------------------------------------------------------------===//

/// Select the value of a later iteration, for ops of a stage below 0. After the last iteration
/// there may be nothing to load, and `own`, the value of this one, is used again.
Value ScheduledLoop::emitUnlessLast(OpBuilder &builder, Value next, Value own, unsigned ahead) {
  if (schedule.getLoadsAhead().empty() || next == own || !own.getType().isIntOrIndex())
    return next;
  Value hasMore = counter.emitHasMore(builder, current.variables.front(), ahead);
  return arith::SelectOp::create(builder, getLoc(), hasMore, next, own);
}

/// The loop's variable for ops of a stage.
Value ScheduledLoop::emitVariable(OpBuilder &builder, int stage) {
  if (stage >= 0)
    return current.variables[stage];
  Value own = current.variables.front();
  Value next = stage == -1
                   ? arith::AddIOp::create(builder, getLoc(), own, loop.getStep()).getResult()
                   : counter.emitAhead(builder, own, -stage);
  return emitUnlessLast(builder, next, own, -stage);
}

/// A slot of a ring, and what looks at it in another way, for ops of a stage.
Value ScheduledLoop::emitView(OpBuilder &builder, Value buffer, int stage) {
  IRMapping &mapping = mappings[stage];
  if (Value known = mapping.lookupOrNull(buffer))
    return known;
  Operation *op = buffer.getDefiningOp();
  if (auto trans = dyn_cast<MemDescTransOp>(op)) {
    emitView(builder, trans.getBuffer(), stage);
    return builder.clone(*op, mapping)->getResult(0);
  }
  const ScheduledCopy &copy = *schedule.getCopy(buffer);
  Value view = async.has(copy.channel) ? async.emitBuffer(builder, copy, current, stage)
                                       : byTMA.emitBuffer(builder, copy, current, stage);
  for (LocalAllocOp same : copy.buffers)
    mapping.map(same.getResult(), view);
  return view;
}

/// Map an operand of an op of a stage, if its mapping does not have it yet.
void ScheduledLoop::mapOperand(OpBuilder &builder, Value value, int stage) {
  IRMapping &mapping = mappings[stage];
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
  // The value at the beginning of the next iteration: stages below -1 use no carried values.
  Value next = mappings[0].lookupOrDefault(loop.getYieldedValues()[argument.getArgNumber() - 1]);
  mapping.map(value, emitUnlessLast(builder, next, mappings[0].lookupOrDefault(value), 1));
}

//===----------------------------------------------------------------------===//
// Events of an iteration
//===----------------------------------------------------------------------===//

void ScheduledLoop::emitOp(OpBuilder &builder, Operation *op) {
  const ScheduledOp &node = schedule.getOp(op);
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      mapOperand(builder, operand, node.stage);
  });
  Operation *copy = builder.clone(*op, mappings[node.stage]);
  if (node.isAsync()) {
    cast<AsyncOpInterface>(copy).setInFlight();
    dots.begin(op);
    return;
  }
  carried.map(op, mappings);
  byTMA.finishUse(builder, op, current);
}

/// Where a tile was loaded: its slot, and the tile itself for who computes with it.
void ScheduledLoop::emitTile(OpBuilder &builder, Operation *load) {
  for (const ScheduledCopy &copy : schedule.getCopies()) {
    if (copy.load != load || !async.has(copy.channel))
      continue;
    ArrayRef<ChannelReader> readers = schedule.getChannels()[copy.channel].readers;
    if (llvm::none_of(readers, [](const ChannelReader &reader) { return reader.stage == 0; }))
      return;
    Value buffer = async.emitBuffer(builder, copy, current, /*stage=*/0);
    for (LocalAllocOp same : copy.buffers)
      mappings[0].map(same.getResult(), buffer);
    if (llvm::any_of(readers, [&](const ChannelReader &reader) { return reader.op == load; }))
      mappings[0].map(
          load->getResult(0),
          LocalLoadOp::create(builder, load->getLoc(), load->getResult(0).getType(), buffer));
  }
}

void ScheduledLoop::emitDotWait(OpBuilder &builder, Operation *dot) {
  const ScheduledOp &node = schedule.getOp(dot);
  auto work = cast<AsyncOpInterface>(dot);
  unsigned pending = std::min(work.getMaxPendingGroups(), dots.wait(dot));
  Value result = dot->getResult(0);
  bool isAccumulator =
      llvm::all_of(result.getUses(), [](OpOperand &use) { return isAccOfDot(use); });
  if (node.inFlight != 0 || isAccumulator) {
    work.createWait(builder, dot->getLoc(), ValueRange(), pending);
  } else {
    IRMapping &mapping = mappings[node.stage];
    Value begun = mapping.lookup(result);
    mapping.map(result, work.createWait(builder, dot->getLoc(), begun, pending)->getResult(0));
    carried.map(dot, mappings);
  }
  byTMA.finishUse(builder, dot, current);
}

/// True for an event that may be between two dots of a turn: it takes threads no time.
bool ScheduledLoop::isBesideDots(const ScheduleEvent &event) const {
  if (event.kind != ScheduleEvent::Op)
    return event.kind == ScheduleEvent::TileWait;
  return schedule.getReplaced().contains(event.op) ||
         !current.has(schedule.getOp(event.op).stage) ||
         (isMemoryEffectFree(event.op) &&
          llvm::none_of(event.op->getResultTypes(), llvm::IsaPred<RankedTensorType>));
}

/// Ping-pong: warpgroups begin dots that follow on each other alternately. `events` are those that
/// remain of the iteration.
void ScheduledLoop::emitPingPong(OpBuilder &builder, ArrayRef<ScheduleEvent> events) {
  if (!schedule.isPingPong())
    return;
  if (hasTurn)
    events = events.drop_while([&](const ScheduleEvent &event) { return isBesideDots(event); });
  bool isDot = !events.empty() && events.front().kind == ScheduleEvent::Op &&
               isa<AsyncDotOp>(events.front().op);
  if (isDot == hasTurn)
    return;
  hasTurn = isDot;
  if (hasTurn)
    PingPongWaitOp::create(builder, getLoc());
  else
    PingPongPassOp::create(builder, getLoc());
}

void ScheduledLoop::emitCopies(OpBuilder &builder, ArrayRef<unsigned> channels) {
  SmallVector<unsigned> ofTMA;
  for (unsigned channel : channels)
    if (async.has(channel))
      async.emitCopies(builder, channel, current.variables.front());
    else
      ofTMA.push_back(channel);
  if (!ofTMA.empty())
    byTMA.emitCopies(builder, ofTMA, current);
}

void ScheduledLoop::emitEvent(OpBuilder &builder, const ScheduleEvent &event) {
  switch (event.kind) {
  case ScheduleEvent::TileWait:
    return byTMA.emitWait(builder, event.channel, current);
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

void ScheduledLoop::beginIteration(LoopIteration iteration) {
  current = std::move(iteration);
  mappings.clear();
  dots.beginIteration();
  byTMA.beginIteration();
  async.beginIteration();
  for (auto [stage, variable] : llvm::enumerate(current.variables))
    if (variable && current.has(stage))
      mappings[stage].map(loop.getInductionVar(), variable);
  carried.beginIteration(current, mappings);
}

void ScheduledLoop::endIteration(OpBuilder &builder) {
  // The tensor cores are passed on with the end of the iteration.
  emitPingPong(builder, {});
  carried.endIteration(current, mappings);
  if (current.drained == 0)
    async.endIteration(builder);
  byTMA.endIteration(builder, current);
}

void ScheduledLoop::emitIteration(OpBuilder &builder, LoopIteration iteration) {
  beginIteration(std::move(iteration));
  async.emitWait(builder, current);
  for (unsigned channel : byTMA.getChannels())
    for (unsigned index : schedule.getChannels()[channel].copies)
      if (const ScheduledCopy &copy = schedule.getCopies()[index];
          schedule.getChannels()[channel].base == 0)
        emitView(builder, LocalAllocOp(copy.buffers.front()).getResult(), /*stage=*/0);
  ArrayRef<ScheduleEvent> events = schedule.getEvents();
  while (!events.empty()) {
    const ScheduleEvent &event = events.front();
    if (event.kind == ScheduleEvent::Copy) {
      emitPingPong(builder, events);
      SmallVector<unsigned> channels;
      while (!events.empty() && events.front().kind == ScheduleEvent::Copy) {
        channels.push_back(events.front().channel);
        events = events.drop_front();
      }
      emitCopies(builder, channels);
      continue;
    }
    ArrayRef<ScheduleEvent> rest = events;
    events = events.drop_front();
    if (event.op && !schedule.getReplaced().contains(event.op) &&
        !current.has(schedule.getOp(event.op).stage))
      continue;
    emitPingPong(builder, rest);
    emitEvent(builder, event);
  }
  endIteration(builder);
}

/// An iteration of the epilogue: the ops of late stages, and no copies.
void ScheduledLoop::emitLastOps(OpBuilder &builder, LoopIteration iteration) {
  beginIteration(std::move(iteration));
  async.emitWait(builder, current);
  ArrayRef<ScheduleEvent> events = schedule.getEvents();
  for (auto [index, event] : llvm::enumerate(events)) {
    bool isOfOp = event.op && !schedule.getReplaced().contains(event.op);
    if (event.kind == ScheduleEvent::Copy || (event.op && !isOfOp) ||
        (isOfOp && !current.has(schedule.getOp(event.op).stage)))
      continue;
    emitPingPong(builder, events.drop_front(index));
    emitEvent(builder, event);
  }
  endIteration(builder);
}

//===----------------------------------------------------------------------===//
// Phases of the loop
//===----------------------------------------------------------------------===//

/// Maps a slot that an op before the loop reads, and views of it.
void ScheduledLoop::mapFirstTile(OpBuilder &builder, Operation *op, Value buffer, int stage,
                                 int iteration) {
  SmallVector<Operation *> views;
  for (; auto trans = buffer.getDefiningOp<MemDescTransOp>(); buffer = trans.getBuffer())
    views.push_back(trans);
  IRMapping &mapping = mappings[stage];
  if (!mapping.contains(buffer))
    mapping.map(buffer,
                async.emitFirstBuffer(builder, op->getLoc(), *schedule.getCopy(buffer), iteration));
  for (Operation *view : llvm::reverse(views))
    if (!mapping.contains(view->getResult(0)))
      builder.clone(*view, mapping);
}

/// Ops of stages up to `last`, which is below 0, each for the iteration that is its stage after.
void ScheduledLoop::emitEarly(OpBuilder &builder, int last) {
  async.emitEarlyWait(builder, last);
  mappings.clear();
  Value lower = loop.getLowerBound();
  current = LoopIteration{{lower}};
  for (int stage = schedule.getFirstStage(); stage <= last; ++stage) {
    Value variable = lower;
    if (int ahead = last - stage; ahead > 0)
      variable = emitUnlessLast(builder, counter.emitAhead(builder, lower, ahead), lower, ahead);
    mappings[stage].map(loop.getInductionVar(), variable);
    // Only stage -1 uses carried values, here those of the first iteration.
    mappings[stage].map(loop.getRegionIterArgs(), loop.getInitArgs());
  }
  carried.beginEarly(last, mappings);
  for (const ScheduleEvent &event : schedule.getEvents()) {
    if (event.kind != ScheduleEvent::Op || schedule.getReplaced().contains(event.op))
      continue;
    int stage = schedule.getOp(event.op).stage;
    if (stage > last)
      continue;
    event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isa<MemDescType>(operand.getType()) && schedule.getCopy(operand))
          mapFirstTile(builder, event.op, operand, stage, last - stage);
    });
    builder.clone(*event.op, mappings[stage]);
  }
  carried.endEarly(last, mappings);
}

/// The steady state: from the oldest iteration that has something to do up to `end`.
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
  LoopIteration iteration;
  iteration.last = schedule.getLastStage();
  iteration.variables.resize(iteration.last + 1, to.getInductionVar());
  for (int stage = iteration.last - 1; stage >= 0; --stage)
    iteration.variables[stage] =
        arith::AddIOp::create(inside, loc, iteration.variables[stage + 1], loop.getStep());
  emitIteration(inside, std::move(iteration));
  scf::YieldOp::create(inside, loc, getCarried());
  setCarried(to.getResults());
}

/// The ops of late stages that remain after the last iteration. `variables` are those of the
/// last iterations, the last one first, and `last` is the last stage that has run.
void ScheduledLoop::emitEpilogue(OpBuilder &builder, ArrayRef<Value> variables, int last) {
  for (int drained = 1; drained <= schedule.getLastStage(); ++drained) {
    LoopIteration iteration;
    iteration.drained = drained;
    iteration.last = std::min(last + drained, schedule.getLastStage());
    iteration.variables.resize(iteration.last + 1);
    for (int stage = drained; stage <= iteration.last; ++stage)
      iteration.variables[stage] = variables[stage - drained];
    emitLastOps(builder, std::move(iteration));
  }
}

SmallVector<Value> ScheduledLoop::emitSteadyState(OpBuilder &builder) {
  if (schedule.getLastStage() == 0) {
    emitLoop(builder, loop.getUpperBound());
    return emitResults(builder);
  }
  SmallVector<Value> variables{counter.emitLast(builder)};
  for (int stage = 1; stage < schedule.getLastStage(); ++stage)
    variables.push_back(arith::SubIOp::create(builder, getLoc(), variables.back(), loop.getStep()));
  emitLoop(builder, variables.back());
  emitEpilogue(builder, variables, schedule.getLastStage());
  return emitResults(builder);
}

/// The iterations before those that have all stages. `variables` are those of the iterations so
/// far, the last one first; the last one is there, and is emitted here.
SmallVector<Value> ScheduledLoop::emitPrologue(OpBuilder &builder, SmallVector<Value> variables) {
  Location loc = getLoc();
  LoopIteration iteration;
  iteration.last = variables.size() - 1;
  iteration.variables = variables;
  const int last = iteration.last;
  emitIteration(builder, std::move(iteration));
  if (last + 1 == schedule.getLastStage())
    return emitSteadyState(builder);
  // The next phase depends on whether there is another iteration.
  Value hasMore = counter.emitHasMore(builder, variables.front(), 1);
  SmallVector<Value> before = getCarried();
  SmallVector<Type> types;
  for (unsigned index : carried.getKept())
    types.push_back(loop.getRegionIterArg(index).getType());
  llvm::append_range(types, ValueRange(byTMA.getPlaces()).getTypes());
  auto branch = scf::IfOp::create(builder, loc, types, hasMore, /*withElseRegion=*/true);
  branch->setAttr(kIsLikelyAttr, builder.getUnitAttr());
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    OpBuilder inside = OpBuilder::atBlockEnd(block);
    SmallVector<Value> results;
    if (block == branch.thenBlock()) {
      SmallVector<Value> next{
          arith::AddIOp::create(inside, loc, variables.front(), loop.getStep())};
      llvm::append_range(next, variables);
      results = emitPrologue(inside, std::move(next));
    } else {
      setCarried(before);
      emitEpilogue(inside, variables, last);
      results = emitResults(inside);
    }
    llvm::append_range(results, byTMA.getPlaces());
    scf::YieldOp::create(inside, loc, results);
  }
  SmallVector<Value> results(branch.getResults().take_front(carried.getKept().size()));
  byTMA.setPlaces(branch.getResults().drop_front(results.size()));
  return results;
}

/// Emit the loop's results, after the waits for everything in flight.
SmallVector<Value> ScheduledLoop::emitResults(OpBuilder &builder) {
  SmallVector<Value> results;
  for (auto [index, value] : llvm::zip_equal(carried.getKept(), carried.getValues())) {
    Value result = value;
    Operation *op = loop.getYieldedValues()[index].getDefiningOp();
    bool isOwn = op && op->getBlock() == loop.getBody() && !schedule.getReplaced().contains(op);
    if (isOwn && schedule.getOp(op).inFlight != 0)
      result = cast<AsyncOpInterface>(op)
                   .createWait(builder, getLoc(), result, /*pending=*/0)
                   ->getResult(0);
    results.push_back(result);
  }
  byTMA.emitEnd(builder);
  return results;
}

/// The loop, where it is known to run; its results.
SmallVector<Value> ScheduledLoop::emitGuarded(OpBuilder &builder) {
  for (int last = schedule.getFirstStage(); last < 0; ++last)
    emitEarly(builder, last);
  byTMA.beginLoop(builder);
  if (schedule.getLastStage() == 0)
    return emitSteadyState(builder);
  return emitPrologue(builder, {loop.getLowerBound()});
}

/// Moves what waits for loads before the loop behind the first copies, which begin meanwhile. A
/// short program would wait twice for memory otherwise.
void ScheduledLoop::putOffUsersOfLoads(OpBuilder &builder) {
  Block *block = loop->getBlock();
  llvm::SmallSetVector<Operation *, 8> waiting;
  for (Operation *op = &block->front(); op != loop; op = op->getNextNode()) {
    auto buffer = dyn_cast<LocalAllocOp>(op);
    bool canMove = buffer ? buffer.getSource() != Value() : isPure(op) && op->getNumRegions() == 0;
    bool waits = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      return made && made->getBlock() == block &&
             (isa<tile::LoadOp>(made) || waiting.contains(made));
    });
    if (canMove && waits)
      waiting.insert(op);
  }
  SmallVector<Operation *> moved;
  for (Operation *op : llvm::reverse(waiting)) {
    bool isNeededBefore = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *around = block->findAncestorOpInBlock(*user);
      return around->isBeforeInBlock(loop) && !waiting.contains(around);
    });
    if (isNeededBefore)
      waiting.remove(op);
    else
      moved.push_back(op);
  }
  bool hasStored = false;
  for (Operation *op : llvm::reverse(moved)) {
    op->moveBefore(loop);
    hasStored |= isa<LocalAllocOp>(op);
  }
  // Without it, warps would meet in each iteration.
  if (hasStored && !byTMA.getChannels().empty())
    BarrierOp::create(builder, getLoc());
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
  async.allocate(builder);
  bool isGuarded =
      dots.areAcrossIterations() || schedule.getFirstStage() < 0 || schedule.getLastStage() > 0;
  Operation *before = loop->getPrevNode();
  byTMA.emitFirstCopies(builder);
  bool hasCopied = loop->getPrevNode() != before;
  Value runs = isGuarded || !async.isEmpty() ? counter.emitRuns(builder) : Value();
  async.emitFirstCopies(builder, runs);
  if (hasCopied || !async.isEmpty())
    putOffUsersOfLoads(builder);
  SmallVector<Value> results;
  if (!isGuarded) {
    results = emitGuarded(builder);
    async.emitEnd(builder);
  } else {
    // Where a loop that does not run joins one that does, accumulators must not be under way.
    SmallVector<Value> before(carried.getValues());
    size_t count = before.size();
    llvm::append_range(before, byTMA.getPlaces());
    auto guarded = scf::IfOp::create(builder, loc, ValueRange(before).getTypes(), runs,
                                     /*withElseRegion=*/true);
    guarded->setAttr(kIsLikelyAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(guarded.elseBlock());
    // Something to do, or what the accumulators are then would be set on the way to the loop, too.
    if (async.isEmpty() && asyncDot)
      asyncDot.asAsync().createWait(builder, loc, ValueRange(), /*pending=*/0);
    async.emitEnd(builder);
    scf::YieldOp::create(builder, loc, before);
    builder.setInsertionPointToStart(guarded.thenBlock());
    SmallVector<Value> after = emitGuarded(builder);
    llvm::append_range(after, byTMA.getPlaces());
    async.emitEnd(builder);
    scf::YieldOp::create(builder, loc, after);
    builder.setInsertionPointAfter(guarded);
    results = llvm::to_vector_of<Value>(guarded.getResults().take_front(count));
    byTMA.setPlaces(guarded.getResults().drop_front(count));
  }
  for (auto [index, value] : llvm::zip_equal(carried.getKept(), results))
    loop.getResult(index).replaceAllUsesWith(value);
  loop.erase();
}
