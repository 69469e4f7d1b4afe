// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifies that a schedule computes the same as its loop. A value of iteration j from an op of
// stage s is available in iteration j + s of the new loop, after that op's event. Its user in stage
// t, for iteration j + d (d = 1 for carried values, else 0), runs in iteration j + d + t. That must
// be a later iteration, or a later event of the same one. The slot of a ring goes from copy to
// readers to the next copy by the same rule.

#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "LoadsAhead.h"
#include "LoopSchedule.h"
#include "Programs/SlicedDot.h"
#include "RingMemory.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace {

/// Stages of ops that are no copies, which bound the code before and behind the loop.
constexpr int kMaxStageOfOp = 8;

} // namespace

LogicalResult LoopSchedule::verifyUse(Operation *user, Value value) const {
  scf::ForOp of = loop;
  const ScheduledOp &at = getOp(user);
  int later = 0;
  Value from = value;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != of.getBody() || argument == of.getInductionVar())
      return success();
    later = 1;
    from = of.getYieldedValues()[argument.getArgNumber() - 1];
  }
  Operation *producer = from.getDefiningOp();
  // Values that the loop carries unchanged, or from further back, are available when an iteration
  // begins.
  bool isOwn = producer && producer->getBlock() == of.getBody();
  int stage = isOwn ? getStage(from) : 0;
  int distance = later + at.stage - stage;
  auto refuse = [&](const Twine &why) {
    InFlightDiagnostic error = user->emitError("uses ") << why;
    if (producer)
      error.attachNote(producer->getLoc()) << "here";
    return error;
  };
  if (distance < 0)
    return refuse("a value in a stage before the one that computes it");
  if (later == 1 && stage < 0)
    return refuse("a carried value that an op computes in an iteration before");
  if (!isOwn)
    return success();
  if (replaced.contains(producer)) {
    // Threads that compute with a tile itself read it from its ring where it was loaded.
    if (isa<tile::LoadOp>(producer) && distance == 0 &&
        getTime(producer, ScheduleEvent::Op) >= getTime(user, ScheduleEvent::Op))
      return refuse("a tile before it is read from its ring");
    return success();
  }
  const ScheduledOp &made = getOp(producer);
  bool isAccumulator = isa<AsyncDotOp>(user) && user->getOperand(kAccOperand) == value &&
                       llvm::count(user->getOperands(), value) == 1;
  if (isa<MemDescType>(value.getType()) && distance > 0)
    return refuse("a buffer of another stage that is not a slot of a ring");
  if (made.inFlight != 0 && !(later == 1 && isAccumulator))
    return refuse("the result of a dot that is in flight over the end of the iteration");
  if (made.inFlight != 0 && distance > 1)
    return refuse("an accumulator that is in flight, more than one stage later");
  // An accumulator may be in flight.
  int64_t done = made.isAsync() && isAccumulator && at.isAsync()
                     ? getTime(producer, ScheduleEvent::Op)
                     : getTimeDone(producer);
  if (distance == 0 && done >= getTime(user, ScheduleEvent::Op))
    return refuse("a value before it is available: its op, or the wait for it, comes too late");
  return success();
}

/// An asynchronous dot reads its operands until it is waited for.
LogicalResult LoopSchedule::verifyInFlight(const ScheduledOp &node) const {
  scf::ForOp of = loop;
  auto dot = dyn_cast<AsyncDotOp>(node.op);
  if (!dot)
    return node.op->emitError("is not an asynchronous dot: only the wait for one can be elsewhere");
  if (std::string why = whyNotAsync(loop, dot, replaced); !why.empty())
    return dot.emitError(why);
  // Registers that it reads are those of the next operand, too.
  if (!isa<MemDescType>(dot.getA().getType())) {
    if (node.inFlight != 0)
      return dot.emitError(
          "reads registers, and so cannot be in flight past the end of its iteration");
    Value operand = dot.getA();
    int later = 0;
    if (auto argument = dyn_cast<BlockArgument>(operand);
        argument && argument.getOwner() == of.getBody()) {
      operand = of.getYieldedValues()[argument.getArgNumber() - 1];
      later = 1;
    }
    Operation *op = operand.getDefiningOp();
    if (op && op->getBlock() == of.getBody() && !replaced.contains(op) &&
        later + node.stage - getStage(operand) > 0 &&
        getTime(op, ScheduleEvent::Op) < getTime(dot, ScheduleEvent::DotWait)) {
      InFlightDiagnostic error =
          dot.emitError("is waited for after the op that overwrites its operand in registers");
      error.attachNote(op->getLoc()) << "here";
      return error;
    }
  }
  int64_t begun = getTime(dot, ScheduleEvent::Op), waited = getTime(dot, ScheduleEvent::DotWait);
  if (node.inFlight == 0 && waited < begun)
    return dot.emitError("is waited for before it begins");
  return success();
}

/// For slices that are expanded once tiles have layouts: the rules that are known before.
LogicalResult LoopSchedule::verifySlices(Operation *op) const {
  auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
  if (!node || node.getSlices() == 0)
    return success();
  if (failed(SlicedDot::verifyKind(op)))
    return failure();
  if (node.getAhead() != 0 && getLastStage() > 0)
    return op->emitError("has a slice ahead, in a loop with ops of a stage above 0");
  return success();
}

LogicalResult LoopSchedule::verifyOps() const {
  scf::ForOp of = loop;
  for (const ScheduleEvent &event : events) {
    if (event.kind != ScheduleEvent::Op || replaced.contains(event.op))
      continue;
    const ScheduledOp &node = getOp(event.op);
    if (std::abs(node.stage) > kMaxStageOfOp)
      return event.op->emitError("has stage ")
             << node.stage << "; ops that are not copies have stages " << -kMaxStageOfOp << " to "
             << kMaxStageOfOp;
    if (node.stage < -1 && !getSmallStep(loop))
      return event.op->emitError("has stage ")
             << node.stage << ", in a loop whose step is not a small constant";
    if (failed(verifySlices(event.op)))
      return failure();
    bool isDot = isa<AsyncDotOp>(event.op);
    auto load = dyn_cast<tile::LoadOp>(event.op);
    if (load && node.stage < 0 && canLoadAhead(load)) {
      if (failed(verifyLoadAhead(load)))
        return failure();
    } else if (node.stage != 0 && !isDot && !(isPure(event.op) && event.op->getNumRegions() == 0)) {
      return event.op->emitError("has effects or regions, and so must have stage 0");
    }
    if (node.isAsync() && failed(verifyInFlight(node)))
      return failure();
    WalkResult result = event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentRegion() == &of.getRegion() &&
            !(isa<MemDescType>(operand.getType()) && getCopy(operand)) &&
            failed(verifyUse(event.op, operand)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  // The loop's results are available behind it.
  for (Value value : of.getYieldedValues())
    if (Operation *op = value.getDefiningOp();
        op && op->getBlock() == of.getBody() && getStage(value) < 0)
      return op->emitError(
          "computes a value that the loop carries, and so cannot run in an iteration before");
  return success();
}

/// Why an address cannot be computed ahead; empty if it can.
static std::string addAddress(tile::LoadOp load, LoopSlice &addresses, bool withOther) {
  for (Value operand : {load.getPtr(), load.getMask(), withOther ? load.getOther() : Value()})
    if (operand)
      if (std::string why = addresses.add(operand); !why.empty())
        return why;
  return "";
}

/// In the last iteration it is done for that one again, which the loop's variable and carried
/// integers decide.
LogicalResult LoopSchedule::verifyLoadAhead(tile::LoadOp load) const {
  LoopSlice address(loop);
  for (Value operand : load->getOperands())
    if (std::string why = address.add(operand); !why.empty())
      return load.emitError("cannot run in an iteration before: ") << why;
  for (unsigned index : address.getCarried())
    if (Type type = scf::ForOp(loop).getRegionIterArg(index).getType(); !type.isIntOrIndex())
      return load.emitError("cannot run in an iteration before: its address depends on a carried "
                            "value of type ")
             << type << ", not an integer";
  if (!getSmallStep(loop))
    return load.emitError(
        "runs in an iteration before, in a loop whose step is not a small constant");
  return success();
}

LogicalResult LoopSchedule::verifyChannel(const ScheduledChannel &channel) const {
  scf::ForOp of = loop;
  tile::LoadOp load = copies[channel.copies.front()].load;
  for (unsigned index : channel.copies)
    if (tile::LoadOp other = copies[index].load;
        other.getOther() && !isZero(other.getOther()) && !channel.isByThreads())
      return other.emitError(
          "has another value than 0 for masked-off lanes, which copies fill with 0");
  if (!channel.isByTMA() && !channel.isCopiedInLoop())
    return load.emitError("is copied by a producer, which fills rings by TMA only");
  if (!channel.isByTMA()) {
    LoopSlice addresses(loop);
    for (unsigned index : channel.copies)
      if (std::string why = addAddress(copies[index].load, addresses, channel.isByThreads());
          !why.empty())
        return tile::LoadOp(copies[index].load).emitError("cannot be copied ahead: ") << why;
  }
  if (channel.isCopiedInLoop() && channel.ahead > 1 && !getSmallStep(loop))
    return of.emitError("copies ahead in a loop whose step is not a small constant");
  if (!channel.isCopiedInLoop() && channel.ahead != 0)
    return load.emitError("has a stage, but a producer fills every empty slot");
  if (channel.wait && !channel.isByTMA())
    return load.emitError(
        "has a wait, but only copies by TMA do: an iteration begins with the wait for others");
  if (channel.isByTMA()) {
    if (channel.readers.empty())
      return load.emitError("fills a ring by TMA that no dot reads");
    for (unsigned index : channel.copies) {
      const ScheduledCopy &copy = copies[index];
      for (Operation *user : tile::LoadOp(copy.load)->getUsers())
        if (!llvm::is_contained(copy.buffers, user))
          return user->emitError(
              "uses a tile that TMA copies to a ring, but not as a buffer of the ring's type");
    }
    for (const ChannelReader &reader : channel.readers)
      if (!isa<AsyncDotOp, LocalLoadOp>(reader.op))
        return reader.op->emitError(
            "uses a ring that TMA fills, but is neither an asynchronous dot "
            "nor a local_load");
  }
  int64_t iteration = events.size() + 1;
  int64_t copied = 0;
  for (auto [time, event] : llvm::enumerate(events))
    if (event.kind == ScheduleEvent::Copy && &channels[event.channel] == &channel)
      copied = time;
  for (const ChannelReader &reader : channel.readers) {
    if (channel.isByTMA() && reader.stage < 0)
      return reader.op->emitError(
          "runs in an iteration before its own, for which TMA may not have copied a tile");
    if (!channel.isCopiedInLoop())
      continue;
    // Copies by cp.async are waited for at the beginning of an iteration, of the ones before.
    if (channel.ahead + reader.stage < 1)
      return reader.op->emitError("reads a tile before it is copied: its copy is ")
             << channel.ahead << " iterations ahead";
    int64_t end =
        (channel.ahead - static_cast<int64_t>(channel.slots)) * iteration + getEndOfUse(reader);
    // All warps meet before copies by cp.async, and have to have waited for their dots then.
    bool isAsync = !replaced.contains(reader.op) && getOp(reader.op).isAsync();
    if (end >= (isAsync && !channel.isByTMA() ? 0 : copied)) {
      InFlightDiagnostic error = load.emitError("fills a slot that is still read: with ")
                                 << channel.slots << " slots its copy is " << channel.ahead
                                 << " iterations ahead";
      error.attachNote(reader.op->getLoc()) << "read here";
      return error;
    }
  }
  if (channel.isByTMA()) {
    // A reader of a tile waits for it, or follows a reader that does.
    int64_t waited = 0;
    for (auto [time, event] : llvm::enumerate(events))
      if (event.kind == ScheduleEvent::TileWait && &channels[event.channel] == &channel)
        waited = time;
    int stage = channel.wait ? 0 : channel.getFirstReader().stage;
    for (const ChannelReader &reader : channel.readers)
      if (stage * iteration + waited >
          reader.stage * iteration + getTime(reader.op, ScheduleEvent::Op))
        return reader.op->emitError("reads a tile before it is waited for");
  }
  return success();
}

LogicalResult LoopSchedule::verifyMemory(int64_t limit) const {
  int64_t bytes = 0;
  for (const ScheduledCopy &copy : copies)
    if (const ScheduledChannel &channel = channels[copy.channel]; !channel.isByTMA())
      bytes += getBytesOfSlots(llvm::ArrayRef(copy.tile)) * channel.slots;
  if (bytes == 0)
    return success();
  int64_t available = getBytesForRings(loop, limit, replaced);
  if (bytes > available)
    return scf::ForOp(loop).emitError("has rings of ")
           << bytes << " bytes, of which " << available << " fit into shared memory";
  return success();
}

/// True if launches of the kernel check all conditions.
static bool areChecked(tile::FuncOp kernel, const LaunchConditions &conditions) {
  auto known = kernel->getAttrOfType<AffineMapAttr>(kLaunchConditionsAttr);
  auto apart =
      readArraysApart(kernel->getAttr(kArraysApartAttr)).value_or(SmallVector<LaunchRangePair>());
  auto programs = kernel->getAttrOfType<IntegerAttr>(tile::kLimitedProgramsAttr);
  if (conditions.mostPrograms && !(programs && programs.getInt() <= conditions.mostPrograms))
    return false;
  auto bounds = kernel->getAttrOfType<ArrayAttr>(tile::kProgramBoundsAttr);
  auto isBound = [&](StringRef text) {
    return bounds && llvm::is_contained(bounds, StringAttr::get(kernel.getContext(), text));
  };
  if (!llvm::all_of(conditions.programBounds, isBound))
    return false;
  return llvm::all_of(conditions.notNegative,
                      [&](LaunchExpr condition) {
                        return known &&
                               llvm::is_contained(known.getValue().getResults(), condition);
                      }) &&
         llvm::all_of(conditions.apart,
                      [&](const auto &pair) { return llvm::is_contained(apart, pair); });
}

/// Copies by cp.async, and loads of stages below 0, come before what iterations before theirs do.
LogicalResult LoopSchedule::verifyOrder() const {
  SmallVector<tile::LoadOp> copied;
  for (const ScheduledCopy &copy : copies)
    if (!channels[copy.channel].isByTMA())
      copied.push_back(copy.load);
  llvm::append_range(copied, getLoadsAhead());
  if (copied.empty())
    return success();
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  Operation *obstacle = findObstacleInLoop(loop, order);
  if (!obstacle)
    return success();
  Operation *ofCopies = nullptr;
  std::optional<LaunchConditions> conditions =
      findConditionsInLoop(loop, getEarlyLoads(loop, copied), order, analysis, ofCopies);
  if (conditions && areChecked(loop->getParentOfType<tile::FuncOp>(), *conditions))
    return success();
  if (!conditions)
    obstacle = ofCopies;
  InFlightDiagnostic error = scf::ForOp(loop).emitError(
      "copies a tile ahead of an op that may write to it, or that orders memory");
  error.attachNote(obstacle->getLoc()) << "here";
  return error;
}

LogicalResult LoopSchedule::verify(int64_t limit) const {
  for (const ScheduledChannel &channel : channels)
    if (failed(verifyChannel(channel)))
      return failure();
  return failure(failed(verifyOps()) || failed(verifyOrder()) || failed(verifyMemory(limit)));
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// The op that writes to shared memory between one op and another in its block.
static Operation *findWriteBetween(Operation *from, Operation *to) {
  auto isShared = [](const OpAccess &access) {
    return !access.resource || access.resource == SharedMemory::get();
  };
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode())
    for (const OpAccess &access : getMemoryAccesses(op))
      if (access.writes && isShared(access))
        return op;
  return nullptr;
}

SlicedDot::Obstacle SlicedDot::findObstacle() const {
  Type type = dot->getResult(0).getType();
  if (getNumBlocks(dot->getParentOfType<ModuleOp>()) > 1)
    return {"blocks of a cluster share its tiles"};
  if (tile::getShape(type).size() != 2)
    return {"it is a batched dot"};
  if (isa<tile::DotOp>(dot) && getElementTypeOrSelf(type).isF16())
    return {"an f16 sum by multiply-adds is rounded once, after the last one"};
  for (LocalLoadOp load : {a, b}) {
    if (!load || load.getFirst())
      return {"an operand is not a whole buffer"};
    if (!load->hasOneUse())
      return {"an operand has other users", load};
    if (load->getBlock() != dot->getBlock())
      return {"an operand is read in another block", load};
    if (Operation *write = findWriteBetween(load, dot))
      return {"a buffer that it reads may be written before the dot", write};
  }
  if (std::string why = getDot().whyNotSliced(); !why.empty())
    return {why};
  if (!llvm::isPowerOf2_64(getDepth()))
    return {"its K of " + std::to_string(getDepth()) + " is not a power of two"};
  return {};
}

SlicedDot::Obstacle SlicedDot::findObstacle(int64_t slices) const {
  int64_t depth = getDepth(), least = getStepsOfInstruction();
  if (depth / slices < least)
    return {"of its K of " + std::to_string(depth) + " a slice has " + std::to_string(least) +
            " at least, and there are " + std::to_string(slices)};
  return {};
}

/// The ring, or buffer, that a view is of.
static Value getRing(Value buffer) {
  while (Operation *view = buffer.getDefiningOp()) {
    if (!isa<MemDescTransOp, MemDescIndexOp>(view))
      break;
    buffer = view->getOperand(0);
  }
  return buffer;
}

/// True if an op, or one in it, does something to a buffer of these.
static bool usesRing(Operation *op, const llvm::SmallDenseSet<Value, 4> &rings) {
  WalkResult result = op->walk([&](Operation *inner) {
    bool uses = !isa<MemDescTransOp, MemDescIndexOp>(inner) &&
                llvm::any_of(inner->getOperands(), [&](Value operand) {
                  return isa<MemDescType>(operand.getType()) && rings.contains(getRing(operand));
                });
    return uses ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

static bool ordersCopies(Operation *op) {
  WalkResult result = op->walk([](Operation *inner) {
    return isa<AsyncWaitOp, AsyncCopyOp, AsyncCommitOp>(inner) ? WalkResult::interrupt()
                                                               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// The ops before the dot in an iteration are its beginning, and move before the dot of the
/// iteration before: waits for copies, copies, and their operands. The iteration's rest computes
/// again what it takes from there.
SlicedDot::Obstacle SlicedDot::findObstacleAhead(int64_t slices) const {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  if (!loop)
    return {"it is not in a loop"};
  if (countTogether(slices) < slices)
    return {"its multiply-adds are too many to be unrolled"};
  Block *body = loop.getBody();
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  llvm::SmallDenseSet<Value, 4> rings;
  for (LocalLoadOp load : {a, b}) {
    auto slot = load.getBuffer().getDefiningOp<MemDescIndexOp>();
    if (!slot || slot->getBlock() != body || !isScalarWork(slot.getResult(), loop))
      return {"an operand is not a slot of a ring that changes with the iteration", load};
    rings.insert(getRing(slot.getResult()));
  }
  SmallVector<AsyncCopyOp> copies;
  bool waits = false;
  for (Operation &op : *body) {
    if (&op == dot)
      break;
    if (&op == a || &op == b)
      continue;
    waits |= isa<AsyncWaitOp>(op);
    if (auto copy = dyn_cast<AsyncCopyOp>(op)) {
      copies.push_back(copy);
      rings.insert(getRing(copy.getBuffer()));
    } else if (!isa<AsyncWaitOp, AsyncCommitOp>(op) && (!isPure(&op) || op.getNumRegions() != 0)) {
      return {"an op that is not a copy precedes it in the iteration", &op};
    }
    for (Operation *user : op.getUsers()) {
      Operation *ancestor = body->findAncestorOpInBlock(*user);
      if (!ancestor->isBeforeInBlock(dot) &&
          llvm::any_of(op.getResults(), [&](Value result) { return !isScalarWork(result, loop); }))
        return {"an op after it uses a tile that an op before it computes", &op};
    }
    for (Value operand : op.getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argument.getOwner() == body && argument != loop.getInductionVar() &&
          !isScalarWork(yield.getOperand(argument.getArgNumber() - 1), loop))
        return {"an op before it reads a carried value that the iteration before computes late",
                &op};
    }
  }
  if (!waits)
    return {"its loop does not wait for copies", loop};
  // With all slots of a ring in use the next copies fill that of this iteration.
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  auto writesArrays = [](Operation *op) {
    return llvm::any_of(getMemoryAccesses(op), [](const OpAccess &access) {
      return access.writes && access.isOfMemory() && access.resource != SharedMemory::get();
    });
  };
  for (Operation *op = dot; op != yield; op = op->getNextNode()) {
    if (ordersCopies(op))
      return {"an op after it orders copies, or waits for them", op};
    if (usesRing(op, rings))
      return {"an op after it uses the ring that the next copies fill", op};
    if (writesArrays(op) && !llvm::all_of(copies, [&](AsyncCopyOp copy) {
          return order.mayPass(copy, op, loop).isIndependent();
        }))
      return {"an op after it may write to the tiles that the next copies read", op};
  }
  return {};
}

LogicalResult SlicedDot::verifyKind(Operation *op) {
  if (isKind(op))
    return success();
  return op->emitError("has slices, but is not a dot of operands in registers");
}

LogicalResult SlicedDot::verify(NodeAttr node) const {
  auto check = [&](StringRef what, const Obstacle &obstacle) {
    if (!obstacle)
      return success();
    InFlightDiagnostic error = dot->emitError(what) << obstacle.why;
    if (obstacle.place)
      error.attachNote(obstacle.place->getLoc()) << "here";
    return failure();
  };
  StringRef slices = "cannot be sliced: ";
  if (failed(check(slices, findObstacle())) ||
      failed(check(slices, findObstacle(node.getSlices()))))
    return failure();
  if (node.getAhead() == 0)
    return success();
  return check("cannot run the next iteration's first slice ahead: ",
               findObstacleAhead(node.getSlices()));
}
