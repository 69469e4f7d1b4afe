// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for kernels whose dots take their tiles from global memory in boxes
// (Analysis/Boxes/BoxAccess.h), which TMA copies. A producer warp issues the copies, so that the
// program's warps only multiply. If threads compute longer than tensor cores multiply, the
// program's first thread issues them in between. tilegpu-expand-schedule writes the kernel
// (KernelExpander.h).
//
// Loads come before all that the program does to memory before them: in front of the loop, in it,
// or, an iteration earlier, in a loop around it. That must not change the result
// (Analysis/Order/MemoryOrder.h): the arrays differ, which the launch checks, or their places in
// one array never overlap. A loop of which that cannot be known stays as it is, and so does one
// whose tiles are no boxes; a remark says why. The kernel's other loops have their schedules all
// the same.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "EarlyLoads.h"
#include "Facts/WarpRegisters.h"
#include "LoadsAhead.h"
#include "Mailbox.h"
#include "ProgramCopies.h"
#include "Programs/PersistentKernel.h"
#include "RingMemory.h"
#include "Specializer.h"
#include "StoreByTensorMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr int64_t kBarrierBytes = SharedMemoryBudget::kBarriers;
static constexpr unsigned kMinSlotsOfLate = ScheduleSizes::kMinSlotsOfLate;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUWARPSPECIALIZEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

//===----------------------------------------------------------------------===//
// Registers, shared memory and programs
//===----------------------------------------------------------------------===//

/// Registers of a thread for the loop that wants most.
int64_t Specializer::getWantedRegisters() const {
  int64_t wanted = 0;
  for (const BoxLoop &planned : loops)
    wanted = std::max(wanted, getWantedRegisters(planned));
  for (scf::ForOp loop : unplanned) {
    BoxLoop other;
    other.loop = loop;
    wanted = std::max(wanted, getWantedRegisters(other));
  }
  return wanted;
}

/// Rather several programs at once, of which one multiplies while another computes; then
/// their warps have each other to wait for, where one alone puts a dot off.
void Specializer::planPrograms(llvm::function_ref<bool(int64_t)> fits) {
  auto find = [&] {
    for (programs = mostPrograms; programs > 1; --programs)
      if (fits(machine.getSharedBytes(programs)) &&
          getWantedRegisters() <= WarpRegisters(warps, programs).getMost())
        break;
  };
  find();
  if (programs > 1)
    return;
  std::vector<BoxLoop> late = loops;
  for (BoxLoop &planned : loops)
    planned.lateDot = nullptr;
  find();
  if (programs > 1)
    return;
  // One group of warps computes while the others multiply.
  loops = std::move(late);
  for (BoxLoop &planned : loops)
    planned.isPingPong = planned.lateDot && warps >= 2 * GPUMachine::kWarpsOfWarpgroup;
}

/// Finds what the producer could copy once a program. False if loops multiply other tiles that
/// threads have before them.
bool Specializer::planProgramCopies() {
  bool isComplete = true;
  for (BoxLoop &planned : loops)
    for (AsyncDotOp dot : planned.loop.getBody()->getOps<AsyncDotOp>())
      isComplete &= isa<MemDescType>(dot.getA().getType()) ||
                    !planned.loop.isDefinedOutsideOfLoop(dot.getA());
  ReplacedOps inLoops = getReplaced();
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](LocalAllocOp buffer) {
    if (!buffer.getSource() || inLoops.contains(buffer))
      return;
    auto load = buffer.getSource().getDefiningOp<tile::LoadOp>();
    isComplete &= load != nullptr;
    if (load && !llvm::is_contained(loads, load))
      loads.push_back(load);
  });
  for (tile::LoadOp load : loads) {
    std::string why;
    std::optional<ScheduledCopy> copy = getProgramCopy(kernel, load, why);
    std::optional<BoxAccess> box;
    if (copy)
      box = getBoxToCopy(kernel.getBody(), load, copy->tile, analysis, why);
    if (!box || box->isFoundByKernel() || findObstacle(kernel, load, order, analysis, conditions)) {
      isComplete = false;
      continue;
    }
    copy->channel = channels.size() + programCopies.size();
    programCopies.push_back(std::move(*copy));
  }
  return isComplete;
}

/// The ops that copies replace.
ReplacedOps Specializer::getReplaced() const {
  ReplacedOps replaced = getReplacedBy(programCopies);
  for (const BoxLoop &planned : loops)
    replaced.insert_range(planned.getReplaced());
  return replaced;
}

/// A second slot for what is copied once a program, where there is room for it: `others` has the
/// first.
void Specializer::planProgramSlots(int64_t others) {
  auto getTile = [](const ScheduledCopy &copy) { return copy.tile; };
  int64_t bytes = tilegpu::getBytesOfSlots(llvm::map_range(programCopies, getTile));
  bytes += slots * getBytesOfSlots() + channels.size() * Channel::getBarrierBytes(slots) +
           programCopies.size() * Channel::getBarrierBytes(/*slots=*/2) + others +
           getRoomForResults(kernel, getReplaced(), analysis);
  programSlots = bytes <= machine.sharedBytes ? 2 : 1;
}

/// Shared memory that rings cannot have. A kernel with loops of many dots after one another keeps
/// a few large tiles for each of them, which are not there at once.
int64_t Specializer::getOtherBytes(const ReplacedOps &replaced) const {
  Block &body = tile::FuncOp(kernel).getBody().front();
  llvm::DenseMap<Operation *, size_t> places;
  for (Operation &op : body)
    places.try_emplace(&op, places.size());
  auto getPlace = [&](Operation *op) { return places.lookup(body.findAncestorOpInBlock(*op)); };
  std::vector<int64_t> live(places.size(), 0);
  int64_t sum = 0;
  tile::FuncOp(kernel).walk([&](LocalAllocOp buffer) {
    if (replaced.contains(buffer))
      return;
    size_t first = getPlace(buffer), last = first;
    SmallVector<Operation *> work{buffer};
    while (!work.empty())
      for (Operation *user : work.pop_back_val()->getUsers()) {
        last = std::max(last, getPlace(user));
        if (isa<MemDescTransOp, MemDescIndexOp>(user))
          work.push_back(user);
      }
    sum += buffer.getType().getNumBytes();
    for (size_t place = first; place <= last; ++place)
      live[place] += buffer.getType().getNumBytes();
  });
  return hasOrder() ? *llvm::max_element(live) : sum;
}

int64_t Specializer::getBytesOfSlots() const {
  int64_t bytes = 0;
  for (const Channel &channel : channels)
    bytes += channel.getSlotBytes();
  return bytes;
}

RingResources Specializer::getResources(int64_t warps, int64_t otherBytes) const {
  return {machine, warps, getWantedRegisters(), getBytesOfSlots(), otherBytes};
}

/// Slots for copies that arrive in time, without lowering occupancy or taking the cache's memory,
/// whose loss costs a launch 0.4 us (notes/Notebook.md). At least `wanted`, and no more if the
/// source sets their number. Clusters are for launches of few programs, whose blocks each have an
/// SM, and wait longer for copies.
int64_t Specializer::getTimelySlots(int64_t wanted, int64_t others) const {
  int64_t timely = wanted;
  for (const BoxLoop &planned : loops)
    if (!scf::ForOp(planned.loop)->hasAttr(kStagesAttr))
      timely = std::max(timely, tilegpu::getTimelySlots(planned.loop, machine));
  RingResources resources = getResources(warps + 1, others);
  int64_t most = machine.sharedBytes;
  if (getNumBlocks(kernel) == 1 && getNumParts(kernel) == 1) {
    // The memory for results includes a reserve that the kernel does not use.
    most = machine.getSharedBytesBesideCache() + (isPersistent ? kExchangeBytes : 0);
    if (!isPersistent)
      most = std::min(most, resources.getSharedBytes(wanted));
  }
  return resources.getTimelySlots(wanted, timely, most);
}

bool Specializer::planSlots() {
  int64_t perSlot = getBytesOfSlots();
  bool isInLoop = llvm::any_of(loops, [](const BoxLoop &planned) {
    return scf::ForOp(planned.loop)->getParentOfType<LoopLikeOpInterface>() != nullptr;
  });
  int64_t others = getOtherBytes(getReplaced());
  if (needsMessages() && !copiesWithoutProducer)
    others += Mailbox::getBytes(words);
  // Rings that are filled while results are stored leave room for these.
  int64_t barriers = 0;
  for (const BoxLoop &planned : loops)
    barriers = std::max(barriers, Channel::getBarrierBytes(planned.stages + 1));
  barriers *= channels.size();
  auto getStored = [&] {
    return std::max(kExchangeBytes, barriers + getRoomForResults(kernel, getReplaced(), analysis));
  };
  int64_t stored = getStored();
  RingResources resources = getResources(warps, others);
  auto getFitting = [&](bool isStored) {
    return resources.countFitting(machine.sharedBytes - (isStored ? stored : kExchangeBytes));
  };
  int64_t fitting = getFitting(isInLoop);
  scf::ForOp first = loops.front().loop;
  unsigned wanted = 0, least = 0;
  for (const BoxLoop &planned : loops) {
    // The operands of a dot that goes on take a slot more.
    wanted = std::max(wanted, planned.stages + (planned.asyncDot || planned.hasLateDot() ? 1 : 0));
    least = std::max(least, planned.stages);
    // Nothing is copied ahead of such a loop: it has to be fast to have a ring full.
    if (planned.isInPlace && copiesWithoutProducer)
      least = wanted;
  }
  // Rather two programs on an SM than a long ring: one copies while the other computes.
  unsigned few = least;
  if (hasOrder())
    few = std::min(few, hasLateDot() ? kMinSlotsOfLate : 2u);
  // A dot in flight keeps tensor cores busy, if the ring is long. Between results they are idle,
  // unless the next one's copies have begun.
  constexpr unsigned kMinSlotsOfPersistent = ScheduleSizes::kMinSlotsOfPersistent;
  // At an occupancy of 1, the next program's tiles are copied while this one stores. If threads
  // compute with operands, that pays only if they load none.
  auto planPersistence = [&](bool isWithoutLoads) {
    isPersistent = unplanned.empty() && !isInLoop && !needsMessages() &&
                   getWantedRegisters() > WarpRegisters(warps, /*programs=*/2).alone &&
                   PersistentKernel::isPossible(kernel);
    if (!isPersistent)
      return;
    std::optional<ProgramOrder> found = PersistentKernel::findOrder(kernel);
    isPersistent = found && (planProgramCopies() || !isWithoutLoads);
    int64_t alone = stored;
    if (!programCopies.empty())
      stored = getStored() + programCopies.size() * Channel::getBarrierBytes(/*slots=*/1);
    // If no more slots fit in any case, persistence costs none.
    isPersistent &=
        getFitting(/*isStored=*/true) >=
        std::min<int64_t>(std::min(wanted, kMinSlotsOfPersistent), std::max<int64_t>(fitting, 2));
    if (isPersistent) {
      programOrder = *found;
    } else {
      programCopies.clear();
      stored = alone;
    }
    fitting = getFitting(isInLoop || isPersistent);
  };
  if (copiesWithoutProducer) {
    fitting = std::min<int64_t>(getFitting(isInLoop), wanted);
    if (sharedPrograms > 1) {
      int64_t most = resources.countFitting(machine.getSharedBytes(sharedPrograms) - barriers);
      if (most >= 2)
        least = fitting = std::min(fitting, most);
    }
    // Programs fill each other's gaps: better a slot less than that barriers take the place of
    // one of them.
    RingResources tiles = resources;
    // Threads have no pointers to carry.
    tiles.registers -= RegisterBudget::kPointers;
    RingResources all = tiles;
    all.otherBytes += Channel::getBarrierBytes(fitting) * channels.size();
    if (fitting > 2 && all.countPrograms(fitting) < tiles.countPrograms(fitting)) {
      --fitting;
      emitRemark(first, RemarkKind::FewerStages)
          << "loop copies without a producer warp in " << named("stages", fitting)
          << " stages, not " << named("wanted", least)
          << ": one more would reduce the programs on an SM";
      least = fitting;
    }
  } else if (llvm::all_of(loops, [](const BoxLoop &planned) { return planned.asyncDot; })) {
    planPersistence(/*isWithoutLoads=*/false);
    // Its barriers are those of a longer ring.
    int64_t more = Channel::getBarrierBytes(kMaxTimelySlots) * channels.size() - barriers;
    wanted = getTimelySlots(wanted, others + more + (isInLoop || isPersistent ? stored : barriers));
  } else {
    planPrograms([&](int64_t bytes) {
      return resources.countFitting(bytes - (isInLoop ? stored : kBarrierBytes)) >= few;
    });
    if (programs > 1) {
      fitting = resources.countFitting(machine.getSharedBytes(programs) -
                                       (isInLoop ? stored : kBarrierBytes));
      least = std::min<int64_t>(least, fitting);
    } else if (llvm::all_of(loops,
                            [](const BoxLoop &planned) {
                              return !planned.order && computesWithDots(planned.loop);
                            }) &&
               getWantedRegisters() + RegisterBudget::kSpare <=
                   WarpRegisters(warps, /*programs=*/1).getMost()) {
      planPersistence(/*isWithoutLoads=*/false);
    } else if (llvm::all_of(loops, [](const BoxLoop &planned) { return planned.lateDot; })) {
      planPersistence(/*isWithoutLoads=*/true);
    }
  }
  // Rather results in rounds than fewer stages than asked for.
  if ((isInLoop || isPersistent) && programs == 1 && fitting < least)
    fitting = std::min<int64_t>(
        least, resources.countFitting(machine.sharedBytes - kExchangeBytes - kBarrierBytes));
  slots = std::clamp<int64_t>(fitting, 0, wanted);
  // The tiles of dots that begin an iteration later stay there as long: with two slots nothing
  // would be copied meanwhile.
  if (slots < kMinSlotsOfLate)
    dropLateDots();
  if (!programCopies.empty())
    planProgramSlots(others);
  if (slots < 2)
    return refuse(first,
                  "two stages of " + Twine(perSlot) + " bytes do not fit into shared memory");
  if (slots < least)
    emitRemark(first, RemarkKind::FewerStages)
        << (copiesWithoutProducer ? "loop copies without a producer warp in "
                                  : "loop is specialised in ")
        << named("stages", slots) << " stages, not " << named("wanted", least) << ": a stage takes "
        << named("stage_bytes", perSlot) << " bytes of shared memory";
  return true;
}

/// True if tensor cores have more to do than threads, in some loop.
bool Specializer::isBoundByDots() const {
  return llvm::any_of(loops, [this](const BoxLoop &planned) {
    return getIterationWork(planned.loop, machine).isBoundByDots();
  });
}

static std::string describeBound(scf::ForOp loop, const GPUMachine &machine) {
  IterationWork work = getIterationWork(loop, machine);
  return "its arithmetic takes longer than its dots, " + std::to_string(work.arithmetic) +
         " cycles and " + std::to_string(work.dots);
}

void Specializer::dropLateDots() {
  for (BoxLoop &planned : loops)
    if (planned.hasLateDot())
      planned.order = DotOrder::plan(planned.loop, planned.getReplaced(), /*isLate=*/false);
}

/// Programs beside each other overlap better than a loop's dots and its arithmetic do
/// (tessera/Machine/ScheduleCost.h). If occupancy without producer warps is so much higher that
/// iterations take no longer, there are none.
void Specializer::planSharedPrograms() {
  if (!llvm::all_of(loops, [](const BoxLoop &planned) {
        return planned.order && whyNotCopiedAhead(planned.loop).empty();
      }))
    return;
  constexpr int64_t kMaxProgramsWithoutProducer = ScheduleSizes::kMaxProgramsWithoutProducer;
  int64_t bytes = getOtherBytes(getReplaced()) + 2 * getBytesOfSlots() + kBarrierBytes;
  auto count = [&](int64_t most, llvm::function_ref<int64_t(int64_t)> getMost) {
    int64_t wanted = std::min(getWantedRegisters(), GPUMachine::kMaxAllocatedRegisters);
    int64_t found = 1;
    while (found < most && getMost(found + 1) >= wanted &&
           machine.getSharedBytes(found + 1) >= bytes)
      ++found;
    return found;
  };
  // Warps that exchange registers leave none to loops of which it is not known what they need.
  int64_t beside = count(mostPrograms, [&](int64_t several) {
    WarpRegisters registers(warps, several);
    return unplanned.empty() ? registers.getMost() : registers.alone;
  });
  // The cost of iterations of all loops, if copies arrive in time.
  auto getCycles = [&](int64_t sharing) {
    int64_t cycles = 0;
    for (const BoxLoop &planned : loops)
      cycles += ScheduleCost::get(getIterationWork(planned.loop, machine),
                                  {sharing, planned.hasDotBeside()}, machine)
                    .cycles;
    return cycles;
  };
  int64_t besideCycles = getCycles(beside);
  std::vector<BoxLoop> late = loops;
  dropLateDots();
  int64_t threads = GPUMachine::kWarpSize * warps;
  int64_t alone = count(kMaxProgramsWithoutProducer, [&](int64_t several) {
    return GPUMachine::getRegisters(several * threads);
  });
  // A program that issues its own copies is idle meanwhile.
  if (alone > 1 && alone >= beside && getCycles(alone) <= besideCycles)
    sharedPrograms = alone;
  else
    loops = std::move(late);
}

bool Specializer::hasLoopsInPlace() const {
  return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.isInPlace; });
}

bool Specializer::needsMessages() const {
  return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.needsMessages; });
}

/// The messages to a producer, for all loops.
void Specializer::planMessages() {
  if (!needsMessages())
    return;
  SmallVector<scf::ForOp> copied;
  for (const BoxLoop &planned : loops)
    copied.push_back(planned.loop);
  ProducerSlice slice(kernel, copied);
  unsigned maps = 0;
  for (const BoxLoop &planned : loops) {
    planned.addTo(slice);
    maps += llvm::count_if(planned.loads,
                           [](const PlannedCopy &load) { return load.box.isFoundByKernel(); });
  }
  whyNoMessages = slice.getWhyNot().str();
  // It also receives each map, and for each loop a flag for copied results.
  if (whyNoMessages.empty())
    words = ProducerSlice::countWords(slice.getMessages()) + maps + copied.size();
}

/// If not, tensor cores wait for threads, and several programs are faster. The registers of a
/// producer warp are worth a program (attention with heads of 64). One of their own orders copies
/// then. It also does if the kernel loads addresses of arrays, and a producer cannot receive the
/// values that it needs.
bool Specializer::planOwnCopies() {
  scf::ForOp first = loops.front().loop;
  if (!whyNoMessages.empty())
    whyNoProducer = (hasLoopsInPlace() ? "the kernel loads addresses of its arrays, and "
                                       : "a producer cannot receive a value: ") +
                    whyNoMessages;
  else
    whyNoProducer = sharedPrograms > 1 ? "more programs share an SM without producer warps"
                                       : describeBound(first, machine);
  for (BoxLoop &planned : loops) {
    if (planned.asyncDot && !hasLoopsInPlace())
      return refuse(first, whyNoProducer);
    if (std::string why = whyNotCopiedAhead(planned.loop); !why.empty())
      return refuse(planned.loop, whyNoProducer + ", and " + why);
    planned.lateDot = nullptr;
  }
  // Slots are to be left where an iteration ends.
  dropLateDots();
  copiesWithoutProducer = true;
  return true;
}

bool Specializer::plan() {
  if (!kernel.isKernel() || !kernel.getBody().hasOneBlock())
    return false;
  SmallVector<scf::ForOp> candidates;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop.getBody()->getOps<AsyncDotOp>().empty())
      candidates.push_back(loop);
  });
  if (candidates.empty())
    return false;
  // Which threads these are is another question where there are others than the program's.
  if (Operation *barrier = findWaitForThreads(kernel))
    return refuse(candidates.front(),
                  "inline assembly or an external function may contain a barrier", barrier);
  for (scf::ForOp loop : candidates)
    if (!planLoop(loop))
      unplanned.push_back(loop);
  if (loops.empty())
    return false;
  if (isBoundByDots())
    planSharedPrograms();
  // Rings of other loops, which copy by cp.async, are counted nowhere.
  if (sharedPrograms > 1 && !unplanned.empty())
    return refuse(loops.front().loop,
                  "more programs share an SM without producer warps, and another loop is not "
                  "specialised",
                  unplanned.front());
  planMessages();
  if ((!isBoundByDots() || sharedPrograms > 1 || !whyNoMessages.empty()) && !planOwnCopies())
    return false;
  if (!planSlots())
    return false;
  // The registers of unchanged loops are only estimated: they must suffice without an exchange
  // between warps.
  if (!copiesWithoutProducer && !unplanned.empty() &&
      getWantedRegisters() > WarpRegisters(warps, programs).alone)
    return refuse(loops.front().loop,
                  "another loop would have too few registers with a producer warp",
                  unplanned.front());
  return true;
}

//===----------------------------------------------------------------------===//
// The kernel's schedule
//===----------------------------------------------------------------------===//

/// Programs that share an SM.
int64_t Specializer::countPrograms() const {
  if (isPersistent)
    return 1;
  int64_t most = std::max(programs, sharedPrograms);
  if (most > 1)
    return most;
  return getResources(copiesWithoutProducer ? warps : warps + 1, getOtherBytes(getReplaced()))
      .countPrograms(slots);
}

IterationOverlap Specializer::getOverlap(const BoxLoop &planned) const {
  IterationOverlap overlap;
  overlap.programs = countPrograms();
  overlap.hasDotBeside = planned.hasDotBeside();
  // A slot is read, and another one by a dot that goes on.
  overlap.ahead = int64_t(slots) - (planned.asyncDot || planned.hasDotBeside() ? 2 : 1);
  overlap.isMulticast = getNumParts(kernel) > 1;
  return overlap;
}

KernelScheduleAttr Specializer::getKernelSchedule() const {
  int64_t wanted = getWantedRegisters();
  WarpRegisters registers(warps, programs);
  bool isShared = wanted > registers.alone && registers.shared > registers.alone;
  SmallVector<ChannelAttr> ofPrograms;
  for (const ScheduledCopy &copy : programCopies)
    ofPrograms.push_back(ChannelAttr::get(tile::FuncOp(kernel)->getContext(), copy.channel,
                                          programSlots, CopyKind::TMA));
  const int32_t producerWarps = isShared ? GPUMachine::kWarpsOfWarpgroup : 1,
                ofProducer = registers.forCopies;
  return KernelScheduleAttr::get(
      tile::FuncOp(kernel)->getContext(), producerWarps, isShared ? registers.shared : 0,
      isShared ? ArrayRef(ofProducer) : ArrayRef<int32_t>(), programs, isPersistent, programOrder,
      /*group=*/0, ofPrograms);
}

void Specializer::propose() {
  if (copiesWithoutProducer) {
    scf::ForOp loop = loops.front().loop;
    emitRemark(loop, RemarkKind::LoopCopiesWithoutProducer)
        << "loop copies without a producer warp: " << named("reason", whyNoProducer);
  } else {
    kernel->setAttr(kKernelScheduleAttr, getKernelSchedule());
  }
  for (const ScheduledCopy &copy : programCopies)
    tile::LoadOp(copy.load)->setAttr(kNodeAttr, NodeAttr::getCopy(kernel.getContext(), /*stage=*/0,
                                                                  /*order=*/0, copy.channel, Type(),
                                                                  /*producer=*/0));
  for (BoxLoop &planned : loops)
    propose(planned);
}

SmallVector<scf::ForOp> Specializer::getLoops() const {
  return llvm::map_to_vector(loops, [](const BoxLoop &planned) { return planned.loop; });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUWarpSpecializePass
    : tessera::tilegpu::impl::TileGPUWarpSpecializePassBase<TileGPUWarpSpecializePass> {
  using TileGPUWarpSpecializePassBase::TileGPUWarpSpecializePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!target || !warps) {
      module.emitError("does not say for which target and how many warps it is (")
          << kTargetAttr << ", " << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    // There is no TMA before.
    if (!target.getMachine()->hasTMA || *warps >= GPUMachine::kMaxWarps)
      return;
    TrialOptions options{strict, refused};
    for (auto kernel : module.getOps<tile::FuncOp>())
      if (failed(specialize(kernel, *target.getMachine(), *warps, options)))
        return signalPassFailure();
  }

private:
  /// Plans the kernel until the verifier accepts the plan.
  LogicalResult specialize(tile::FuncOp kernel, const GPUMachine &machine, unsigned warps,
                           const TrialOptions &options) {
    // A schedule that is already there stays.
    if (kernel->hasAttr(kKernelScheduleAttr))
      return success();
    for (PlanKind plan = PlanKind::Full; plan != PlanKind::None; plan = getNextPlan(plan)) {
      Specializer specializer(kernel, machine, numStages, warps, skew, mostPrograms, plan);
      if (!specializer.plan())
        return success();
      ScheduleTrial trial(kernel, machine, options);
      trial.begin();
      specializer.propose();
      SmallVector<scf::ForOp> loops = specializer.getLoops();
      SmallVector<PlanKind> plans(loops.size(), plan);
      TrialOutcome outcome = trial.finish(loops, plans, "copies by TMA");
      if (outcome.isError)
        return failure();
      if (!outcome.refused)
        return success();
    }
    return success();
  }
};

} // namespace
