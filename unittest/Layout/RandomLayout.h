// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random distributed layouts for property tests. Each test has a fixed seed, so that a
// failure repeats; the case number is in the failure's trace.

#ifndef TESSERA_UNITTEST_LAYOUT_RANDOMLAYOUT_H
#define TESSERA_UNITTEST_LAYOUT_RANDOMLAYOUT_H

#include "tessera/Layout/LinearLayout.h"

#include <random>

namespace tessera {

struct RandomShape {
  unsigned minBits = 0, maxBits = 10;
  unsigned lanes = 5, maxWarps = 3, maxBlocks = 0;
  bool hasOddFactors = false;
};

/// A random shape of at most three dimensions, every other one with an odd factor if asked for.
llvm::SmallVector<int64_t> randomShape(std::mt19937 &rng, const RandomShape &options);

/// A distributed layout of `shape`: every element somewhere, some in copies.
LinearLayout randomLayout(std::mt19937 &rng, llvm::ArrayRef<int64_t> shape,
                          const RandomShape &options, unsigned warps, unsigned blocks);

/// One of the repeats that an odd factor makes: the same columns.
LinearLayout getRepeat(const LinearLayout &layout);

/// Calls `visit` for every place of a layout.
template <typename Visit> void forEachPlace(const LinearLayout &layout, Visit visit) {
  Place place{};
  uint64_t counts[kNumHwDims], total = 1;
  for (unsigned dim = 0; dim < kNumHwDims; ++dim) {
    counts[dim] = uint64_t(1) << layout.columns(kAllHwDims[dim]).size();
    total *= counts[dim];
  }
  for (uint64_t index = 0; index < total; ++index) {
    uint64_t rest = index;
    for (unsigned dim = 0; dim < kNumHwDims; ++dim) {
      place[dim] = rest % counts[dim];
      rest /= counts[dim];
    }
    visit(place);
  }
}

} // namespace tessera

#endif // TESSERA_UNITTEST_LAYOUT_RANDOMLAYOUT_H
