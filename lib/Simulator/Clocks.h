// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks: the events that each agent knows.
//
// The agents of a program are its warps and the barriers in shared memory, which stand for the
// copies that report to them. An agent's clock advances where it releases its past accesses to
// others. For each agent of its program, a warp knows the latest time that it has acquired. It
// acquires times of other programs by atomics.

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

/// The time of a copy without a wait: after everything.
constexpr Clock kPending = ~0u;

/// The latest acquired time of every agent.
struct Times {
  std::array<Clock, kAgents> of{};
  /// The part of that which is visible to the asynchronous units, in shared and in global memory.
  std::array<Clock, kAgents> fenced{}, fencedGlobal{};
  OtherPrograms others;
  /// The number of waits at the cluster's barrier. A wait shows that all programs of the cluster
  /// have started, even if it orders no memory.
  unsigned clusterPhases = 0;

  void join(const Times &other);
};

/// The programs that what orders memory orders it for. Without clusters, a cluster is one program.
enum class Reach : uint8_t { Program, Cluster, Device };

/// True if something of that reach orders memory between two programs.
inline bool reaches(Reach reach, uint32_t a, uint32_t b, unsigned clusterSize) {
  return reach == Reach::Device || a == b ||
         (reach == Reach::Cluster && a / clusterSize == b / clusterSize);
}

/// The knowledge of an agent when it released it at an address.
struct Release {
  uint32_t program = 0;
  unsigned agent = 0;
  Clock clock = 0;
  Reach reach = Reach::Device;
  bool isMixed = false; ///< with what others have released there before
  Times times;
};

/// `times`, of an agent in `program`, acquires `release`, if that is for others.
void acquire(Times &times, uint32_t program, const Release &release, unsigned clusterSize);
/// `times`, of an agent in `program`, acquires all of `other`, of `otherProgram`.
void acquire(Times &times, uint32_t program, const Times &other, uint32_t otherProgram);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_CLOCKS_H
