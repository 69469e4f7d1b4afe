// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An agent's knowledge of the agents of other programs, each of which has a clock (Clocks.h).
//
// Thousands of programs may acquire from each other one after the other. Then each of them knows
// nearly the same as the one before. So this is a persistent tree, copied only along changes and
// shared elsewhere. Two that share most of their nodes are joined in a few steps.

#ifndef TESSERA_LIB_SIMULATOR_OTHERPROGRAMS_H
#define TESSERA_LIB_SIMULATOR_OTHERPROGRAMS_H

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::simulator {

using Clock = uint32_t;

/// The knowledge of an agent of another program.
struct Acquired {
  Clock clock = 0;
  /// The part of that which the asynchronous units see, in global and in shared memory.
  Clock fenced = 0, fencedShared = 0;
  /// Up to when what it has read is known to have been read, where that is later.
  Clock reads = 0;

  void join(const Acquired &other) {
    clock = std::max(clock, other.clock);
    fenced = std::max(fenced, other.fenced);
    fencedShared = std::max(fencedShared, other.fencedShared);
    reads = std::max(reads, other.reads);
  }
  bool operator==(const Acquired &other) const {
    return clock == other.clock && fenced == other.fenced && fencedShared == other.fencedShared &&
           reads == other.reads;
  }
};

/// An agent of some program, and what is known of it.
struct AcquiredAgent {
  unsigned agent;
  Acquired acquired;

  bool operator==(const AcquiredAgent &other) const {
    return agent == other.agent && acquired == other.acquired;
  }
};

class OtherPrograms {
public:
  /// Nothing is known.
  OtherPrograms() = default;

  /// The later of what is known here and there.
  void join(const OtherPrograms &other);
  /// The later of what is known and of this, in the order of the agents.
  void join(uint32_t program, llvm::ArrayRef<AcquiredAgent> agents);
  /// Forgets a program.
  void erase(uint32_t program);
  /// Has the asynchronous units see all that is known, in shared memory, in global, or both.
  void fence(bool inShared, bool inGlobal);
  /// For all known agents: reads until that time are complete.
  OtherPrograms asReads() const;

  Acquired lookup(uint32_t program, unsigned agent) const;
  /// The knowledge of the agents of a program, in their order.
  llvm::ArrayRef<AcquiredAgent> lookup(uint32_t program) const;

private:
  struct Node;
  using NodePtr = std::shared_ptr<const Node>;
  /// A leaf is a program; every other node has kFanOut children.
  struct Node {
    std::vector<NodePtr> children;
    std::vector<AcquiredAgent> agents;
  };

  static NodePtr join(const NodePtr &a, const NodePtr &b, unsigned height);
  static NodePtr joinLeaves(const NodePtr &a, const NodePtr &b);
  static NodePtr erase(const NodePtr &node, uint32_t program, unsigned height);
  /// A tree in which `change` has changed what is known of each agent.
  template <typename F> static NodePtr map(const NodePtr &node, F change);
  void grow(unsigned newHeight);

  NodePtr root; ///< null if nothing is known
  unsigned height = 0;
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_OTHERPROGRAMS_H
