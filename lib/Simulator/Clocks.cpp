// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Clocks.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::simulator;

static void raise(Heard &heard, const Heard &to) {
  heard.clock = std::max(heard.clock, to.clock);
  heard.fenced = std::max(heard.fenced, to.fenced);
}

void Times::join(const Times &other) {
  for (unsigned i = 0; i < kAgents; ++i) {
    of[i] = std::max(of[i], other.of[i]);
    fenced[i] = std::max(fenced[i], other.fenced[i]);
    fencedGlobal[i] = std::max(fencedGlobal[i], other.fencedGlobal[i]);
  }
  if (!other.others || other.others == others)
    return;
  if (!others) {
    others = other.others;
    return;
  }
  auto joined = std::make_shared<OtherPrograms>(*others);
  for (const auto &[key, heard] : *other.others)
    raise((*joined)[key], heard);
  others = std::move(joined);
}

Heard Times::getHeard(uint32_t program, unsigned agent) const {
  return others ? others->lookup(getKey(program, agent)) : Heard();
}

void simulator::acquire(Times &times, uint32_t program, const Release &release) {
  if (release.program == program) {
    // What it knows of the agent up to that time is all that was known then.
    if (release.isMixed || times.of[release.agent] < release.clock)
      times.join(release.times);
    return;
  }
  if (release.isNarrow ||
      (!release.isMixed && times.getHeard(release.program, release.agent).clock >= release.clock))
    return;
  auto joined = times.others ? std::make_shared<OtherPrograms>(*times.others)
                             : std::make_shared<OtherPrograms>();
  for (unsigned agent = 0; agent < kAgents; ++agent)
    if (Clock clock = release.times.of[agent])
      raise((*joined)[getKey(release.program, agent)], {clock, release.times.fencedGlobal[agent]});
  if (release.times.others)
    for (const auto &[key, heard] : *release.times.others) {
      // What has come back of its own program is known as such.
      if (key / kAgents != program) {
        raise((*joined)[key], heard);
        continue;
      }
      unsigned agent = key % kAgents;
      times.of[agent] = std::max(times.of[agent], heard.clock);
      times.fencedGlobal[agent] = std::max(times.fencedGlobal[agent], heard.fenced);
    }
  times.others = std::move(joined);
}
