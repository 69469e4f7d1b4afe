// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the table of GPUs that the time of a launch needs (LaunchCost.h): latencies of
// instructions, clocks, bandwidths, and what launches and blocks take themselves. It is a table of
// its own, because few files read it.
//
// Clocks and bandwidths are the vendor's. The rest was fitted to an H200 (notes/Notebook.md, "What
// a launch is expected to take"), and other rows have it, too.

#ifndef TESSERA_MACHINE_LAUNCHRATES_H
#define TESSERA_MACHINE_LAUNCHRATES_H

#include "tessera/Machine/GPUMachine.h"

namespace tessera {

/// Cycles from the issue of an instruction until one that depends on it can issue.
struct InstructionLatencies {
  double arithmetic = 4.5; ///< of integers and floats
  double conversion = 8;   ///< between types of floats
  double function = 20;    ///< an exponential, a reciprocal, ...
  double shuffle = 24;
  double warpMMA = 33;
  double barrier = 40;  ///< of a block's warps, or a wait for a copy that is there
  double cluster = 500; ///< a barrier of a cluster's blocks
  double memory = 900;  ///< a load that misses the caches while others load, too
};

struct LaunchRates {
  double megahertz;         ///< of SMs at work
  double memoryBandwidth;   ///< bytes in a nanosecond, by the vendor
  double memoryPart = 0.95; ///< of it that a kernel gets
  double l2Bandwidth = 60;  ///< bytes that each SM gets in a cycle if all load
  /// Comparisons, selections, additions and logic of integers in a cycle. Half of those of LLVM IR
  /// become a part of another instruction (LOP3, LEA, IMAD).
  int64_t integerRate = 128;
  double functionCycles = 3.5; ///< of an SM for a warp's exponential
  double lineCycles = 1;       ///< of the first-level cache for a line that an access looks up
  double requestCycles = 2;    ///< until it can ask L2 for the next line
  double storedLine = 1.8;     ///< lines that it asks for in the time of one that is written
  double spillCycles = 12;     ///< for a word that a warp stores and loads again
  double blockCycles = 140;    ///< between the starts of two blocks on an SM
  double copyLatency = 1300;   ///< cycles until a copy to shared memory is there
  double microseconds = 3.6;   ///< from one kernel's end to the end of an empty one
  InstructionLatencies latencies;

  static LaunchRates get(const GPUMachine &machine);
};

} // namespace tessera

#endif // TESSERA_MACHINE_LAUNCHRATES_H
