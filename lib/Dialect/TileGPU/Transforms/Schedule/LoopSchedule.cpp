// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopSchedule.h"

#include "Facts/LoopSlice.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static NodeAttr getNode(Operation *op) { return op->getAttrOfType<NodeAttr>(kNodeAttr); }

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult LoopSchedule::readChannels(ScheduleAttr attr) {
  pingPong = attr.getPingPong();
  for (ChannelAttr from : attr.getChannels()) {
    ScheduledChannel &channel = channels.emplace_back();
    channel.number = from.getNumber();
    channel.slots = from.getSlots();
    channel.copy = from.getCopy();
  }
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (NodeAttr node = getNode(load); node && node.getChannel())
      if (failed(readCopy(load, node)))
        return failure();
  for (const ScheduledChannel &channel : channels)
    if (channel.copies.empty())
      return loop.emitError("no load fills channel ") << channel.number;
  return success();
}

LogicalResult LoopSchedule::readCopy(tile::LoadOp load, NodeAttr node) {
  auto found = llvm::find_if(channels, [&](const ScheduledChannel &channel) {
    return channel.number == *node.getChannel();
  });
  if (found == channels.end())
    return load.emitError("fills channel ")
           << *node.getChannel() << ", which the loop does not have";
  ScheduledChannel &channel = *found;
  if (channel.copies.empty()) {
    channel.ahead = -node.getStage();
    channel.order = node.getOrder();
    channel.wait = node.getWait();
    channel.producer = node.getProducer();
  } else if (channel.ahead != -node.getStage() || channel.order != node.getOrder() ||
             channel.wait != node.getWait() || channel.producer != node.getProducer()) {
    return load.emitError("the copies of channel ")
           << channel.number << " must have one stage and order, and the same warps";
  }
  if (!isa<RankedTensorType>(load.getType()))
    return load.emitError("is a copy, but loads a scalar");
  ScheduledCopy &copy = copies.emplace_back();
  copy.load = load;
  copy.channel = found - channels.begin();
  copy.ring = channel.copies.size();
  copy.isMulticast = node.getMulticast();
  copy.tile = dyn_cast_or_null<MemDescType>(node.getTile());
  for (Operation *user : load->getUsers())
    if (auto buffer = dyn_cast<LocalAllocOp>(user)) {
      if (!copy.tile)
        copy.tile = buffer.getType();
      if (buffer.getType() == copy.tile && user->getBlock() == loop.getBody())
        copy.buffers.push_back(buffer);
    }
  if (!copy.tile)
    return load.emitError("has no buffer: its node must have the type of a tile");
  if (copy.tile.getShape() != cast<RankedTensorType>(load.getType()).getShape() ||
      copy.tile.getElementType() != getElementTypeOrSelf(load.getType()))
    return load.emitError("loads a tile of another type than its channel's, ") << copy.tile;
  channel.copies.push_back(copies.size() - 1);
  replaced.insert(load);
  replaced.insert(copy.buffers.begin(), copy.buffers.end());
  return success();
}

/// The default node: in the op's own iteration, with the order of the op before it.
LogicalResult LoopSchedule::readOps() {
  live = getLiveOps(loop, replaced);
  int order = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    NodeAttr node = getNode(&op);
    ScheduledOp &read = ops[&op];
    read.op = &op;
    if (node && node.getRole() == NodeRole::Copy) {
      if (!replaced.contains(&op))
        return op.emitError("is not a load, and so cannot be a copy");
    } else if (node) {
      read.stage = node.getStage();
      read.wait = node.getWait();
      read.inFlight = node.getInFlight();
      if (read.stage == 0)
        order = node.getOrder();
      read.order = node.getOrder();
      continue;
    }
    read.order = order;
  }
  for (const auto &[op, read] : ops)
    if (live.contains(op)) {
      firstStage = std::min(firstStage, read.stage);
      lastStage = std::max(lastStage, read.stage);
    }
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (op->getBlock() == loop.getBody() || !getNode(op))
      return WalkResult::advance();
    op->emitError("has a node, but is in a branch or loop, which is one node");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

FailureOr<LoopSchedule> LoopSchedule::read(scf::ForOp loop) {
  LoopSchedule schedule(loop);
  auto attr = loop->getAttrOfType<ScheduleAttr>(kScheduleAttr);
  if (failed(schedule.readChannels(attr)) || failed(schedule.readOps()))
    return failure();
  schedule.orderEvents();
  schedule.findReaders();
  // The places of waits for tiles depend on the first readers of the tiles.
  schedule.orderEvents();
  schedule.findReaders();
  return schedule;
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

const ScheduledCopy *LoopSchedule::getCopy(Value buffer) const {
  Operation *root = skipTrans(buffer).getDefiningOp();
  for (const ScheduledCopy &copy : copies)
    if (llvm::is_contained(copy.buffers, root))
      return &copy;
  return nullptr;
}

int LoopSchedule::getStage(Value value) const {
  Operation *op = value.getDefiningOp();
  auto found = op ? ops.find(op) : ops.end();
  return found == ops.end() || replaced.contains(op) ? 0 : found->second.stage;
}

SmallVector<Operation *> LoopSchedule::getAsyncDots(int first, int last) const {
  SmallVector<Operation *> dots;
  for (const ScheduleEvent &event : events)
    if (event.kind == ScheduleEvent::Op && !replaced.contains(event.op))
      if (const ScheduledOp &op = getOp(event.op);
          op.isAsync() && first <= op.stage && op.stage <= last)
        dots.push_back(event.op);
  return dots;
}

SmallVector<tile::LoadOp> LoopSchedule::getLoadsAhead() const {
  SmallVector<tile::LoadOp> loads;
  for (auto load : scf::ForOp(loop).getBody()->getOps<tile::LoadOp>())
    if (auto entry = ops.find(load); entry != ops.end() && entry->second.stage < 0 &&
                                     live.contains(load) && !replaced.contains(load))
      loads.push_back(load);
  return loads;
}

//===----------------------------------------------------------------------===//
// The events of an iteration
//===----------------------------------------------------------------------===//

/// True if an op is only another view of a slot of a ring. Ops of other stages have their own
/// one.
static bool isView(Operation *op) { return isa<MemDescTransOp>(op); }

bool LoopSchedule::isUsedInOwnStage(Operation *view) const {
  return llvm::any_of(view->getUsers(), [&](Operation *user) {
    Operation *inBody = scf::ForOp(loop).getBody()->findAncestorOpInBlock(*user);
    if (!inBody || !live.contains(inBody))
      return false;
    return isView(inBody) ? isUsedInOwnStage(inBody) : ops.find(inBody)->second.stage == 0;
  });
}

void LoopSchedule::orderEvents() {
  struct Key {
    int order, rank, position, before;
    bool operator<(const Key &other) const {
      return std::tie(order, rank, position, before) <
             std::tie(other.order, other.rank, other.position, other.before);
    }
  };
  SmallVector<std::pair<Key, ScheduleEvent>> keyed;
  auto add = [&](ScheduleEvent event, int rank, int position, int before = 0) {
    keyed.push_back({{event.order, rank, position, before}, event});
  };
  llvm::DenseMap<Operation *, int> positions;
  constexpr int kBefore = 1 << 20;
  int position = 0;
  scf::ForOp of = loop;
  for (Operation &op : of.getBody()->without_terminator()) {
    positions[&op] = position++;
    const ScheduledOp &node = ops.find(&op)->second;
    bool isCopy = isa<tile::LoadOp>(op) && replaced.contains(&op);
    // A buffer that is a slot of a ring, and its end.
    if ((replaced.contains(&op) && !isCopy) ||
        (isa<LocalDeallocOp>(op) && replaced.contains(op.getOperand(0).getDefiningOp())))
      continue;
    if (!live.contains(&op) || (isView(&op) && getCopy(op.getResult(0)) && !isUsedInOwnStage(&op)))
      continue;
    add({ScheduleEvent::Op, node.order, 0, &op}, ScheduleEvent::Op, positions[&op]);
    if (node.isAsync())
      add({ScheduleEvent::DotWait, *node.wait, 0, &op}, ScheduleEvent::DotWait,
          // Those of the iteration before first.
          positions[&op] - (node.inFlight ? kBefore : 0));
  }
  for (auto [number, channel] : llvm::enumerate(channels)) {
    unsigned index = number;
    if (channel.isCopiedInLoop())
      add({ScheduleEvent::Copy, channel.order, index, nullptr}, ScheduleEvent::Copy, index);
    if (!channel.isByTMA() || channel.readers.empty())
      continue;
    if (channel.wait) {
      add({ScheduleEvent::TileWait, *channel.wait, index, nullptr}, ScheduleEvent::TileWait, index);
      continue;
    }
    // Before its first reader.
    int first = channel.getFirstReader().stage;
    std::optional<std::pair<int, int>> place;
    for (const ChannelReader &reader : channel.readers) {
      std::pair<int, int> of{getOp(reader.op).order, positions[reader.op]};
      if (reader.stage == first && (!place || of < *place))
        place = of;
    }
    add({ScheduleEvent::TileWait, place->first, index, nullptr}, ScheduleEvent::Op, place->second,
        static_cast<int>(index) - static_cast<int>(channels.size()));
  }
  llvm::sort(keyed, [](const auto &a, const auto &b) { return a.first < b.first; });
  events.clear();
  times.clear();
  for (const auto &[key, event] : keyed) {
    if (event.op)
      times[{event.op, event.kind}] = events.size();
    events.push_back(event);
  }
}

int64_t LoopSchedule::getTime(Operation *op, ScheduleEvent::Kind kind) const {
  auto found = times.find({op, kind});
  return found == times.end() ? -1 : found->second;
}

/// When the result of an op is there, in the iteration in which it is.
int64_t LoopSchedule::getTimeDone(Operation *op) const {
  return getTime(op, getOp(op).isAsync() ? ScheduleEvent::DotWait : ScheduleEvent::Op);
}

/// When a reader is done with a tile, as a number that is larger the later that is.
int64_t LoopSchedule::getEndOfUse(const ChannelReader &reader) const {
  const ScheduledOp &op = getOp(reader.op);
  bool isLoad = replaced.contains(reader.op);
  int64_t iterations = reader.stage + (isLoad ? 0 : static_cast<int>(op.inFlight));
  return iterations * static_cast<int64_t>(events.size() + 1) +
         (isLoad ? getTime(reader.op, ScheduleEvent::Op) : getTimeDone(reader.op));
}

void LoopSchedule::findReaders() {
  for (ScheduledChannel &channel : channels)
    channel.readers.clear();
  auto add = [&](const ScheduledCopy &copy, Operation *op, int stage) {
    auto &readers = channels[copy.channel].readers;
    if (llvm::none_of(readers, [&](const ChannelReader &reader) { return reader.op == op; }))
      readers.push_back({op, stage});
  };
  for (const ScheduleEvent &event : events) {
    if (event.kind != ScheduleEvent::Op || isView(event.op))
      continue;
    if (replaced.contains(event.op)) {
      // Ops that use the tile itself read it from the ring at the place of the load.
      for (const ScheduledCopy &copy : copies)
        if (copy.load == event.op && llvm::any_of(event.op->getUsers(), [&](Operation *user) {
              Operation *inBody = loop.getBody()->findAncestorOpInBlock(*user);
              return inBody && (inBody == loop.getBody()->getTerminator() ||
                                (!replaced.contains(inBody) && live.contains(inBody)));
            }))
          add(copy, event.op, 0);
      continue;
    }
    event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isa<MemDescType>(operand.getType()))
          if (const ScheduledCopy *copy = getCopy(operand))
            add(*copy, event.op, getOp(event.op).stage);
    });
  }
  for (ScheduledChannel &channel : channels) {
    if (channel.readers.empty())
      continue;
    auto isOwn = [](const ChannelReader &reader) { return reader.stage == 0; };
    channel.base = llvm::any_of(channel.readers, isOwn) ? 0 : channel.readers.front().stage;
    channel.lastReader = llvm::max_element(channel.readers, [&](const auto &a, const auto &b) {
                           return getEndOfUse(a) < getEndOfUse(b);
                         })->op;
  }
}
