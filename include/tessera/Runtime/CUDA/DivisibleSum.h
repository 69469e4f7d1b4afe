// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides whether a launch splits a sum of dots among the blocks of a cluster (tilegpu-split-k), or
// partitions the program's tiles among two (tilegpu-divide-programs). The kernel has the cost of
// its loop. The number of programs, and so the number of idle SMs, is known at the launch. Worked
// example, 132 SMs, 64 programs, 64 iterations of 512 cycles, or 600 where all SMs load, and 4,000
// cycles to bring together what two blocks have. If two blocks divide the tiles, an iteration takes
// 300, or 400, where multicast is what takes longest:
//
//     1 block    64 SMs     64 * 512            32,768
//     2 blocks   128 SMs    32 * 600 + 4,000    23,200: the sum is divided, rather than tiles
//                           64 * 400            25,600: of this kernel; but of this one tiles are
//                           64 * 300            19,200
//     4 blocks   256, which are more than there are
//
// Blocks of a cluster run at the same time in one group of SMs, of which each leaves some over, and
// GPUs of one model differ in how many SMs their groups have: there are H100s whose 132 SMs run
// fewer than 32 clusters of 4 blocks at once. A cluster more than fit begins when another one has
// ended, and the launch takes up to twice as long. So the driver is asked.
//
// What a launch takes is decided by memory, too, of which nothing is known here: nothing is divided
// unless a good deal of time is gained.

#ifndef TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
#define TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H

#include <array>
#include <cstdint>
#include <optional>
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

/// How a launch is done: by so many blocks a program, which have a part each of its tiles, or of
/// its sum.
struct Division {
  int blocks = 1;
  bool ofTiles = false;
};

struct DivisibleSum {
  /// The bounds of the loop: the upper one as a program bound, the same in all programs.
  std::string upper;
  int64_t lower = 0, step = 1;
  /// Cycles that an SM takes for an iteration, and where all SMs load.
  int64_t iterationCycles = 0, busyCycles = 0;
  /// Cycles that blocks take to meet; that one waits for each other one, whose last tiles come
  /// later; and takes to load what that one has of the result.
  int64_t meetCycles = 0, waitCycles = 0, exchangeCycles = 0;
  /// Cycles for an iteration where two blocks divide the program's tiles; 0: they cannot.
  int64_t pairCycles = 0;

  /// How so many programs are done best, where the loop ends at `end`.
  Division choose(int64_t end, int64_t programs, const ClusterRoom &room) const;
};

/// The number of programs of a grid, if there is at least one, and at most one for each SM. Only
/// such launches are divided.
std::optional<int64_t> countFewPrograms(const int32_t grid[3], int64_t multiprocessors);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
