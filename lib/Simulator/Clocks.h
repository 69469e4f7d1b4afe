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
/// Programs of a cluster; 8 is what every GPU with clusters has.
constexpr unsigned kMaxClusterSize = 16;
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
  /// How often the barrier of the cluster has been waited for, which says that all of its
  /// programs have begun, though it may order no memory.
  unsigned clusterPhases = 0;

  void join(const Times &other);
};

/// The programs that what orders memory orders it for. Where programs are in no clusters, a
/// cluster is one program.
enum class Reach : uint8_t { Program, Cluster, Device };

/// True if something of that reach orders memory between two programs.
inline bool reaches(Reach reach, uint32_t a, uint32_t b, unsigned clusterSize) {
  return reach == Reach::Device || a == b ||
         (reach == Reach::Cluster && a / clusterSize == b / clusterSize);
}

/// What an agent knew when it released it at an address.
struct Release {
  uint32_t program = 0;
  unsigned agent = 0;
  Clock clock = 0;
  Reach reach = Reach::Device;
  bool isMixed = false; ///< with what others have released there before
  Times times;
};

/// `times`, of something in `program`, has heard what `release` says, if that is for others.
void acquire(Times &times, uint32_t program, const Release &release, unsigned clusterSize);
/// `times`, of something in `program`, has heard all that `other`, of `otherProgram`, has.
void acquire(Times &times, uint32_t program, const Times &other, uint32_t otherProgram);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_CLOCKS_H
