// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a schedule computes what its loop does. A value of iteration j that an op of stage s
// computes is there in iteration j + s of the new loop, from the event on in which it is done. Who
// uses it in stage t for iteration j + d (d = 1 for what the loop carries, else 0) does so in
// iteration j + d + t: it has to be a later iteration, or a later event of the same one. The slot
// of a ring goes from copy to readers to the next copy by the same rule.

#include "EarlyLoads.h"
#include "LoadsAhead.h"
#include "LoopSchedule.h"
#include "LoopSlice.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace {

/// Stages of ops that are no copies.
constexpr int kFirstStage = -1, kLastStage = 1;

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
  // What the loop carries unchanged, or from further back, is there when an iteration begins.
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
    return refuse("what is carried from an op that is done an iteration ahead");
  if (distance > 1 && !(later == 1 && at.stage == 1 && stage == 0))
    return refuse("a value more than one stage after the one that computes it");
  if (!isOwn || replaced.contains(producer))
    return success();
  const ScheduledOp &made = getOp(producer);
  bool isAccumulator = isa<WarpgroupDotOp>(user) && user->getOperand(2) == value &&
                       llvm::count(user->getOperands(), value) == 1;
  if (isa<MemDescType>(value.getType()) && distance > 0)
    return refuse("a buffer that is no slot of a ring, in another stage");
  if (made.inFlight != 0 && !(later == 1 && isAccumulator))
    return refuse("the result of a dot that is in flight over the end of the iteration");
  if (made.inFlight != 0 && distance > 1)
    return refuse("an accumulator that is in flight, more than one stage later");
  // An accumulator may be under way.
  int64_t done = made.isAsync() && isAccumulator && at.isAsync()
                     ? getTime(producer, ScheduleEvent::Op)
                     : getTimeDone(producer);
  if (distance == 0 && done >= getTime(user, ScheduleEvent::Op))
    return refuse("a value before it is there: the order of its op, or its wait, is too late");
  return success();
}

/// An asynchronous dot reads its operands until it is waited for.
LogicalResult LoopSchedule::verifyInFlight(const ScheduledOp &node) const {
  scf::ForOp of = loop;
  auto dot = dyn_cast<WarpgroupDotOp>(node.op);
  if (!dot)
    return node.op->emitError("is no wgmma, and cannot be waited for elsewhere");
  if (dot.getIsAsync())
    return dot.emitError("is asynchronous already");
  auto type = dyn_cast<MemDescType>(dot.getB().getType());
  if (dot.getPrecision() != tile::InputPrecision::TF32 && type)
    return dot.emitError("is a dot of parts, which threads add up: it cannot be asynchronous");
  for (Value operand : {Value(dot.getA()), Value(dot.getB())}) {
    Operation *root =
        isa<MemDescType>(operand.getType()) ? skipTrans(operand).getDefiningOp() : nullptr;
    if (root && of->isAncestor(root) && !replaced.contains(root))
      return dot.emitError("is asynchronous, and reads a buffer that every iteration writes");
  }
  // Registers that it reads are those of the next operand, too.
  if (!isa<MemDescType>(dot.getA().getType())) {
    if (node.inFlight != 0)
      return dot.emitError("is in flight over the end of the iteration, and reads registers");
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
          dot.emitError("is waited for behind the op that computes its next operand in registers");
      error.attachNote(op->getLoc()) << "here";
      return error;
    }
  }
  int64_t begun = getTime(dot, ScheduleEvent::Op), waited = getTime(dot, ScheduleEvent::DotWait);
  if (node.inFlight == 0 && waited < begun)
    return dot.emitError("is waited for before it begins");
  return success();
}

LogicalResult LoopSchedule::verifyOps() const {
  scf::ForOp of = loop;
  for (const ScheduleEvent &event : events) {
    if (event.kind != ScheduleEvent::Op || replaced.contains(event.op))
      continue;
    const ScheduledOp &node = getOp(event.op);
    if (node.stage < kFirstStage || node.stage > kLastStage)
      return event.op->emitError("has stage ")
             << node.stage << ": other ops than copies have stages " << kFirstStage << " to "
             << kLastStage;
    bool isDot = isa<WarpgroupDotOp>(event.op);
    auto load = dyn_cast<tile::LoadOp>(event.op);
    if (load && node.stage < 0 && canLoadAhead(load)) {
      if (failed(verifyLoadAhead(load)))
        return failure();
    } else if (node.stage != 0 && !isDot && !(isPure(event.op) && event.op->getNumRegions() == 0)) {
      return event.op->emitError("has effects or regions, and stays in its iteration");
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
  // What the loop gives is there behind it.
  for (Value value : of.getYieldedValues())
    if (Operation *op = value.getDefiningOp();
        op && op->getBlock() == of.getBody() && getStage(value) < 0)
      return op->emitError("is done an iteration ahead, and cannot be what the loop carries");
  return success();
}

/// Why an address cannot be computed ahead; empty if it can.
static std::string addAddress(tile::LoadOp load, LoopSlice &addresses) {
  for (Value operand : {load.getPtr(), load.getMask()})
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
      return load.emitError("cannot be done an iteration ahead: ") << why;
  for (unsigned index : address.getCarried())
    if (Type type = scf::ForOp(loop).getRegionIterArg(index).getType(); !type.isIntOrIndex())
      return load.emitError("cannot be done an iteration ahead: its address is carried as ")
             << type << ", and not as an integer";
  if (!getSmallStep(loop))
    return load.emitError(
        "is done an iteration ahead, in a loop whose step is not a small constant");
  return success();
}

LogicalResult LoopSchedule::verifyChannel(const ScheduledChannel &channel) const {
  scf::ForOp of = loop;
  tile::LoadOp load = copies[channel.copies.front()].load;
  for (unsigned index : channel.copies)
    if (tile::LoadOp other = copies[index].load; other.getOther() && !isZero(other.getOther()))
      return other.emitError("gives masked-off lanes something else than 0, which no copy does");
  if (!channel.isByTMA() && !channel.isCopiedInLoop())
    return load.emitError("cp.async is begun by the threads of the program");
  if (!channel.isByTMA()) {
    LoopSlice addresses(loop);
    for (unsigned index : channel.copies)
      if (std::string why = addAddress(copies[index].load, addresses); !why.empty())
        return tile::LoadOp(copies[index].load).emitError("cannot be copied ahead: ") << why;
  }
  if (channel.isCopiedInLoop() && !getSmallStep(loop))
    return of.emitError("copies ahead in a loop whose step is not a small constant");
  if (!channel.isCopiedInLoop() && channel.ahead != 0)
    return load.emitError("has a stage, but a producer runs ahead as far as slots are empty");
  if (channel.wait && !channel.isByTMA())
    return load.emitError("all copies by cp.async are waited for where an iteration begins");
  if (channel.isByTMA()) {
    if (channel.readers.empty())
      return load.emitError("fills a ring by TMA that no dot reads");
    for (unsigned index : channel.copies) {
      const ScheduledCopy &copy = copies[index];
      for (Operation *user : tile::LoadOp(copy.load)->getUsers())
        if (!llvm::is_contained(copy.buffers, user))
          return user->emitError("uses a tile that TMA brings to a ring otherwise than as a "
                                 "buffer of the ring's type");
    }
    for (const ChannelReader &reader : channel.readers)
      if (!isa<WarpgroupDotOp, LocalLoadOp>(reader.op))
        return reader.op->emitError("is no wgmma or local_load, and uses a ring that TMA fills");
  }
  int64_t iteration = events.size() + 1;
  int64_t copied = 0;
  for (auto [time, event] : llvm::enumerate(events))
    if (event.kind == ScheduleEvent::Copy && &channels[event.channel] == &channel)
      copied = time;
  for (const ChannelReader &reader : channel.readers) {
    if (channel.isByTMA() && reader.stage < 0)
      return reader.op->emitError("is done an iteration ahead, where there may be no tile");
    if (!channel.isCopiedInLoop())
      continue;
    // Copies by cp.async are waited for at the beginning of an iteration, of the ones before.
    if (channel.ahead + reader.stage < 1)
      return reader.op->emitError(
                 "reads the tile of an iteration before it is copied: its copy is ")
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
    // Who looks at a tile waits for it, or comes behind who does.
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
      bytes += MemDescType(copy.tile).getRing(channel.slots).getSlotBytes() * channel.slots;
  if (bytes == 0)
    return success();
  int64_t available = limit - kExchangeBytes - getOtherBytes(loop, replaced);
  if (bytes > available)
    return scf::ForOp(loop).emitError("has rings of ")
           << bytes << " bytes, of which " << available << " fit into shared memory";
  return success();
}

/// Copies by cp.async, and loads of stage -1, come before what iterations before theirs do.
LogicalResult LoopSchedule::verifyOrder() const {
  if (llvm::all_of(channels, [](const ScheduledChannel &channel) { return channel.isByTMA(); }) &&
      !hasLoadsAhead())
    return success();
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  Operation *obstacle = findObstacleInLoop(loop, order);
  if (!obstacle)
    return success();
  InFlightDiagnostic error = scf::ForOp(loop).emitError(
      "copies ahead what the iterations before may write, or past what orders memory");
  error.attachNote(obstacle->getLoc()) << "here";
  return error;
}

LogicalResult LoopSchedule::verify(int64_t limit) const {
  for (const ScheduledChannel &channel : channels)
    if (failed(verifyChannel(channel)))
      return failure();
  return failure(failed(verifyOps()) || failed(verifyOrder()) || failed(verifyMemory(limit)));
}
