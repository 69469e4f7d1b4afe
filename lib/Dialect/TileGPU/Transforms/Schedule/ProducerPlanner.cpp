// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProducerPlanner.h"

#include "Facts/WarpRegisters.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// True if tensor cores have more to do than threads, in some loop.
bool ProducerPlanner::isBoundByDots() const {
  return llvm::any_of(plan.loops, [this](const PlannedLoop &planned) {
    return getIterationWork(planned.loop, plan.machine).isBoundByDots();
  });
}

static std::string describeBound(scf::ForOp loop, const GPUMachine &machine) {
  IterationWork work = getIterationWork(loop, machine);
  return "its arithmetic takes longer than its dots, " + std::to_string(work.arithmetic) +
         " cycles and " + std::to_string(work.dots);
}

/// Programs beside each other overlap better than a loop's dots and its arithmetic do
/// (tessera/Machine/ScheduleCost.h). If occupancy without producer warps is so much higher that
/// iterations take no longer, there are none.
void ProducerPlanner::planSharedPrograms() {
  if (!llvm::all_of(plan.loops, [](const PlannedLoop &planned) {
        return planned.order && whyNotCopiedAhead(planned.loop).empty();
      }))
    return;
  constexpr int64_t kMaxProgramsWithoutProducer = ScheduleSizes::kMaxProgramsWithoutProducer;
  int64_t bytes = plan.getOtherBytes() + 2 * plan.getSlotBytes() + SharedMemoryBudget::kBarriers;
  auto count = [&](int64_t most, llvm::function_ref<int64_t(int64_t)> getMost) {
    int64_t wanted = std::min(plan.getRegisters(), GPUMachine::kMaxAllocatedRegisters);
    int64_t found = 1;
    while (found < most && getMost(found + 1) >= wanted &&
           plan.machine.getSharedBytes(found + 1) >= bytes)
      ++found;
    return found;
  };
  // Warps that exchange registers leave none to loops of which it is not known what they need.
  int64_t beside = count(plan.options.mostPrograms, [&](int64_t several) {
    WarpRegisters registers(plan.options.warps, several);
    return plan.unplanned.empty() ? registers.getMost() : registers.alone;
  });
  int64_t besideCycles = plan.getCycles(beside);
  std::vector<PlannedLoop> late = plan.loops;
  dropLateDots(plan);
  int64_t threads = GPUMachine::kWarpSize * plan.options.warps;
  int64_t alone = count(kMaxProgramsWithoutProducer, [&](int64_t several) {
    return GPUMachine::getRegisters(several * threads);
  });
  // A program that issues its own copies is idle meanwhile.
  if (alone > 1 && alone >= beside && plan.getCycles(alone) <= besideCycles)
    plan.program.shared = alone;
  else
    plan.loops = std::move(late);
}

/// The messages to a producer, for all loops.
void ProducerPlanner::planMessages() {
  if (!plan.needsMessages())
    return;
  SmallVector<scf::ForOp> copied;
  for (const PlannedLoop &planned : plan.loops)
    copied.push_back(planned.loop);
  ProducerSlice slice(plan.function, copied);
  unsigned maps = 0;
  for (const PlannedLoop &planned : plan.loops) {
    planned.addTo(slice);
    maps += llvm::count_if(planned.copies,
                           [](const PlannedCopy &copy) { return copy.box.isFoundByKernel(); });
  }
  plan.program.whyNoMessages = slice.getWhyNot().str();
  // It also receives each map, and for each loop a flag for copied results.
  if (plan.program.whyNoMessages.empty())
    plan.program.words = ProducerSlice::countWords(slice.getMessages()) + maps + copied.size();
}

/// If not, tensor cores wait for threads, and several programs are faster. The registers of a
/// producer warp are worth a program (attention with heads of 64). One of their own orders copies
/// then. It also does if the kernel loads addresses of arrays, and a producer cannot receive the
/// values that it needs.
bool ProducerPlanner::planOwnCopies() {
  ProgramPlan &program = plan.program;
  scf::ForOp first = plan.loops.front().loop;
  bool hasLoopsInPlace = plan.any([](const PlannedLoop &planned) { return planned.isInPlace; });
  if (!program.whyNoMessages.empty())
    program.whyNoProducer = (hasLoopsInPlace ? "the kernel loads addresses of its arrays, and "
                                             : "a producer cannot receive a value: ") +
                            program.whyNoMessages;
  else
    program.whyNoProducer =
        plan.options.mostPrograms == 0 ? "its threads need the registers of a producer warp"
        : program.shared > 1           ? "more programs share an SM without producer warps"
                                       : describeBound(first, plan.machine);
  for (PlannedLoop &planned : plan.loops) {
    // The last of several dots alone is under way while copies begin.
    if (planned.asyncDots.size() > 1)
      planned.asyncDots.clear();
    if (!planned.asyncDots.empty() && !hasLoopsInPlace)
      return plan.refuse(first, program.whyNoProducer);
    if (std::string why = whyNotCopiedAhead(planned.loop); !why.empty())
      return plan.refuse(planned.loop, program.whyNoProducer + ", and " + why);
    planned.lateDot = nullptr;
  }
  // Slots are to be left where an iteration ends.
  dropLateDots(plan);
  program.isWithoutProducer = true;
  return true;
}

bool ProducerPlanner::run() {
  if (isBoundByDots())
    planSharedPrograms();
  // Rings of other loops, which copy by cp.async, are counted nowhere.
  if (plan.program.shared > 1 && !plan.unplanned.empty())
    return plan.refuse(plan.loops.front().loop,
                       "more programs share an SM without producer warps, and another loop is not "
                       "specialised",
                       plan.unplanned.front());
  planMessages();
  bool mayHaveProducer = plan.options.mostPrograms > 0 && plan.program.whyNoMessages.empty();
  return (mayHaveProducer && isBoundByDots() && plan.program.shared == 1) || planOwnCopies();
}
