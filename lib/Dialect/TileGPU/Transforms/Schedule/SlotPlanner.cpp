// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SlotPlanner.h"

#include "EarlyLoads.h"
#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "Mailbox.h"
#include "ProgramCopies.h"
#include "Programs/PersistentKernel.h"
#include "StoreByTensorMap.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr int64_t kBarrierBytes = SharedMemoryBudget::kBarriers;
static constexpr unsigned kMinSlotsOfLate = ScheduleSizes::kMinSlotsOfLate;

/// The results are stored by pieces, beside barriers.
int64_t SlotPlanner::getStored() const {
  return std::max(kExchangeBytes,
                  barriers + getRoomForResults(plan.function, plan.getReplaced(), analysis));
}

int64_t SlotPlanner::countFitting(bool isStored) const {
  return resources.countFitting(plan.machine.sharedBytes - (isStored ? stored : kExchangeBytes));
}

//===----------------------------------------------------------------------===//
// By threads of the program
//===----------------------------------------------------------------------===//

/// As many programs share an SM as have registers there. If registers would hold the rows, reading
/// them from slots costs more than copies gain while blocks of a cluster wait for each other
/// (notes/Notebook.md).
bool SlotPlanner::boundRows() {
  PlannedLoop &planned = plan.loops.front();
  OpOrder places(planned.loop);
  Block *body = planned.loop.getBody();
  int64_t held =
      HeldBytes(body, places).getMost(&body->front(), body->getTerminator()) + kTemporaryBytes;
  plan.program.programs = countPrograms(held, plan.options.warps, plan.machine);
  fitting =
      resources.countFitting(plan.machine.getSharedBytes(plan.program.programs) - kExchangeBytes);
  return getBlockBits(planned.loop) == 0 || held > getMostBytesOfThread(plan.options.warps);
}

/// More slots than stages make copies arrive in time, unless these take the place of another
/// program. Addresses may be computed where they are used. If one more program has registers then,
/// it gets the memory of slots, as long as all programs together copy about as far ahead.
void SlotPlanner::boundByThreads() {
  PlannedLoop &planned = plan.loops.front();
  fitting = countFitting(/*isStored=*/false);
  if (planned.asyncDots.empty() || planned.isHinted || wanted > fitting)
    return;
  RingResources all = resources;
  all.otherBytes += kExchangeBytes;
  int64_t timely = tilegpu::getTimelySlots(planned.loop, plan.machine);
  auto getSlots = [&] { return all.getTimelySlots(wanted, timely, all.getSharedBytes(wanted)); };
  // A slot is read, and one more by the dot in flight.
  auto countAhead = [&](int64_t slots) { return all.countPrograms(slots) * (slots - 2); };
  int64_t slots = getSlots(), ahead = countAhead(slots);
  all.registers -= RegisterBudget::kOfAddresses + RegisterBudget::kPointers;
  int64_t fewer = getSlots();
  wanted = 4 * countAhead(fewer) >= 3 * ahead ? fewer : slots;
}

/// Programs fill each other's gaps: better a slot less than that barriers take the place of one of
/// them. Nothing is copied ahead of a loop whose arrays the kernel finds: it has to be fast to have
/// a ring full.
void SlotPlanner::boundWithoutProducer() {
  if (llvm::any_of(plan.loops, [](const PlannedLoop &planned) { return planned.isInPlace; }))
    least = wanted;
  fitting = std::min(countFitting(isInLoop), wanted);
  if (plan.program.shared > 1) {
    int64_t most =
        resources.countFitting(plan.machine.getSharedBytes(plan.program.shared) - barriers);
    if (most >= 2)
      least = fitting = std::min(fitting, most);
  }
  RingResources tiles = resources;
  // Threads have no pointers to carry.
  tiles.registers -= RegisterBudget::kPointers;
  RingResources all = tiles;
  all.otherBytes += Channel::getBarrierBytes(fitting) * plan.channels.size();
  if (fitting <= 2 || all.countPrograms(fitting) >= tiles.countPrograms(fitting))
    return;
  --fitting;
  emitRemark(plan.loops.front().loop, RemarkKind::FewerStages)
      << "loop copies without a producer warp in " << named("stages", fitting) << " stages, not "
      << named("wanted", least) << ": one more would reduce the programs on an SM";
  least = fitting;
}

//===----------------------------------------------------------------------===//
// With a producer
//===----------------------------------------------------------------------===//

/// A dot that is put off takes registers, which may be those of another program. Programs beside
/// each other overlap as well, so the cost decides.
void SlotPlanner::planPrograms(llvm::function_ref<bool(int64_t)> fits) {
  auto count = [&] {
    int64_t programs = plan.options.mostPrograms;
    while (programs > 1 &&
           !(fits(plan.machine.getSharedBytes(programs)) &&
             plan.getRegisters() <= WarpRegisters(plan.options.warps, programs).getMost()))
      --programs;
    return programs;
  };
  int64_t &programs = plan.program.programs;
  programs = count();
  int64_t cycles = plan.getCycles(programs);
  std::vector<PlannedLoop> late = plan.loops;
  for (PlannedLoop &planned : plan.loops)
    planned.lateDot = nullptr;
  if (int64_t others = count(); plan.getCycles(others) < cycles)
    programs = others;
  else
    plan.loops = std::move(late);
}

/// In the only program of an SM, one group of warps computes while the others multiply. With an
/// order of three dots or more, that pays only if shared memory keeps up. On an H200, the gradients
/// of attention took 2 % longer where dots read both operands from there. They took 8 % less with
/// first operands in registers.
void SlotPlanner::planPingPong() {
  if (!plan.isByTMA() || plan.program.isWithoutProducer || plan.program.programs > 1 ||
      plan.options.warps < 2 * GPUMachine::kWarpsOfWarpgroup)
    return;
  for (PlannedLoop &planned : plan.loops) {
    bool isHeld =
        planned.hasLateDot() && plan.options.hold &&
        planned.order->hold(plan.getSpareRegisters(planned), plan.options.warps, plan.machine);
    planned.isPingPong = planned.lateDot || isHeld;
  }
}

/// Finds what the producer could copy once a program. False if loops multiply other tiles that
/// threads have before them.
bool SlotPlanner::planProgramCopies() {
  bool isComplete = true;
  for (PlannedLoop &planned : plan.loops)
    for (AsyncDotOp dot : planned.loop.getBody()->getOps<AsyncDotOp>())
      isComplete &= isa<MemDescType>(dot.getA().getType()) ||
                    !planned.loop.isDefinedOutsideOfLoop(dot.getA());
  ReplacedOps inLoops = plan.getReplaced();
  SmallVector<tile::LoadOp> loads;
  plan.function.walk([&](LocalAllocOp buffer) {
    if (!buffer.getSource() || inLoops.contains(buffer))
      return;
    auto load = buffer.getSource().getDefiningOp<tile::LoadOp>();
    isComplete &= load != nullptr;
    if (load && !llvm::is_contained(loads, load))
      loads.push_back(load);
  });
  for (tile::LoadOp load : loads) {
    std::string why;
    std::optional<ScheduledCopy> copy = getProgramCopy(plan.function, load, why);
    std::optional<BoxAccess> box;
    if (copy)
      box = getBoxToCopy(plan.function.getBody(), load, copy->tile, analysis, why);
    if (!box || box->isFoundByKernel() ||
        findObstacle(plan.function, load, order, analysis, plan.conditions)) {
      isComplete = false;
      continue;
    }
    copy->channel = plan.channels.size() + plan.program.copies.size();
    plan.program.copies.push_back(std::move(*copy));
  }
  return isComplete;
}

/// At an occupancy of 1, the next program's tiles are copied while this one stores. If threads
/// compute with operands, that pays only if they load none.
void SlotPlanner::planPersistence(bool isWithoutLoads) {
  // A dot in flight keeps tensor cores busy, if the ring is long. Between results they are idle,
  // unless the next one's copies have begun.
  constexpr int64_t kMinSlots = ScheduleSizes::kMinSlotsOfPersistent;
  ProgramPlan &program = plan.program;
  bool isPossible = plan.unplanned.empty() && !isInLoop && !plan.needsMessages() &&
                    plan.getRegisters() > WarpRegisters(plan.options.warps, /*programs=*/2).alone &&
                    PersistentKernel::isPossible(plan.function);
  if (!isPossible)
    return;
  std::optional<ProgramOrder> found = PersistentKernel::findOrder(plan.function);
  program.isPersistent = found && (planProgramCopies() || !isWithoutLoads);
  int64_t alone = stored;
  if (!program.copies.empty())
    stored = getStored() + program.copies.size() * Channel::getBarrierBytes(/*slots=*/1);
  // If no more slots fit in any case, persistence costs none.
  program.isPersistent &= countFitting(/*isStored=*/true) >=
                          std::min(std::min(wanted, kMinSlots), std::max<int64_t>(fitting, 2));
  if (program.isPersistent) {
    program.order = *found;
  } else {
    program.copies.clear();
    stored = alone;
  }
  fitting = countFitting(isInLoop || program.isPersistent);
}

/// Slots for copies that arrive in time, without lowering occupancy or taking the cache's memory,
/// whose loss costs a launch 0.4 us (notes/Notebook.md). At least those asked for, and no more if
/// the source sets their number. Clusters are for launches of few programs, whose blocks each have
/// an SM, and wait longer for copies.
int64_t SlotPlanner::getTimelySlots(int64_t others) const {
  int64_t timely = wanted;
  for (const PlannedLoop &planned : plan.loops)
    if (!planned.isHinted)
      timely = std::max(timely, tilegpu::getTimelySlots(planned.loop, plan.machine));
  RingResources all = plan.getResources();
  ++all.warps;
  all.otherBytes = others;
  int64_t most = plan.machine.sharedBytes;
  if (getNumBlocks(plan.function) == 1 && getNumParts(plan.function) == 1) {
    bool isPersistent = plan.program.isPersistent;
    // The memory for results includes a reserve that the kernel does not use.
    most = plan.machine.getSharedBytesBesideCache() + (isPersistent ? kExchangeBytes : 0);
    if (!isPersistent)
      most = std::min(most, all.getSharedBytes(wanted));
  }
  return all.getTimelySlots(wanted, timely, most);
}

void SlotPlanner::boundWithDotsInFlight() {
  planPersistence(/*isWithoutLoads=*/false);
  // Its barriers are those of a longer ring.
  int64_t more = Channel::getBarrierBytes(kMaxTimelySlots) * plan.channels.size() - barriers;
  wanted = getTimelySlots(resources.otherBytes + more +
                          (isInLoop || plan.program.isPersistent ? stored : barriers));
}

/// Rather two programs on an SM than a long ring: one copies while the other computes.
void SlotPlanner::boundWithOtherDots() {
  int64_t few = least;
  if (plan.any([](const PlannedLoop &planned) { return planned.order.has_value(); }))
    few = std::min<int64_t>(
        few, plan.any([](const PlannedLoop &planned) { return planned.hasLateDot(); })
                 ? kMinSlotsOfLate
                 : 2);
  auto countBeside = [&](int64_t bytes) {
    return resources.countFitting(bytes - (isInLoop ? stored : kBarrierBytes));
  };
  planPrograms([&](int64_t bytes) { return countBeside(bytes) >= few; });
  if (plan.program.programs > 1) {
    fitting = countBeside(plan.machine.getSharedBytes(plan.program.programs));
    least = std::min(least, fitting);
    // Rows that threads load come as many iterations ahead. In a launch of few programs, none is
    // beside them that would hide what they wait for.
    for (const PlannedLoop &planned : plan.loops)
      if (!planned.left.empty() && !planned.isHinted)
        wanted = std::max(wanted,
                          std::min(tilegpu::getTimelySlots(planned.loop, plan.machine), fitting));
    return;
  }
  bool isAnyComputed = plan.all(
      [](const PlannedLoop &planned) { return !planned.order && computesWithDots(planned.loop); });
  if (isAnyComputed && plan.getRegisters() + RegisterBudget::kSpare <=
                           WarpRegisters(plan.options.warps, /*programs=*/1).getMost())
    planPersistence(/*isWithoutLoads=*/false);
  else if (plan.all([](const PlannedLoop &planned) { return bool(planned.lateDot); }))
    planPersistence(/*isWithoutLoads=*/true);
}

/// A second slot for what is copied once a program, where there is room for it: what is there
/// beside the rings has the first.
void SlotPlanner::planProgramSlots() {
  ProgramPlan &program = plan.program;
  auto getTile = [](const ScheduledCopy &copy) { return copy.tile; };
  int64_t bytes = getBytesOfSlots(llvm::map_range(program.copies, getTile)) +
                  resources.getBytes(plan.slots) +
                  plan.channels.size() * Channel::getBarrierBytes(plan.slots) +
                  program.copies.size() * Channel::getBarrierBytes(/*slots=*/2) +
                  getRoomForResults(plan.function, plan.getReplaced(), analysis);
  program.slots = bytes <= plan.machine.sharedBytes ? 2 : 1;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

bool SlotPlanner::bound() {
  if (!plan.transport.isBeforeLayouts())
    return boundRows();
  if (!plan.isByTMA())
    boundByThreads();
  else if (plan.program.isWithoutProducer)
    boundWithoutProducer();
  else if (plan.all([](const PlannedLoop &planned) { return !planned.asyncDots.empty(); }))
    boundWithDotsInFlight();
  else
    boundWithOtherDots();
  return true;
}

/// The tiles of dots that end in another iteration than the one that loads them stay there as long:
/// with two slots nothing would be copied meanwhile.
void SlotPlanner::dropDotsInFlight() {
  dropLateDots(plan);
  if (!plan.isByTMA())
    for (PlannedLoop &planned : plan.loops) {
      planned.asyncDots.clear();
      planned.skewedDot = nullptr;
    }
}

/// The slots that loops can use: those of all their iterations, if that number is known and the
/// next iterations are not copied while results are stored. A dot in flight has one more. The tiles
/// of one loop may be copied while the loop before it runs.
int64_t SlotPlanner::countUsefulSlots() const {
  int64_t most = wanted;
  if (isInLoop || plan.program.isPersistent || !plan.transport.isBeforeLayouts())
    return most;
  int64_t useful = 1;
  for (const PlannedLoop &planned : plan.loops) {
    std::optional<APInt> iterations = scf::ForOp(planned.loop).getStaticTripCount();
    if (!iterations || iterations->uge(most))
      return most;
    useful += iterations->getSExtValue();
  }
  return std::min(std::max<int64_t>(useful, kMinSlotsOfLate), most);
}

/// If a loop's slots hold all its iterations, hardly a dot is in flight over the end of one.
/// Programs that share an SM keep tensor cores busy then, and these need no slot more.
static void dropDotsBetweenPrograms(SchedulePlan &plan) {
  if (plan.getRegisters() > WarpRegisters(plan.options.warps, /*programs=*/2).getMost())
    return;
  for (PlannedLoop &planned : plan.loops) {
    std::optional<APInt> iterations = planned.loop.getStaticTripCount();
    if (planned.asyncDots.size() > 1 && iterations && iterations->ule(planned.stages))
      planned.asyncDots.clear();
  }
}

bool SlotPlanner::run() {
  if (plan.isByTMA())
    dropDotsBetweenPrograms(plan);
  const unsigned numChannels = plan.channels.size();
  for (PlannedLoop &planned : plan.loops) {
    isInLoop |= scf::ForOp(planned.loop)->getParentOfType<LoopLikeOpInterface>() != nullptr;
    // The operands of a dot that goes on take a slot more.
    wanted = std::max<int64_t>(
        wanted, planned.stages + (!planned.asyncDots.empty() || planned.hasLateDot() ? 1 : 0));
    least = std::max<int64_t>(least, planned.stages);
    barriers = std::max(barriers, Channel::getBarrierBytes(planned.stages + 1) * numChannels);
  }
  if (plan.isByTMA()) {
    if (plan.needsMessages() && !plan.program.isWithoutProducer)
      resources.otherBytes += Mailbox::getBytes(plan.program.words);
    // Rings that are filled while results are stored leave room for these.
    stored = getStored();
    fitting = countFitting(isInLoop);
  }
  if (!bound())
    return false;
  // Rather results in rounds than fewer stages than asked for.
  if (plan.isByTMA() && (isInLoop || plan.program.isPersistent) && plan.program.programs == 1 &&
      fitting < least)
    fitting = std::min(
        least, resources.countFitting(plan.machine.sharedBytes - kExchangeBytes - kBarrierBytes));
  wanted = countUsefulSlots();
  least = std::min(least, wanted);
  plan.slots = std::clamp<int64_t>(fitting, 0, wanted);
  if (plan.slots < kMinSlotsOfLate)
    dropDotsInFlight();
  planPingPong();
  if (!plan.program.copies.empty())
    planProgramSlots();
  scf::ForOp first = plan.loops.front().loop;
  if (plan.slots < 2)
    return plan.refuse(first, "two stages of " + Twine(resources.slotBytes) +
                                  " bytes do not fit into shared memory");
  if (plan.slots < least)
    emitRemark(first, RemarkKind::FewerStages)
        << (!plan.isByTMA()                  ? "loop is pipelined in "
            : plan.program.isWithoutProducer ? "loop copies without a producer warp in "
                                             : "loop is specialised in ")
        << named("stages", plan.slots) << " stages, not " << named("wanted", least)
        << ": a stage takes " << named("stage_bytes", resources.slotBytes)
        << " bytes of shared memory";
  return true;
}
