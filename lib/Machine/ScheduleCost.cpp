// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/ScheduleCost.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace tessera;

ScheduleCost ScheduleCost::get(const IterationWork &work, const IterationOverlap &overlap,
                               const GPUMachine &machine) {
  ScheduleCost cost;
  cost.copies = work.loadedBytes / machine.getBusyL2Bandwidth();
  int64_t busiest = std::max({work.dots, work.arithmetic, cost.copies});
  if (busiest == work.dots)
    cost.bound = ScheduleBound::Dots;
  else if (busiest == work.arithmetic)
    cost.bound = ScheduleBound::Arithmetic;
  else
    cost.bound = ScheduleBound::Copies;
  // One program is two halves; one with a dot beside its arithmetic hides as much as three.
  int64_t halves = overlap.programs * (overlap.hasDotBeside ? 3 : 2);
  cost.cycles = busiest + llvm::divideCeil(2 * std::min(work.dots, work.arithmetic), halves);
  if (overlap.ahead) {
    int64_t latency =
        overlap.isMulticast ? machine.getMulticastLatency() : machine.getBusyMemoryLatency();
    int64_t waits = latency / (std::max<int64_t>(*overlap.ahead, 1) * overlap.programs);
    if (waits > cost.cycles) {
      cost.cycles = waits;
      cost.bound = ScheduleBound::Latency;
    }
  }
  return cost;
}

llvm::StringRef tessera::describe(ScheduleBound bound) {
  switch (bound) {
  case ScheduleBound::Dots:
    return "its dots";
  case ScheduleBound::Arithmetic:
    return "its arithmetic";
  case ScheduleBound::Copies:
    return "its copies";
  case ScheduleBound::Latency:
    return "the latency of its copies";
  }
  llvm_unreachable("no such bound");
}
