// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expected time of a launch: what its programs do (ProgramWork), on the machine's tables.
//
// An SM has `resident` programs at a time, as far as registers, threads and shared memory allow.
// For each program, an SM is busy for some cycles of each resource: tensor cores, issue, functions,
// shared memory, ... Resources overlap, but not perfectly. So `busy`, the cycles for all, is a
// little more than the longest:
//
//     busy = (sum of cycles^k)^(1/k)
//
// A program that is alone takes its latency: the longest path through its instructions. With n
// programs side by side an SM needs at least n * busy, and at least the latency:
//
//     wave(n) = ((n * busy)^p + latency^p)^(1/p)
//
// How well work and latency overlap depends on the warps that a scheduler has to choose from. With
// one they nearly add up (p = 1.3), and each more adds 0.3 to p, up to 6. Warps that wait for the
// phases of a ring of copies take the same tiles in turn, so more warps do not hide more (p = 2).
//
// A grid fills all SMs several times, and the last time perhaps not whole:
//
//     cycles = full waves * wave(resident) + wave(programs an SM of the last wave)
//
// Memory and the second-level cache are shared by all SMs. Each array comes from memory once, if so
// much of it is accessed at all. A second loop over the same row reads memory again if the cache
// has replaced the row. It has if the rows of all resident programs are larger than the cache.
//
//     time = (SMs^q + cache^q + memory^q)^(1/q) + the launch itself
//
// Worked example: 512 programs on 132 SMs, 2 resident, each busy 10,000 cycles with a latency of
// 15,000. One full wave (264) and one of 2 programs an SM. With 8 warps in a program a scheduler
// has 4, and p is 2.2. So wave(2) is 24,300 cycles, and both waves take 48,600.
//
// Prefetched copies add no latency to their program, but for the first one. Their bytes in flight
// are limited by the shared memory that receives them. So a program takes at least bytes / shared
// memory times the latency of a copy (Little's law).
//
// The first-level cache looks up a line of an access in a cycle. It asks L2 for a line that it does
// not have in two, however few bytes of it are needed, and writes one in 3.6. Both overlap.
// Example: a warp's load of 16 lines takes 16 cycles if they are there, else 32. With two more
// loads of these lines all three take 48, for the lookups take longer than the requests then.
//
// Limits: the model omits lines that several SMs request at the same time, and atomics that
// collide. It omits clocks that fall under power, and warps that wait for others longer than a
// barrier takes.

#ifndef TESSERA_MACHINE_LAUNCHCOST_H
#define TESSERA_MACHINE_LAUNCHCOST_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/KernelSkeleton.h"
#include "tessera/Machine/LaunchRates.h"

namespace tessera {

/// The resources of an SM that a block occupies.
struct KernelResources {
  int64_t warps = 1;     ///< of a block
  int64_t registers = 0; ///< of a thread
  int64_t sharedBytes = 0;
  int64_t spillBytes = 0; ///< of a thread
  int64_t stages = 0;     ///< tiles in the longest ring of copies; 0 if there is none

  /// Blocks that an SM has room for.
  int64_t countResident(const GPUMachine &machine) const;
};

struct LaunchCost {
  double microseconds = 0;
  std::string bound;  ///< a resource, "latency", "memory" or "launch"
  ResourceUse busy;   ///< cycles of an SM for a program, by resource
  double latency = 0; ///< cycles of a program that is alone
  double memoryMicroseconds = 0;
  int64_t resident = 1;
  double waves = 0;
  bool isCertain = true; ///< no guess about loops and branches

  /// `blocks` are launched. `memoryBytes` come from memory or go there. `rates` and `numSMs` are of
  /// the machine or of a device.
  static LaunchCost get(const ProgramWork &work, const KernelResources &kernel, int64_t blocks,
                        double memoryBytes, const GPUMachine &machine, const LaunchRates &rates,
                        int64_t numSMs);
};

} // namespace tessera

#endif // TESSERA_MACHINE_LAUNCHCOST_H
