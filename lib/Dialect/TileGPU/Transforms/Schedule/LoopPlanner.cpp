// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopPlanner.h"

#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

bool LoopPlanner::planStages(PlannedLoop &planned) const {
  planned.stages = plan.options.stages;
  if (auto hint = planned.loop->getAttrOfType<IntegerAttr>(kStagesAttr)) {
    planned.stages = std::clamp<int64_t>(hint.getInt(), 0, kMaxStages);
    planned.isHinted = true;
  }
  if (planned.stages < 2)
    return plan.isByTMA() && plan.refuse(planned.loop, "its number of stages is less than 2");
  planned.stages = plan.transport.getStages(planned.loop, std::min(planned.stages, kMaxStages));
  return true;
}

bool LoopPlanner::planCopies(PlannedLoop &planned) {
  Transport &transport = plan.transport;
  TransportPlan found = transport.plan(planned.loop);
  // A loop with dots gets a reason in any case.
  if (found.isEmpty() && !plan.isByTMA())
    return false;
  if (auto obstacle = transport.findObstacle(planned.loop, found, plan.conditions))
    return plan.refuse(planned.loop, *obstacle);
  if (transport.needsAll() && !found.refused.empty())
    return plan.refuse(planned.loop, found.refused.front().second, found.refused.front().first);
  for (const auto &[load, why] : found.refused)
    emitRemark(load, RemarkKind::LoadNotPipelined)
        << "load is not pipelined: " << named("reason", why);
  planned.copies = std::move(found.copies);
  planned.left = std::move(found.left);
  planned.isInPlace = BoxTransport::isInPlace(planned.copies);
  if (plan.isByTMA())
    return true;
  // A tile that only says where others are is loaded with their addresses.
  llvm::DenseSet<Operation *> live = getLiveOps(planned.loop, planned.getReplaced());
  llvm::erase_if(planned.copies,
                 [&](const PlannedCopy &copy) { return !live.contains(tile::LoadOp(copy.load)); });
  return !planned.copies.empty();
}

/// True if a producer can run a loop, and those around it, at least with messages.
bool LoopPlanner::planMessages(PlannedLoop &planned) {
  ProducerSlice slice(plan.function, planned.loop);
  planned.addTo(slice);
  planned.needsMessages = planned.isInPlace || !slice.isEmpty();
  // If a thread of the program copies for a loop in place, there are no messages.
  if (planned.isInPlace)
    return true;
  if (!slice.getWhyNot().empty())
    return plan.refuse(planned.loop, slice.getWhyNot());
  return !planned.needsMessages || getClusterSize(plan.function) == 1 ||
         plan.refuse(planned.loop, "its producer needs messages, which do not exist in a cluster");
}

/// All tiles that threads copy come together.
void LoopPlanner::planChannels(PlannedLoop &planned) {
  if (plan.isByTMA())
    return joinChannels(planned);
  SmallVector<MemDescType> tiles;
  for (const PlannedCopy &copy : planned.copies)
    tiles.push_back(copy.tile);
  plan.channels.emplace_back(tiles);
  planned.channels.push_back(0);
}

/// Tiles that one dot takes come together. Loops with the same tiles have their channels in common,
/// and loops of which one has more tiles. Blocks that share copies count the same tiles.
void LoopPlanner::joinChannels(PlannedLoop &planned) {
  auto ofOperand = [&](Value operand) -> std::optional<unsigned> {
    for (auto [index, copy] : llvm::enumerate(planned.copies))
      if (llvm::is_contained(copy.buffers, skipTrans(operand).getDefiningOp()))
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
  for (unsigned load = 0; load < planned.copies.size(); ++load)
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
        tiles.push_back(planned.copies[load].tile);
      }
    unsigned channel = 0;
    auto find = [&](llvm::function_ref<bool(Channel &)> takes) {
      for (channel = 0; channel < plan.channels.size(); ++channel)
        if (!llvm::is_contained(planned.channels, channel) && takes(plan.channels[channel]))
          return true;
      return false;
    };
    if (!find([&](Channel &other) { return other.getTiles() == ArrayRef(tiles); }) &&
        (getNumParts(plan.function) > 1 ||
         !find([&](Channel &other) { return succeeded(other.join(tiles)); })))
      plan.channels.emplace_back(tiles);
    planned.channels.push_back(channel);
    for (unsigned load : members)
      planned.copies[load].channel = channel;
  }
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// A dot whose operand needs the result of another one begins in the next iteration. Its tiles
/// are to be released by it alone, and registers have to hold what is live meanwhile.
void LoopPlanner::planLateDot(PlannedLoop &planned) {
  scf::ForOp loop = planned.loop;
  ReplacedOps replaced = planned.getReplaced();
  const int64_t most = WarpRegisters(plan.options.warps).getMost();
  SmallVector<AsyncDotOp> dots = llvm::to_vector(loop.getBody()->getOps<AsyncDotOp>());
  if (dots.size() > 1 && canBeAsync(loop, dots.back(), replaced))
    if (Operation *next = findNextOperand(loop, dots.back());
        !next || dots.back()->isBeforeInBlock(next))
      planned.lastDot = dots.back();
  if (plan.options.skew)
    planned.lateDot = findLateDot(loop, replaced);
  planned.order = DotOrder::plan(loop, replaced, /*isLate=*/plan.options.skew);
  if (planned.hasLateDot() && plan.getRegisters(planned) > most)
    planned.order = DotOrder::plan(loop, replaced, /*isLate=*/false);
  if (AsyncDotOp late = planned.lateDot) {
    unsigned uses = 0;
    for (AsyncDotOp dot : dots)
      for (Value operand : {Value(dot.getA()), Value(dot.getB())})
        uses += planned.getChannel(operand) == planned.getChannel(late.getB());
    if (uses != 1 || plan.getRegisters(planned) > most)
      planned.lateDot = nullptr;
  }
}

/// A dot that needs only copied tiles is done an iteration ahead, if registers hold two results of
/// it, and do not suffice for a second program. With two, one multiplies while the other computes.
void LoopPlanner::planDotAhead(PlannedLoop &planned) {
  scf::ForOp loop = planned.loop;
  ReplacedOps replaced = planned.getReplaced();
  planned.order = DotOrder::plan(loop, replaced, /*isLate=*/false);
  planned.skewedDot = plan.options.skew ? findSkewedDot(loop, replaced) : AsyncDotOp();
  if (!planned.skewedDot)
    return;
  const unsigned warps = plan.options.warps;
  int64_t result = getRegisters(planned.skewedDot.getType(), warps);
  int64_t wanted = plan.getRegisters(planned);
  int64_t available = GPUMachine::kRegisters / (GPUMachine::kWarpSize * warps);
  if (wanted > std::min<int64_t>(GPUMachine::kMaxRegisters, available) ||
      2 * (wanted - result) <= available)
    planned.skewedDot = nullptr;
}

void LoopPlanner::planDots(PlannedLoop &planned) {
  ReplacedOps replaced = planned.getReplaced();
  planned.asyncDots = findAsyncDots(planned.loop, replaced);
  if (plan.isByTMA())
    planLateDot(planned);
  else
    planDotAhead(planned);
  // An order of three dots or more says itself which are in flight.
  if (planned.order || planned.lateDot || planned.skewedDot)
    planned.asyncDots.clear();
}

/// Numbers that are carried take registers, and what computes where the next ones are. Threads
/// that copy compute addresses in any case. If the loop stores, a launch checks that these loads
/// may pass it. False if rows that TMA does not copy would be waited for in each iteration.
bool LoopPlanner::planLoadsAhead(PlannedLoop &planned) {
  scf::ForOp loop = planned.loop;
  const int64_t most = WarpRegisters(plan.options.warps).getMost();
  bool hasLeft = !planned.left.empty();
  bool isWanted = kind == PlanKind::Full && (hasLeft || computesWithDots(loop)) &&
                  (!plan.isByTMA() || plan.getRegisters(planned) + RegisterBudget::kSpare <= most);
  if (!isWanted)
    return !hasLeft;
  SmallVector<tile::LoadOp> loads = findLoadsAhead(loop, planned.getReplaced(), hasLeft);
  if (findObstacleInLoop(loop, order)) {
    Operation *obstacle = nullptr;
    std::optional<LaunchConditions> conditions =
        findConditionsInLoop(loop, getEarlyLoads(loop, loads), order, analysis, obstacle);
    bool mayAsk = plan.isByTMA() && plan.function.isKernel();
    if (!conditions || !mayAsk)
      return !hasLeft;
    plan.ofLoadsAhead.push_back(std::move(*conditions));
  }
  for (const auto &[load, why] : planned.left)
    if (!llvm::is_contained(loads, load))
      return false;
  planned.loadsAhead = std::move(loads);
  return true;
}

/// Tiles that cp.async cannot copy come an iteration ahead into registers, if two programs share an
/// SM as before. Else each iteration waits for memory.
void LoopPlanner::planTilesAhead(PlannedLoop &planned) {
  SmallVector<tile::LoadOp> tiles = findTilesAhead(planned.loop, planned.getReplaced());
  if (tiles.empty() || findObstacleInLoop(planned.loop, order))
    return;
  const unsigned warps = plan.options.warps;
  int64_t wanted = plan.getRegisters(planned) + RegisterBudget::kSpare, more = wanted;
  for (tile::LoadOp load : tiles)
    more += getRegisters(load.getType(), warps);
  int64_t ofTwo = WarpRegisters(warps, /*programs=*/2).getMost();
  if (more <= WarpRegisters(warps).getMost() && (more <= ofTwo || wanted > ofTwo))
    llvm::append_range(planned.loadsAhead, tiles);
}

bool LoopPlanner::add(scf::ForOp loop) {
  PlannedLoop planned;
  planned.loop = loop;
  if (!planStages(planned))
    return false;
  if (auto obstacle = plan.transport.findObstacle(loop))
    return plan.refuse(loop, *obstacle);
  if (!planCopies(planned) || (plan.isByTMA() && !planMessages(planned)))
    return false;
  planChannels(planned);
  if (kind == PlanKind::Full && plan.transport.isBeforeLayouts())
    planDots(planned);
  if (plan.transport.isBeforeLayouts() && !planLoadsAhead(planned))
    return plan.refuse(loop, planned.left.front().second, planned.left.front().first);
  if (kind == PlanKind::Full && !plan.isByTMA() && plan.transport.isBeforeLayouts())
    planTilesAhead(planned);
  plan.loops.push_back(std::move(planned));
  return true;
}
