// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cluster: blocks that run at the same time, reach each other's shared memory and meet at a
// barrier of their own. Without clusters, each block is one.
//
// A block may access another block's shared memory only while that block runs. The access must
// follow an event that shows that the other block has started, such as the cluster's barrier in any
// order. It must precede an event that the other block waits for before it ends. The clocks
// (Clocks.h) record both, so a missing barrier is found in any order of the blocks.

#ifndef TESSERA_LIB_SIMULATOR_CLUSTER_H
#define TESSERA_LIB_SIMULATOR_CLUSTER_H

#include "Copies.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera::simulator {

class Machine;

/// The addresses of releases.
using Releases = llvm::DenseMap<uint64_t, std::shared_ptr<const Release>>;

/// The latest access of an instruction and an agent to the shared memory of a block, by another
/// block or by a copy. It must be complete when the block ends.
struct Visit {
  const Instr *instr = nullptr;
  Warp *warp = nullptr;
  unsigned lane = 0;
  unsigned rank = 0, agent = 0;
  Clock clock = 0;
  uint64_t address = 0;
  bool isRead = false; ///< for which it is enough to know that it is complete
  std::string what;    ///< "reads 4 bytes"
};

class Cluster {
public:
  Cluster(Machine &machine, uint32_t number);
  ~Cluster();

  bool isDone() const;
  /// Lanes of a warp come to the barrier. Only what the warp has fenced is released if it is
  /// relaxed.
  void arrive(Warp &warp, const Instr &instr, Lanes lanes, bool isRelaxed);
  /// The warp goes on when all have come.
  void wait(Warp &warp, const Instr &instr, Lanes lanes);
  /// A warp has ended; no warp waits for it.
  void leave(Warp &warp);
  /// Threads that have come to the barrier, and how many have to.
  std::pair<unsigned, unsigned> countArrived() const;

  /// Begins a copy: it may read and arrive at once.
  void begin(BulkCopy copy);
  void begin(std::shared_ptr<BulkStore> store);
  /// Ends a copy to shared memory.
  void arriveCopy(size_t number);
  /// The asynchronous units go on, or do not.
  void stepEngines(bool isStuck);

  Machine &machine;
  const uint32_t firstProgram;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<BulkCopy> copies;
  std::vector<std::shared_ptr<BulkStore>> stores;
  unsigned idleRuns = 0; ///< of warps, one after another, that only waited
  unsigned phase = 0;    ///< of the barrier: how often all have come
  Releases releases;     ///< in the shared memory of its blocks

private:
  void completePhase();

  /// For each block: the releases of warps that have arrived at the barrier, and those of its last
  /// phase.
  std::vector<Times> arriving, released;
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_CLUSTER_H
