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
}

void simulator::acquire(Times &times, uint32_t program, const Release &release) {
  if (release.program == program) {
    // What it knows of the agent up to that time is all that was known then.
    if (release.isMixed || times.of[release.agent] < release.clock)
      times.join(release.times);
    return;
  }
  if (release.isNarrow ||
      (!release.isMixed &&
       times.others.lookup(release.program, release.agent).clock >= release.clock))
    return;
  // What has come back of its own program is known as such.
  for (const HeardAgent &own : release.times.others.lookup(program)) {
    times.of[own.agent] = std::max(times.of[own.agent], own.heard.clock);
    times.fencedGlobal[own.agent] = std::max(times.fencedGlobal[own.agent], own.heard.fenced);
  }
  times.others.join(release.times.others);
  times.others.erase(program);
  llvm::SmallVector<HeardAgent, kAgents> agents;
  for (unsigned agent = 0; agent < kAgents; ++agent)
    if (Clock clock = release.times.of[agent])
      agents.push_back({agent, {clock, release.times.fencedGlobal[agent]}});
  times.others.join(release.program, agents);
}
