// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a launch divides a sum of dots among the blocks of a cluster (tilegpu-split-k). A kernel
// says what its loop takes; with how many programs it is launched, and so how many SMs would have
// nothing to do, is known at the launch. Worked example, 132 SMs, 64 programs, 32 iterations of
// 512 cycles, 1,500 cycles to bring together what blocks have:
//
//     1 block    64 SMs     32 * 512                     16,384
//     2 blocks   128 SMs    16 * 512 + 1,500              9,692: it is divided
//     4 blocks   256, which are more than there are
//
// Blocks of a cluster run at the same time in one group of SMs, of which each leaves some over, and
// GPUs of one model differ in how many SMs their groups have: there are H100s whose 132 SMs run
// fewer than 32 clusters of 4 blocks at once. A cluster more than fit begins when another one has
// ended, and the launch takes up to twice as long. So the driver is asked.
//
// What a launch takes is decided by memory, too, of which nothing is known here: a sum is divided
// only if a good deal of time is gained.

#ifndef TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
#define TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H

#include <array>
#include <cstdint>
#include <string>

namespace tessera::cuda {

/// What a GPU has for clusters.
struct ClusterRoom {
  /// Blocks of the clusters that a sum may be divided among.
  static constexpr std::array<int, 3> kSizes = {2, 4, 8};

  int64_t multiprocessors = 0;
  /// How many clusters of each size run at once.
  std::array<int64_t, kSizes.size()> clusters = {};

  /// Where the driver does not say: larger clusters leave some SMs of each group over.
  static ClusterRoom guess(int64_t multiprocessors);
};

struct DivisibleSum {
  /// The bounds of the loop: the upper one as a program bound, the same in all programs.
  std::string upper;
  int64_t lower = 0, step = 1;
  /// Cycles that an SM takes for an iteration; that blocks take to meet; and to load what one of
  /// them has of the result.
  int64_t iterationCycles = 0, meetCycles = 0, exchangeCycles = 0;

  /// Blocks for each of so many programs, where the loop ends at `end`: 1, or a power of two.
  int chooseBlocks(int64_t end, int64_t programs, const ClusterRoom &room) const;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
