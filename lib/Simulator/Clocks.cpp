// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Clocks.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::simulator;

void Times::join(const Times &other) {
  for (unsigned i = 0; i < kAgents; ++i) {
    of[i] = std::max(of[i], other.of[i]);
    fenced[i] = std::max(fenced[i], other.fenced[i]);
    fencedGlobal[i] = std::max(fencedGlobal[i], other.fencedGlobal[i]);
  }
  others.join(other.others);
  clusterPhases = std::max(clusterPhases, other.clusterPhases);
}

void simulator::acquire(Times &times, uint32_t program, const Release &release,
                        unsigned clusterSize) {
  if (release.program == program) {
    // Its knowledge of the agent up to that time is all that was known then.
    if (release.isMixed || times.of[release.agent] < release.clock)
      times.join(release.times);
    return;
  }
  if (!reaches(release.reach, program, release.program, clusterSize) ||
      (!release.isMixed &&
       times.others.lookup(release.program, release.agent).clock >= release.clock))
    return;
  acquire(times, program, release.times, release.program);
}

void simulator::acquire(Times &times, uint32_t program, const Times &other, uint32_t otherProgram) {
  if (otherProgram == program)
    return times.join(other);
  // Knowledge that returns to its own program is recognised.
  for (const AcquiredAgent &own : other.others.lookup(program)) {
    times.of[own.agent] = std::max(times.of[own.agent], own.acquired.clock);
    times.fenced[own.agent] = std::max(times.fenced[own.agent], own.acquired.fencedShared);
    times.fencedGlobal[own.agent] = std::max(times.fencedGlobal[own.agent], own.acquired.fenced);
  }
  times.others.join(other.others);
  times.others.erase(program);
  llvm::SmallVector<AcquiredAgent, kAgents> agents;
  for (unsigned agent = 0; agent < kAgents; ++agent)
    if (Clock clock = other.of[agent])
      agents.push_back(
          {agent, {clock, other.fencedGlobal[agent], other.fenced[agent], /*reads=*/0}});
  times.others.join(otherProgram, agents);
}
