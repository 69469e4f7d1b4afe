// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/LaunchCost.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace tessera;

/// How sharply the longest of several times decides about all of them (see the header).
static constexpr double kSharpnessOfResources = 3, kSharpnessOfMemory = 4;

/// The same of latency beside work: few warps of a scheduler hide little of it. If copies fill a
/// ring, and warps wait for its phases, more warps do not hide more. They take the same tiles in
/// turn.
static double getSharpnessOfWave(double warpsOfScheduler, bool hasRing) {
  constexpr double kOfOneWarp = 1.3, kOfEachWarp = 0.3, kMax = 6, kOfRing = 2;
  if (hasRing)
    return kOfRing;
  return std::min(kOfOneWarp + kOfEachWarp * (warpsOfScheduler - 1), kMax);
}

static double combine(llvm::ArrayRef<double> times, double sharpness) {
  double sum = 0;
  for (double time : times)
    sum += std::pow(time, sharpness);
  return std::pow(sum, 1 / sharpness);
}

int64_t KernelResources::countResident(const GPUMachine &machine) const {
  // A warp's registers are allocated in steps of eight a thread.
  int64_t ofWarp = llvm::alignTo(std::max<int64_t>(registers, 1), GPUMachine::kRegisterStep) *
                   GPUMachine::kWarpSize;
  int64_t resident = std::min<int64_t>(machine.maxBlocksOfSM,
                                       machine.maxThreadsOfSM / (warps * GPUMachine::kWarpSize));
  resident = std::min(resident, GPUMachine::kRegisters / (ofWarp * warps));
  resident = std::min(resident,
                      machine.sharedBytesOfSM / (sharedBytes + GPUMachine::kReservedSharedBytes));
  return std::max<int64_t>(resident, 1);
}

/// Cycles of an SM for the work of a program, by resource.
static ResourceUse getBusyCycles(const ProgramWork &work, const KernelResources &kernel,
                                 const GPUMachine &machine, const LaunchRates &rates) {
  constexpr double kLanes = GPUMachine::kWarpSize;
  const ResourceUse &use = work.use;
  ResourceUse busy;
  busy[Resource::Issue] = use[Resource::Issue] * kLanes / double(machine.issueRate);
  busy[Resource::Integers] = use[Resource::Integers] * kLanes / double(rates.integerRate);
  busy[Resource::Floats] = use[Resource::Floats] * kLanes / double(machine.f32Rate);
  // Threads have half the rate of tensor cores.
  busy[Resource::Doubles] = use[Resource::Doubles] * kLanes * 2 / double(machine.warpMMARateF64);
  busy[Resource::Functions] = use[Resource::Functions] * rates.functionCycles;
  busy[Resource::Shared] = use[Resource::Shared];
  // Where they are is not known: half of the spilled words are taken to be used in the busiest
  // loop.
  double uses = std::max(double(kernel.warps), work.visitsOfBusiest / 2);
  double spilledWords = double(kernel.spillBytes) * uses / GPUMachine::kRegisterBytes;
  busy[Resource::Global] =
      use[Resource::Global] * rates.lineCycles + spilledWords * rates.spillCycles;
  busy[Resource::Tensor] = use[Resource::Tensor];
  // A line of few bytes takes as long as one of many.
  busy[Resource::Read] =
      std::max((use[Resource::Read] + use[Resource::Written]) / rates.l2Bandwidth,
               use[Resource::Requests] * rates.requestCycles);
  return busy;
}

/// Cycles of a program that is alone.
static double getLatency(const ProgramWork &work, const KernelResources &kernel,
                         const LaunchRates &rates) {
  double copied = work.use[Resource::AsyncCopy];
  if (copied == 0)
    return work.latency;
  double latency = work.latency + rates.copyLatency;
  if (kernel.stages == 0)
    return latency;
  // All tiles of a ring are under way but the one that is used.
  double underway = double(std::max<int64_t>(kernel.sharedBytes, 1));
  if (kernel.stages > 1)
    underway *= double(kernel.stages - 1) / double(kernel.stages);
  return std::max(latency, copied / underway * rates.copyLatency);
}

/// Bytes that come from memory again, for the programs that run at the same time read so much in
/// between that the second-level cache has replaced them.
static double getReplacedBytes(const ProgramWork &work, int64_t resident, int64_t blocks,
                               const GPUMachine &machine, int64_t numSMs) {
  // Parts of the cache's size: rows of up to the first stay there, and none of more than the
  // second.
  constexpr double kKept = 0.4, kReplaced = 1.1;
  double first = 0, again = 0;
  for (auto [argument, bytes] : work.reread) {
    again += bytes;
    first += work.traffic.at(argument).first - bytes;
  }
  double together = first * double(std::min(numSMs * resident, blocks)) / double(machine.l2Bytes);
  double part = std::clamp((together - kKept) / (kReplaced - kKept), 0.0, 1.0);
  return again * part * double(blocks);
}

LaunchCost LaunchCost::get(const ProgramWork &work, const KernelResources &kernel, int64_t blocks,
                           double memoryBytes, const GPUMachine &machine, const LaunchRates &rates,
                           int64_t numSMs) {
  LaunchCost cost;
  cost.isCertain = work.isCertain;
  cost.resident = kernel.countResident(machine);
  cost.busy = getBusyCycles(work, kernel, machine, rates);
  cost.latency = getLatency(work, kernel, rates);
  llvm::SmallVector<double> resources(cost.busy.amounts.begin(), cost.busy.amounts.end());
  resources.push_back(rates.blockCycles);
  double busy = combine(resources, kSharpnessOfResources);
  bool hasRing = work.usesMbarriers && kernel.stages > 1;
  auto getWave = [&](int64_t programs) {
    double warps = double(programs * kernel.warps) / double(GPUMachine::kWarpsOfWarpgroup);
    return programs ? combine({double(programs) * busy, cost.latency},
                              getSharpnessOfWave(warps, hasRing))
                    : 0.0;
  };
  int64_t slots = numSMs * cost.resident, last = llvm::divideCeil(blocks % slots, numSMs);
  cost.waves = double(blocks) / double(slots);
  double cycles = double(blocks / slots) * getWave(cost.resident) + getWave(last);
  double ofSMs = cycles / rates.megahertz;
  double moved = work.use[Resource::Read] + work.use[Resource::Written];
  double ofL2 = moved * double(blocks) / (rates.l2Bandwidth * double(numSMs) * rates.megahertz);
  memoryBytes += getReplacedBytes(work, cost.resident, blocks, machine, numSMs);
  cost.memoryMicroseconds = memoryBytes / (rates.memoryBandwidth * 1e3 * rates.memoryPart);
  cost.microseconds =
      combine({ofSMs, ofL2, cost.memoryMicroseconds}, kSharpnessOfMemory) + rates.microseconds;
  auto busiest = std::max_element(cost.busy.amounts.begin(), cost.busy.amounts.end());
  int64_t together = std::min<int64_t>(cost.resident, llvm::divideCeil(blocks, numSMs));
  if (rates.microseconds > cost.microseconds / 2)
    cost.bound = "launch";
  else if (cost.memoryMicroseconds > std::max(ofSMs, ofL2))
    cost.bound = "memory";
  else if (cost.latency > double(together) * busy)
    cost.bound = "latency";
  else
    cost.bound = stringify(Resource(busiest - cost.busy.amounts.begin())).str();
  return cost;
}
