// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Specializer.h"

#include "Facts/LoopSlice.h"
#include "Facts/Multicast.h"
#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Which loops
//===----------------------------------------------------------------------===//

bool Specializer::refuse(Operation *loop, const Twine &why, Operation *place) {
  RemarkInFlight remark = emitRemark(loop, RemarkKind::LoopNotSpecialized)
                          << "loop is not specialised: " << named("reason", why.str());
  if (place)
    remark.attachNote(place->getLoc()) << "here";
  return false;
}

/// Registers of a thread for what a loop carries and computes.
int64_t Specializer::getWantedRegisters(const BoxLoop &planned) const {
  scf::ForOp loop = planned.loop;
  int64_t words = 0, between = 0;
  for (Value value : loop.getRegionIterArgs())
    words += getRegisters(value.getType(), warps);
  if (planned.order)
    return planned.order->getRegisters(warps);
  // One operand is held while the next is computed.
  if (AsyncDotOp late = planned.lateDot) {
    for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
      if (dot != late)
        words += getRegisters(dot.getType(), warps);
    return words + RegisterBudget::kWithLateDot + getRegisters(late.getA().getType(), warps);
  }
  // Results of dots that are live at once, before the next dot reads them.
  SmallVector<AsyncDotOp> inner;
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>()) {
    llvm::erase_if(inner, [&](AsyncDotOp earlier) {
      return llvm::all_of(earlier->getUsers(), [&](Operation *user) {
        Operation *around = loop.getBody()->findAncestorOpInBlock(*user);
        return around && around->isBeforeInBlock(dot);
      });
    });
    if (!llvm::is_contained(dot->getUsers(), loop.getBody()->getTerminator()))
      inner.push_back(dot);
    int64_t together = 0;
    for (AsyncDotOp held : inner)
      together += getRegisters(held.getType(), warps);
    between = std::max(between, together);
  }
  return words +
         (between ? RegisterBudget::kWithConversions + between : RegisterBudget::kWithCarriedDots);
}

/// The copies of a loop, which may come before everything that is done to memory before them.
bool Specializer::planCopies(BoxLoop &planned) {
  BoxTransport transport(kernel, analysis, order);
  TransportPlan plan = transport.plan(planned.loop);
  planned.isInPlace = BoxTransport::isInPlace(plan.copies);
  if (auto obstacle = transport.findObstacle(planned.loop, plan, conditions)) {
    RemarkInFlight remark = emitRemark(planned.loop, RemarkKind::LoopNotSpecialized)
                            << "loop is not specialised: " << named("reason", obstacle->why);
    for (auto [place, note] : obstacle->notes)
      remark.attachNote(place->getLoc()) << note;
    return false;
  }
  if (!plan.refused.empty())
    return refuse(planned.loop, plan.refused.front().second, plan.refused.front().first);
  planned.loads = std::move(plan.copies);
  return true;
}

void BoxLoop::addTo(ProducerSlice &slice) const {
  slice.needLoop(loop);
  for (const PlannedCopy &load : loads)
    slice.needBox(load.box);
}

/// True if a producer can run a loop, and those around it, at least with messages.
bool Specializer::planMessagesOf(BoxLoop &planned) {
  ProducerSlice slice(kernel, planned.loop);
  planned.addTo(slice);
  planned.needsMessages = planned.isInPlace || !slice.isEmpty();
  // If a thread of the program copies for a loop in place, there are no messages.
  if (planned.isInPlace)
    return true;
  if (!slice.getWhyNot().empty())
    return refuse(planned.loop, slice.getWhyNot());
  return !planned.needsMessages || getClusterSize(kernel) == 1 ||
         refuse(planned.loop, "its producer needs messages, which do not exist in a cluster");
}

bool Specializer::planLoop(scf::ForOp loop) {
  BoxLoop planned;
  planned.loop = loop;
  planned.stages = stages;
  if (auto hint = loop->getAttrOfType<IntegerAttr>(kStagesAttr))
    planned.stages = std::clamp<int64_t>(hint.getInt(), 0, kMaxStages);
  if (planned.stages < 2)
    return refuse(loop, "its number of stages is less than 2");
  Operation *inner = nullptr;
  loop.getBody()->walk([&](AsyncDotOp dot) {
    if (dot->getBlock() != loop.getBody() || dot.isInFlight())
      inner = dot;
  });
  if (inner)
    return refuse(loop, "a dot is in a branch or loop within it", inner);
  // Blocks that exchange tiles in a loop would wait for its producer.
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
    if (getNumBlocks(kernel) > 1 && !dot.isOfBlock())
      return refuse(loop, "each block of a cluster has a part of an operand", dot);
  if (getNumParts(kernel) > 1 && isUneven(loop))
    return refuse(loop, "blocks of a cluster have different numbers of iterations");
  if (!planCopies(planned))
    return false;
  if (llvm::all_of(planned.loads, [](const PlannedCopy &box) { return box.isRow(); }))
    return refuse(loop, "no dot uses a tile that it loads");
  if (!planMessagesOf(planned))
    return false;
  // The dot releases each slot, and so must not be erased.
  ReplacedOps replaced = planned.getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
    if (!live.contains(dot))
      return refuse(loop, "no op uses the result of a dot", dot);
  joinChannels(planned);
  if (kind == PlanKind::Plain) {
    loops.push_back(std::move(planned));
    return true;
  }
  planned.asyncDot = findAsyncDot(loop, replaced);
  SmallVector<AsyncDotOp> dots = llvm::to_vector(loop.getBody()->getOps<AsyncDotOp>());
  if (dots.size() > 1 && canBeAsync(loop, dots.back(), replaced))
    if (Operation *next = findNextOperand(loop, dots.back());
        !next || dots.back()->isBeforeInBlock(next))
      planned.lastDot = dots.back();
  if (skew)
    planned.lateDot = findLateDot(loop, replaced);
  planned.order = DotOrder::plan(loop, replaced, /*isLate=*/skew);
  if (planned.order && planned.order->hasLate() &&
      getWantedRegisters(planned) > WarpRegisters(warps).getMost())
    planned.order = DotOrder::plan(loop, replaced, /*isLate=*/false);
  // The dot that is put off has its tiles to itself.
  if (AsyncDotOp late = planned.lateDot) {
    unsigned uses = 0;
    for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
      for (Value operand : {Value(dot.getA()), Value(dot.getB())})
        uses += planned.getChannel(operand) == planned.getChannel(late.getB());
    WarpRegisters registers(warps);
    if (uses != 1 || getWantedRegisters(planned) > registers.getMost())
      planned.lateDot = nullptr;
  }
  // Numbers that are carried take registers, and what computes where the next ones are.
  if (getWantedRegisters(planned) + RegisterBudget::kSpare <= WarpRegisters(warps).getMost())
    planned.loadsAhead = findLoadsAhead(loop, replaced, this->order);
  loops.push_back(std::move(planned));
  return true;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// Tiles that one dot takes come together. Loops with tiles of the same types have
/// their channels in common.
void Specializer::joinChannels(BoxLoop &planned) {
  auto ofOperand = [&](Value operand) -> std::optional<unsigned> {
    for (auto [index, load] : llvm::enumerate(planned.loads))
      if (llvm::is_contained(load.buffers, skipTrans(operand).getDefiningOp()))
        return index;
    return std::nullopt;
  };
  llvm::EquivalenceClasses<unsigned> together;
  SmallVector<unsigned> order;
  for (AsyncDotOp dot : planned.loop.getBody()->getOps<AsyncDotOp>()) {
    std::optional<unsigned> a = ofOperand(dot.getA()), b = ofOperand(dot.getB());
    for (std::optional<unsigned> load : {a, b})
      if (load && !llvm::is_contained(order, *load)) {
        together.insert(*load);
        order.push_back(*load);
      }
    if (a && b)
      together.unionSets(*a, *b);
  }
  // Rows of numbers are few bytes, and come with a tile; tiles that threads read come with what
  // they are multiplied with.
  for (unsigned load = 0; load < planned.loads.size(); ++load)
    if (!llvm::is_contained(order, load)) {
      together.insert(load);
      order.push_back(load);
      together.unionSets(order.front(), load);
    }
  llvm::SmallDenseSet<unsigned> done;
  for (unsigned first : order) {
    if (!done.insert(together.getLeaderValue(first)).second)
      continue;
    SmallVector<unsigned> members;
    SmallVector<MemDescType> tiles;
    for (unsigned load : order)
      if (together.isEquivalent(load, first)) {
        members.push_back(load);
        tiles.push_back(planned.loads[load].tile);
      }
    unsigned channel = 0;
    while (channel < channels.size() && (llvm::is_contained(planned.channels, channel) ||
                                         channels[channel].getTiles() != ArrayRef(tiles)))
      ++channel;
    if (channel == channels.size())
      channels.emplace_back(tiles);
    planned.channels.push_back(channel);
    for (unsigned load : members)
      planned.loads[load].channel = channel;
  }
}

//===----------------------------------------------------------------------===//
// The schedules
//===----------------------------------------------------------------------===//

ReplacedOps BoxLoop::getReplaced() const { return getReplacedBy(loads); }

std::optional<unsigned> BoxLoop::getChannel(Value operand) const {
  Operation *buffer = skipTrans(operand).getDefiningOp();
  for (const PlannedCopy &planned : loads)
    if (llvm::is_contained(planned.buffers, buffer))
      return planned.channel;
  return std::nullopt;
}

bool BoxLoop::isReadFrom(AsyncDotOp dot, const PlannedCopy &load) const {
  auto isFrom = [&](Operation *op) {
    Operation *inBody = dot->getBlock()->findAncestorOpInBlock(*op);
    return inBody && !inBody->isBeforeInBlock(dot);
  };
  return llvm::any_of(load.buffers,
                      [&](LocalAllocOp buffer) { return llvm::any_of(getUses(buffer), isFrom); });
}

Operation *BoxLoop::findNeedOfLateDot() const {
  scf::ForOp of = loop;
  AsyncDotOp late = lateDot;
  ReplacedOps replaced = getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  auto yield = cast<scf::YieldOp>(of.getBody()->getTerminator());
  unsigned index = llvm::find(yield.getOperands(), late.getResult()) - yield.operand_begin();
  for (Operation &op : of.getBody()->without_terminator()) {
    if (replaced.contains(&op) || !live.contains(&op) || &op == late)
      continue;
    auto isIn = [&](Operation *user) { return op.isAncestor(user); };
    if (&op == late.getA().getDefiningOp() ||
        llvm::any_of(of.getRegionIterArg(index).getUsers(), isIn))
      return &op;
  }
  return nullptr;
}

/// The copies: of a producer, or of the loop's own, behind the begin of its last dot. By then all
/// warps are done with the dots before it, mostly, and the thread does not have to wait for them.
/// If that dot has to be waited for where it is, they come where the iteration ends.
void Specializer::proposeCopies(const BoxLoop &planned) {
  MLIRContext *context = kernel.getContext();
  AsyncDotOp late = planned.lateDot;
  AsyncDotOp beside = planned.lastDot ? planned.lastDot : planned.asyncDot;
  for (const PlannedCopy &box : planned.loads) {
    bool isLate = late && planned.getChannel(late.getB()) == box.channel;
    NodeAttr node = NodeAttr::getCopy(context, /*stage=*/0, /*order=*/0, box.channel, Type(),
                                      /*producer=*/0, isLate ? std::optional(2) : std::nullopt,
                                      box.isMulticast);
    if (copiesWithoutProducer && planned.order) {
      // All slots are released at the end of an iteration.
      node =
          NodeAttr::getCopy(context, 1 - static_cast<int>(slots), /*order=*/1, box.channel, Type());
    } else if (copiesWithoutProducer) {
      // If the dot in flight, or an op after it, reads a slot, the slot is released after these
      // copies.
      bool isLeftLate = beside && llvm::any_of(planned.loads, [&](const PlannedCopy &load) {
                          return load.channel == box.channel && planned.isReadFrom(beside, load);
                        });
      node = NodeAttr::getCopy(context, -static_cast<int>(slots - (isLeftLate ? 1 : 0)),
                               /*order=*/1, box.channel, Type());
    }
    box.load->setAttr(kNodeAttr, node);
  }
}

void Specializer::propose(BoxLoop &planned) {
  MLIRContext *context = kernel.getContext();
  for (PlannedCopy &box : planned.loads)
    if (box.buffers.empty())
      box.buffers.push_back(
          readFromRing(box.load, box.tile, planned.order ? &*planned.order : nullptr));
  proposeCopies(planned);
  auto setDot = [&](AsyncDotOp dot, int stage, int wait, unsigned inFlight = 0) {
    dot->setAttr(kNodeAttr, NodeAttr::getMMA(context, stage, /*order=*/0, wait, inFlight));
  };
  if (planned.order) {
    planned.order->propose();
  } else if (AsyncDotOp last = planned.lastDot; copiesWithoutProducer && last) {
    setDot(last, /*stage=*/0, /*wait=*/2);
    setOrder(last->getNextNode(), 2);
  } else if (planned.asyncDot) {
    setDot(planned.asyncDot, /*stage=*/0, /*wait=*/1, /*inFlight=*/1);
    setOrder(planned.asyncDot->getNextNode(), 1);
  } else if (planned.lateDot) {
    // The early one and the one that is put off begin together.
    for (AsyncDotOp dot : scf::ForOp(planned.loop).getBody()->getOps<AsyncDotOp>())
      if (dot != planned.lateDot)
        setDot(dot, /*stage=*/0, /*wait=*/1);
    setDot(planned.lateDot, /*stage=*/1, /*wait=*/2);
    if (Operation *op = planned.findNeedOfLateDot())
      setOrder(op, 2);
    for (AsyncDotOp dot : scf::ForOp(planned.loop).getBody()->getOps<AsyncDotOp>())
      if (dot != planned.lateDot)
        setOrder(dot->getNextNode(), 1);
  }
  for (tile::LoadOp load : planned.loadsAhead)
    loadAhead(load);
  SmallVector<ChannelAttr> attrs;
  for (unsigned channel : planned.channels)
    attrs.push_back(ChannelAttr::get(context, channel, slots, CopyKind::TMA));
  proposeSchedule(planned.loop, attrs, planned.isPingPong, getOverlap(planned), machine);
}
