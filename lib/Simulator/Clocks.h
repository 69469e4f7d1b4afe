// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who is known to have done what: vector clocks.
//
// What acts in a program is an agent: its warps, and the barriers in shared memory, which
// stand for the copies that report to them. An agent's clock advances where others may hear
// of what it has done so far. A warp knows, of each agent of its program, up to what time it
// has heard from it; of other programs it knows by atomics that acquire what others have
// released.

#ifndef TESSERA_LIB_SIMULATOR_CLOCKS_H
#define TESSERA_LIB_SIMULATOR_CLOCKS_H

#include "OtherPrograms.h"

#include <array>
#include <cstdint>

namespace tessera::simulator {

constexpr unsigned kMaxWarps = 32;
/// Barriers beyond as many share a clock: what was waited for at one of those counts for
/// the others.
constexpr unsigned kBarrierAgents = 32;
constexpr unsigned kAgents = kMaxWarps + kBarrierAgents;

/// The time of a copy that nobody has waited for: after everything.
constexpr Clock kPending = ~0u;

/// Up to what time something has heard from everybody.
struct Times {
  std::array<Clock, kAgents> of{};
  /// What of that is also visible to the asynchronous units, in shared memory and in global.
  std::array<Clock, kAgents> fenced{}, fencedGlobal{};
  OtherPrograms others;

  void join(const Times &other);
};

/// What an agent knew when it released it at an address.
struct Release {
  uint32_t program = 0;
  unsigned agent = 0;
  Clock clock = 0;
  bool isNarrow = false; ///< for its own program alone
  bool isMixed = false;  ///< with what others have released there before
  Times times;
};

/// `times`, of something in `program`, has heard what `release` says.
void acquire(Times &times, uint32_t program, const Release &release);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_CLOCKS_H
