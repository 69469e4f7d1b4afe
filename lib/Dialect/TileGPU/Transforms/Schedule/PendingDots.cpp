// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PendingDots.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

PendingDots::PendingDots(const LoopSchedule &schedule) : schedule(schedule) {
  int first = schedule.getFirstStage(), last = schedule.getLastStage();
  // The steady state and the prologue, then the epilogue.
  for (int stage = last; stage >= 0; --stage)
    before.push_back(schedule.getAsyncDots(first, stage));
  for (int drained = 1; drained < last; ++drained)
    for (int stage = drained; stage <= last; ++stage)
      before.push_back(schedule.getAsyncDots(drained, stage));
}

void PendingDots::beginIteration() {
  begun.clear();
  pending.reset();
}

void PendingDots::begin(Operation *dot) {
  begun.push_back(dot);
  if (pending)
    ++*pending;
}

/// ptxas serialises the dots of a loop in which a wait allows more dots than a wait before it has
/// left (C7514).
unsigned PendingDots::wait(Operation *dot) {
  unsigned after = countBegunAfter(dot);
  pending = pending ? std::min(*pending, after) : after;
  return *pending;
}

unsigned PendingDots::countBegunAfter(Operation *dot) const {
  if (schedule.getOp(dot).inFlight == 0)
    return begun.end() - llvm::find(begun, dot) - 1;
  std::optional<unsigned> later;
  for (ArrayRef<Operation *> dots : before)
    if (const auto *found = llvm::find(dots, dot); found != dots.end()) {
      unsigned after = dots.end() - found - 1;
      later = std::min(later.value_or(after), after);
    }
  return *later + begun.size();
}

bool PendingDots::areAcrossIterations() const {
  return llvm::any_of(before.front(),
                      [&](Operation *dot) { return schedule.getOp(dot).inFlight != 0; });
}
