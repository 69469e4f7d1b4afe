// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScheduleTrial.h"

#include "KernelExpander.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

RefusalListener::RefusalListener(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        if (place)
          return success();
        place = diagnostic.getLocation();
        why = diagnostic.str();
        for (Diagnostic &note : diagnostic.getNotes())
          // MLIR's own note is the whole operation.
          if (std::string text = note.str(); !StringRef(text).starts_with("see current operation"))
            notes.push_back({note.getLocation(), std::move(text)});
        return success();
      }) {}

void RefusalListener::emitRemark(Location loop, StringRef schedule) const {
  RemarkInFlight remark = tessera::emitRemark(loop, RemarkKind::ScheduleRefused)
                          << "schedule is refused (" << named("schedule", schedule)
                          << "): " << named("reason", StringRef(why));
  if (*place != loop)
    remark.attachNote(*place) << "here";
  for (const auto &[at, text] : notes)
    remark.attachNote(at) << text;
}

void ScheduleTrial::begin() {
  if (!copy)
    copy = cast<tile::FuncOp>(function->clone());
}

/// Loops of one kernel whose tiles TMA brings are verified together, and refused together.
std::optional<size_t> ScheduleTrial::findRefused(ArrayRef<scf::ForOp> loops,
                                                 ArrayRef<PlanKind> plans) {
  unsigned warps = tilegpu::getNumWarps(function).value_or(1);
  KernelExpander kernel(function, warps, machine.sharedBytes);
  std::optional<size_t> byTMA;
  for (auto [index, loop, plan] : llvm::enumerate(loops, plans)) {
    if (static_cast<unsigned>(plan) < options.refused) {
      scf::ForOp(loop).emitError("is refused for a test");
      return index;
    }
    FailureOr<LoopSchedule> schedule = LoopSchedule::read(loop);
    if (failed(schedule))
      return index;
    if (schedule->isByTMA()) {
      byTMA = byTMA.value_or(index);
      kernel.add(std::move(*schedule));
    } else if (failed(schedule->verify(machine.sharedBytes))) {
      return index;
    }
  }
  if (byTMA && failed(kernel.verify()))
    return byTMA;
  return std::nullopt;
}

TrialOutcome ScheduleTrial::finish(ArrayRef<scf::ForOp> loops, ArrayRef<PlanKind> plans,
                                   StringRef schedule) {
  TrialOutcome outcome;
  if (options.isStrict) {
    outcome.refused = findRefused(loops, plans);
    outcome.isError = outcome.refused.has_value();
    return outcome;
  }
  RefusalListener listener(function.getContext());
  outcome.refused = findRefused(loops, plans);
  if (!outcome.refused)
    return outcome;
  std::string name = schedule.str();
  if (plans[*outcome.refused] == PlanKind::Plain)
    name += ", without dots in flight";
  listener.emitRemark(scf::ForOp(loops[*outcome.refused]).getLoc(), name);
  function.getBody().takeBody(copy->getBody());
  function->setAttrs((*copy)->getAttrDictionary());
  return outcome;
}

LogicalResult tessera::tilegpu::trySchedules(tile::FuncOp function, const GPUMachine &machine,
                                             const TrialOptions &options,
                                             const ScheduleCandidates &candidates) {
  // The number of the candidate that each group tries.
  SmallVector<size_t> tried;
  while (true) {
    ScheduleTrial trial(function, machine, options);
    SmallVector<scf::ForOp> loops;
    SmallVector<PlanKind> kinds;
    SmallVector<size_t> groupOfLoop;
    SmallVector<LoopGroup> groups = candidates.getGroups(function);
    tried.resize(groups.size(), 0);
    for (auto [index, group] : llvm::enumerate(groups)) {
      if (tried[index] == candidates.kinds.size())
        continue;
      PlanKind kind = candidates.kinds[tried[index]];
      for (scf::ForOp loop : candidates.propose(group, kind, [&] { trial.begin(); })) {
        loops.push_back(loop);
        kinds.push_back(kind);
        groupOfLoop.push_back(index);
      }
    }
    TrialOutcome outcome = trial.finish(loops, kinds, candidates.name);
    if (outcome.isError)
      return failure();
    if (!outcome.refused)
      return success();
    ++tried[groupOfLoop[*outcome.refused]];
  }
}
