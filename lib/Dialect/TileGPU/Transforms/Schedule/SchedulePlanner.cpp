// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SchedulePlanner.h"

#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "LoopPlanner.h"
#include "ProducerPlanner.h"
#include "SlotPlanner.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

SchedulePlanner::SchedulePlanner(tile::FuncOp function, const GPUMachine &machine,
                                 TransportKind transport, const PlanOptions &options, PlanKind kind)
    : transport(Transport::make(transport, function, options.assumeApart, analysis, order)),
      kind(kind), found{function, machine, *this->transport, options} {}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

bool SchedulePlanner::plan(ArrayRef<scf::ForOp> loops) {
  // Which threads these are is another question where there are others than the program's.
  if (Operation *barrier = found.isByTMA() ? findWaitForThreads(found.function) : nullptr)
    return found.refuse(loops.front(),
                        "inline assembly or an external function may contain a barrier", barrier);
  LoopPlanner ofLoop(found, order, analysis, kind);
  for (scf::ForOp loop : loops)
    if (!ofLoop.add(loop))
      found.unplanned.push_back(loop);
  if (found.loops.empty() || (found.isByTMA() && !ProducerPlanner(found).run()) ||
      !SlotPlanner(found, order, analysis).run())
    return false;
  // The registers of unchanged loops are only estimated: they must suffice without an exchange
  // between warps.
  bool mayExchange = found.program.isWithoutProducer || found.unplanned.empty();
  if (found.isByTMA() && !mayExchange &&
      found.getRegisters() > WarpRegisters(found.options.warps, found.program.programs).alone)
    return found.refuse(found.loops.front().loop,
                        "another loop would have too few registers with a producer warp",
                        found.unplanned.front());
  return true;
}

LoopGroup SchedulePlanner::getLoops() const {
  LoopGroup loops;
  for (const PlannedLoop &planned : found.loops)
    loops.push_back(planned.loop);
  return loops;
}

//===----------------------------------------------------------------------===//
// The kernel's schedule
//===----------------------------------------------------------------------===//

KernelScheduleAttr SchedulePlanner::getKernelSchedule() const {
  MLIRContext *context = tile::FuncOp(found.function)->getContext();
  const ProgramPlan &program = found.program;
  WarpRegisters registers(found.options.warps, program.programs);
  bool isShared = found.getRegisters() > registers.alone && registers.shared > registers.alone;
  SmallVector<ChannelAttr> channels;
  for (const ScheduledCopy &copy : program.copies)
    channels.push_back(ChannelAttr::get(context, copy.channel, program.slots, CopyKind::TMA));
  const int32_t producerWarps = isShared ? GPUMachine::kWarpsOfWarpgroup : 1,
                ofProducer = registers.forCopies;
  return KernelScheduleAttr::get(context, producerWarps, isShared ? registers.shared : 0,
                                 isShared ? ArrayRef(ofProducer) : ArrayRef<int32_t>(),
                                 program.programs, program.isPersistent, program.order,
                                 /*group=*/0, channels);
}

void SchedulePlanner::proposeKernel() {
  if (found.program.isWithoutProducer) {
    emitRemark(found.loops.front().loop, RemarkKind::LoopCopiesWithoutProducer)
        << "loop copies without a producer warp: " << named("reason", found.program.whyNoProducer);
  } else {
    found.function->setAttr(kKernelScheduleAttr, getKernelSchedule());
  }
  for (const ScheduledCopy &copy : found.program.copies)
    tile::LoadOp(copy.load)->setAttr(
        kNodeAttr, NodeAttr::getCopy(found.function.getContext(), /*stage=*/0, /*order=*/0,
                                     copy.channel, Type(), /*producer=*/0));
}

//===----------------------------------------------------------------------===//
// The schedule of a loop
//===----------------------------------------------------------------------===//

/// Threads read a tile from its ring where TMA brings it, or where an order of dots has a place for
/// that. Else the expander reads it where it is loaded.
void SchedulePlanner::proposeRead(PlannedLoop &planned, PlannedCopy &copy) const {
  bool isRead = !llvm::all_of(copy.load->getUsers(), [&](Operation *user) {
    return isSlotOfRing(user, copy.load, copy.tile);
  });
  if (!isRead || !(found.isByTMA() || planned.order))
    return;
  LocalAllocOp buffer =
      readFromRing(copy.load, copy.tile, planned.order ? &*planned.order : nullptr);
  if (!llvm::is_contained(copy.buffers, buffer))
    copy.buffers.push_back(buffer);
}

/// A copy is of a producer, or of the loop's own. Threads copy at the begin of an iteration. The
/// program's first thread copies behind the begin of its last dot. By then all warps are done with
/// the dots before it, mostly, and the thread does not have to wait for them. If that dot has to be
/// waited for where it is, the copies come where the iteration ends.
NodeAttr SchedulePlanner::getNode(const PlannedLoop &planned, const PlannedCopy &copy) const {
  MLIRContext *context = tile::FuncOp(found.function).getContext();
  const int slots = static_cast<int>(found.slots);
  if (!found.isByTMA()) {
    // The type of a tile is that of its first buffer, if nothing is said.
    Type tile = copy.tile;
    for (Operation *user : tile::LoadOp(copy.load)->getUsers())
      if (auto buffer = dyn_cast<LocalAllocOp>(user)) {
        if (buffer.getType() == copy.tile)
          tile = Type();
        break;
      }
    return NodeAttr::getCopy(context, -found.getDistance(planned), /*order=*/0, copy.channel, tile);
  }
  if (!found.program.isWithoutProducer) {
    AsyncDotOp late = planned.lateDot;
    bool isLate = late && planned.getChannel(late.getB()) == copy.channel;
    return NodeAttr::getCopy(context, /*stage=*/0, /*order=*/0, copy.channel, Type(),
                             /*producer=*/0, isLate ? std::optional(2) : std::nullopt,
                             copy.isMulticast);
  }
  // All slots are released at the end of an iteration.
  if (planned.order)
    return NodeAttr::getCopy(context, 1 - slots, /*order=*/1, copy.channel, Type());
  // If a dot in flight, or an op after it, reads a slot, the slot is released after these copies.
  AsyncDotOp beside = planned.lastDot;
  if (!beside && !planned.asyncDots.empty())
    beside = planned.asyncDots.front();
  bool isLeftLate = beside && llvm::any_of(planned.copies, [&](const PlannedCopy &other) {
                      return other.channel == copy.channel && planned.isReadFrom(beside, other);
                    });
  return NodeAttr::getCopy(context, (isLeftLate ? 1 : 0) - slots, /*order=*/1, copy.channel,
                           Type());
}

void SchedulePlanner::proposeDots(PlannedLoop &planned) {
  scf::ForOp loop = planned.loop;
  MLIRContext *context = loop.getContext();
  auto setDot = [&](AsyncDotOp dot, int stage, int wait, unsigned inFlight = 0) {
    dot->setAttr(kNodeAttr, NodeAttr::getMMA(context, stage, /*order=*/0, wait, inFlight));
  };
  if (planned.order) {
    planned.order->propose();
  } else if (AsyncDotOp last = planned.lastDot; found.program.isWithoutProducer && last) {
    setDot(last, /*stage=*/0, /*wait=*/2);
    setOrder(last->getNextNode(), 2);
  } else if (!planned.asyncDots.empty()) {
    // All begin before those of the iteration before are waited for.
    for (AsyncDotOp dot : planned.asyncDots)
      setDot(dot, /*stage=*/0, /*wait=*/1, /*inFlight=*/1);
    setOrder(planned.asyncDots.back()->getNextNode(), 1);
  } else if (planned.lateDot) {
    // The early one and the one that is put off begin together.
    for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
      if (dot != planned.lateDot)
        setDot(dot, /*stage=*/0, /*wait=*/1);
    setDot(planned.lateDot, /*stage=*/1, /*wait=*/2);
    if (Operation *op = planned.findNeedOfLateDot())
      setOrder(op, 2);
    for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
      if (dot != planned.lateDot)
        setOrder(dot->getNextNode(), 1);
  } else if (planned.skewedDot) {
    // It begins before everything else, and is waited for behind it.
    for (Operation &op : loop.getBody()->without_terminator())
      if (&op != planned.skewedDot && !op.hasAttr(kNodeAttr)) {
        op.setAttr(kNodeAttr, NodeAttr::get(context, getNodeRole(&op), /*stage=*/0, /*order=*/1));
        break;
      }
    setDot(planned.skewedDot, /*stage=*/-1, /*wait=*/2);
  }
}

IterationOverlap SchedulePlanner::getOverlap(const PlannedLoop &planned) const {
  IterationOverlap overlap;
  overlap.programs = found.countPrograms();
  overlap.hasDotBeside = planned.hasDotBeside();
  overlap.ahead = found.getDistance(planned);
  if (!found.isByTMA())
    return overlap;
  // A slot is read, and another one by a dot that goes on.
  overlap.ahead =
      int64_t(found.slots) - (!planned.asyncDots.empty() || planned.hasDotBeside() ? 2 : 1);
  overlap.isMulticast = getNumParts(found.function) > 1;
  return overlap;
}

void SchedulePlanner::propose(PlannedLoop &planned) {
  MLIRContext *context = planned.loop.getContext();
  for (PlannedCopy &copy : planned.copies)
    proposeRead(planned, copy);
  for (PlannedCopy &copy : planned.copies)
    copy.load->setAttr(kNodeAttr, getNode(planned, copy));
  proposeDots(planned);
  // Rows that no dot waits for are needed late in an iteration. Others come as early as tiles do.
  int distance = planned.left.empty() ? 1 : static_cast<int>(found.slots) - 1;
  for (tile::LoadOp load : planned.loadsAhead)
    loadAhead(load, distance);
  SmallVector<ChannelAttr> channels;
  for (unsigned channel : planned.channels)
    channels.push_back(ChannelAttr::get(context, channel, found.slots, transport->getKind()));
  proposeSchedule(planned.loop, channels, planned.isPingPong, getOverlap(planned), found.machine);
}

void SchedulePlanner::propose() {
  if (found.isByTMA())
    proposeKernel();
  for (PlannedLoop &planned : found.loops)
    propose(planned);
  // The expander adds those of kernels with a producer.
  if (!found.isByTMA())
    addLaunchConditions(found.function, found.conditions);
  for (const LaunchConditions &conditions : found.ofLoadsAhead)
    addLaunchConditions(found.function, conditions);
  if (!transport->isBeforeLayouts())
    emitRemark(found.loops.front().loop, RemarkKind::RowsCopiedAhead)
        << "rows are prefetched to shared memory one iteration ahead, by "
        << named("loads", found.loops.front().copies.size()) << " loads";
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// A producer runs all loops of a kernel for which TMA copies. Threads copy for each loop apart.
static SmallVector<LoopGroup> findGroups(tile::FuncOp function, bool isByTMA) {
  LoopGroup loops;
  function.walk([&](scf::ForOp loop) {
    if (!isByTMA || !loop.getBody()->getOps<AsyncDotOp>().empty())
      loops.push_back(loop);
  });
  if (!isByTMA)
    return llvm::map_to_vector(loops, [](scf::ForOp loop) { return LoopGroup{loop}; });
  if (loops.empty() || !function.isKernel() || !function.getBody().hasOneBlock())
    return {};
  return {loops};
}

LogicalResult tessera::tilegpu::planSchedules(tile::FuncOp function, const GPUMachine &machine,
                                              TransportKind transport, const PlanOptions &options,
                                              const TrialOptions &trial) {
  constexpr PlanKind kKinds[] = {PlanKind::Full, PlanKind::Plain};
  auto getGroups = [&](tile::FuncOp of) {
    return findGroups(of, transport == TransportKind::Boxes);
  };
  auto propose = [&](ArrayRef<scf::ForOp> loops, PlanKind kind, llvm::function_ref<void()> begin) {
    SchedulePlanner planner(function, machine, transport, options, kind);
    if (!planner.plan(loops))
      return LoopGroup();
    begin();
    planner.propose();
    return planner.getLoops();
  };
  ScheduleCandidates candidates{"copies by TMA", kKinds, getGroups, propose};
  if (transport == TransportKind::AsyncCopies) {
    candidates.name = "asynchronous copies";
  } else if (transport == TransportKind::Rows) {
    candidates.name = "rows an iteration ahead";
    // They have no dots in flight.
    candidates.kinds = candidates.kinds.take_front();
  }
  return trySchedules(function, machine, trial, candidates);
}
