// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Specializer.h"

#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "Facts/Multicast.h"
#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"
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

/// Rows as TMA writes them, for a tile that threads read into registers.
static MemDescType getFragmentType(tile::LoadOp load, AccessAnalysis &analysis) {
  auto type = cast<RankedTensorType>(load.getType());
  unsigned fast = getAccessPattern(load, analysis).getFastDim(type.getShape());
  int64_t bits = 8 * getElementBytes(type.getElementType());
  LayoutAttr memory =
      LayoutAttr::get(load.getContext(), operandMemory(type.getShape(), fast, bits));
  return MemDescType::get(load.getContext(), type.getShape(), type.getElementType(), memory);
}

/// Adds a load, or says why TMA cannot do it.
std::string Specializer::planLoad(BoxLoop &planned, tile::LoadOp load) {
  BoxLoad result;
  result.load = load;
  auto type = cast<RankedTensorType>(load.getType());
  bool isRead = type.getRank() <= 2 && llvm::none_of(load->getUsers(), [](Operation *user) {
                  return isa<LocalAllocOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
                });
  for (Operation *user : load->getUsers()) {
    if (isRead)
      break;
    auto buffer = dyn_cast<LocalAllocOp>(user);
    if (!buffer || user->getBlock() != planned.loop.getBody())
      return "both a dot and other ops use its tile";
    if (!result.buffers.empty() && result.buffers.front().getType() != buffer.getType())
      return "dots use its tile in two layouts";
    result.buffers.push_back(buffer);
  }
  for (LocalAllocOp buffer : result.buffers)
    for (Operation *use : getUses(buffer))
      if (!isa<AsyncDotOp, LocalDeallocOp>(use))
        return "a dot that is not asynchronous uses its tile";
  result.tile = !isRead               ? result.buffers.front().getType()
                : type.getRank() == 1 ? getRowType(type.getShape(), type.getElementType())
                                      : getFragmentType(load, analysis);
  std::string why;
  std::optional<BoxAccess> box =
      getBoxToCopy(planned.loop.getRegion(), load, result.tile, analysis, why);
  if (!box)
    return why;
  planned.isInPlace |= box->isFoundByKernel();
  result.box = std::move(*box);
  unsigned parts = getNumParts(kernel);
  result.isMulticast = parts > 1 && !dependsOnBlock(load.getPtr()) &&
                       !(load.getMask() && dependsOnBlock(load.getMask())) &&
                       getRowsOfShares(result.tile, parts);
  planned.loads.push_back(std::move(result));
  return "";
}

/// True if loads may come before everything that is done to memory before them.
bool Specializer::planOrder(scf::ForOp loop, ArrayRef<tile::LoadOp> loads) {
  std::optional<EarlyLoadObstacle> obstacle =
      findObstacle(kernel, loads, order, analysis, conditions);
  if (!obstacle)
    return true;
  if (!obstacle->load)
    return refuse(loop, "an op before it orders memory", obstacle->op);
  RemarkInFlight remark =
      emitRemark(loop, RemarkKind::LoopNotSpecialized)
      << "loop is not specialised: "
      << named("reason", StringRef("the same program may have stored the tiles that it loads"));
  remark.attachNote(obstacle->op->getLoc()) << "stored here";
  remark.attachNote(obstacle->load.getLoc()) << "loaded here";
  return false;
}

std::string tessera::tilegpu::whyNotCopiedAhead(scf::ForOp loop) {
  if (getSmallStep(loop))
    return "";
  APInt step;
  bool isConstant = matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive();
  return isConstant ? "its step is not a small constant" : "its step is not a constant";
}

/// True if loads of later iterations may come early, those of the first one being where they are.
bool Specializer::planInPlace(const BoxLoop &planned) {
  if (getClusterSize(kernel) > 1)
    return refuse(planned.loop, "its arrays are found in memory, in a cluster");
  if (std::string why = whyNotCopiedAhead(planned.loop); !why.empty())
    return refuse(planned.loop, "its arrays are found in memory, and " + why);
  if (Operation *obstacle = findObstacleInLoop(planned.loop, order))
    return refuse(planned.loop, "it may store to the tiles that it loads, or orders memory",
                  obstacle);
  return true;
}

void BoxLoop::addTo(ProducerSlice &slice) const {
  slice.needLoop(loop);
  for (const BoxLoad &load : loads)
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
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) && reachesDot(load.getResult(), loop.getBody()))
      loads.push_back(load);
  std::string whyNotLoaded;
  tile::LoadOp notLoaded;
  for (tile::LoadOp load : loads)
    if (whyNotLoaded.empty())
      if (whyNotLoaded = planLoad(planned, load); !whyNotLoaded.empty())
        notLoaded = load;
  if (planned.isInPlace) {
    if (!planInPlace(planned))
      return false;
  } else {
    if (!planOrder(loop, loads))
      return false;
  }
  if (notLoaded)
    return refuse(loop, whyNotLoaded, notLoaded);
  if (llvm::all_of(planned.loads, [](const BoxLoad &box) { return box.isRow(); }))
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
  for (const BoxLoad &planned : loads)
    if (llvm::is_contained(planned.buffers, buffer))
      return planned.channel;
  return std::nullopt;
}

bool BoxLoop::isReadFrom(AsyncDotOp dot, const BoxLoad &load) const {
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
  for (const BoxLoad &box : planned.loads) {
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
      bool isLeftLate = beside && llvm::any_of(planned.loads, [&](const BoxLoad &load) {
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
  for (BoxLoad &box : planned.loads)
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
