// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/DivisibleSum.h"

#include <algorithm>

namespace tessera::cuda {

ClusterRoom ClusterRoom::guess(int64_t multiprocessors) {
  constexpr int64_t kGroup = 16;
  ClusterRoom room;
  room.multiprocessors = multiprocessors;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    int64_t usable = kSizes[i] > 2 && multiprocessors > kGroup ? multiprocessors / kGroup * kGroup
                                                               : multiprocessors;
    room.clusters[i] = usable / kSizes[i];
  }
  return room;
}

std::optional<int64_t> countFewPrograms(const int32_t grid[3], int64_t multiprocessors) {
  int64_t programs = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] <= 0 || grid[axis] > multiprocessors)
      return std::nullopt;
    programs *= grid[axis];
    if (programs > multiprocessors)
      return std::nullopt;
  }
  return programs;
}

Division DivisibleSum::choose(int64_t end, int64_t programs, const ClusterRoom &room) const {
  constexpr int64_t kMaxCount = int64_t(1) << 30;
  if (end <= lower || step <= 0 || programs <= 0 || programs > room.multiprocessors ||
      iterationCycles <= 0 || std::max({iterationCycles, busyCycles, pairCycles}) > kMaxCount)
    return {};
  auto iterations =
      static_cast<int64_t>((uint64_t(end) - uint64_t(lower) - 1) / uint64_t(step) + 1);
  if (iterations <= 0 || iterations > kMaxCount)
    return {};
  // The gain must exceed the model's error: a sixth of the time, and the time to synchronise
  // blocks.
  constexpr int64_t kGain = 6;
  int64_t whole = iterations * iterationCycles;
  int64_t least = whole - std::max(whole / kGain, meetCycles);
  Division best;
  auto consider = [&](Division division, int64_t cycles) {
    if (cycles >= least)
      return;
    least = cycles;
    best = division;
  };
  for (size_t i = 0; i < ClusterRoom::kSizes.size(); ++i) {
    int64_t blocks = ClusterRoom::kSizes[i];
    // The model assumes one block an SM, though several may fit.
    if (programs > room.clusters[i] || programs * blocks > room.multiprocessors)
      break;
    // Blocks that divide tiles exchange nothing.
    if (blocks == 2 && pairCycles > 0)
      consider({2, /*ofTiles=*/true}, iterations * pairCycles);
    if (blocks > iterations)
      break;
    int64_t ofBlock = (iterations + blocks - 1) / blocks;
    consider({static_cast<int>(blocks), /*ofTiles=*/false},
             ofBlock * busyCycles + meetCycles + waitCycles * (blocks - 1) +
                 exchangeCycles * (blocks - 1) / blocks);
  }
  return best;
}

} // namespace tessera::cuda
