// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides if a launch splits a sum of dots among the blocks of a cluster (tilegpu-split-k), or
// partitions the program's tiles among two (tilegpu-divide-programs). The kernel has the cost of
// its loop. The number of programs, and so the number of idle SMs, is known at the launch.
//
// Worked example: 132 SMs and 64 programs. An iteration takes 512 cycles, or 600 if all SMs load,
// and there are 64. Combining the sums of two blocks takes 4,000 cycles. If two blocks divide the
// tiles instead, an iteration takes 400 cycles in one kernel, or 300 in another:
//
//     1 block    64 SMs, the sum        64 * 512            32,768 cycles
//     2 blocks   128 SMs, the sum       32 * 600 + 4,000    23,200
//                128 SMs, the tiles     64 * 400            25,600: divide the sum
//                                       64 * 300            19,200: divide the tiles
//     4 blocks   need 256 SMs
//
// All blocks of a cluster run at the same time, in one group of SMs. Clusters leave some SMs of
// each group idle, and GPUs of one model differ in the sizes of their groups. For example, there
// are H100s whose 132 SMs run fewer than 32 clusters of 4 blocks at once. If one cluster too many
// is launched, it starts only when another one ends, and the launch takes up to twice as long. So
// the driver is queried.
//
// The model ignores memory, which also limits a launch. So a launch is divided only if the
// predicted gain is large.

#ifndef TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
#define TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::cuda {

/// The room that a GPU has for clusters.
struct ClusterRoom {
  /// Blocks of the clusters that a sum may be divided among.
  static constexpr std::array<int, 3> kSizes = {2, 4, 8};

  int64_t multiprocessors = 0;
  /// The clusters of each size that run at once.
  std::array<int64_t, kSizes.size()> clusters = {};

  /// An estimate if the driver does not report it: larger clusters leave more SMs of each group
  /// idle.
  static ClusterRoom guess(int64_t multiprocessors);
};

/// The division of a launch: so many blocks a program, each of which has a part of its tiles, or of
/// its sum.
struct Division {
  int blocks = 1;
  bool ofTiles = false;
  /// True if the loops of a launch are short (TileGPU/IR/ShortLoops.h), which is not divided then.
  bool hasShortLoops = false;
};

struct DivisibleSum {
  /// The bounds of the loop: the upper one as a program bound, the same in all programs.
  std::string upper;
  int64_t lower = 0, step = 1;
  /// Cycles of an iteration on an SM, and the same if all SMs load.
  int64_t iterationCycles = 0, busyCycles = 0;
  /// Cycles of a synchronisation of blocks; of waiting for each other block, whose last tiles
  /// arrive later; and of loading that block's part of the result.
  int64_t meetCycles = 0, waitCycles = 0, exchangeCycles = 0;
  /// Cycles of an iteration if two blocks divide the program's tiles; 0: they cannot.
  int64_t pairCycles = 0;

  /// The fastest division for so many programs if the loop ends at `end`.
  Division choose(int64_t end, int64_t programs, const ClusterRoom &room) const;
};

/// The number of programs of a grid, if there is at least one, and at most one for each SM. Only
/// such launches are divided.
std::optional<int64_t> countFewPrograms(const int32_t grid[3], int64_t multiprocessors);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_DIVISIBLESUM_H
