// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RandomLayout.h"

#include <algorithm>

using namespace llvm;

namespace tessera {

SmallVector<int64_t> randomShape(std::mt19937 &rng, const RandomShape &options) {
  unsigned bits = std::uniform_int_distribution<unsigned>(options.minBits, options.maxBits)(rng);
  unsigned rank = std::uniform_int_distribution<unsigned>(1, 3)(rng);
  SmallVector<int64_t> shape(rank, 1);
  for (unsigned bit = 0; bit < bits; ++bit)
    shape[rng() % rank] *= 2;
  if (options.hasOddFactors && rng() % 2)
    shape[rng() % rank] *= 3 + 2 * (rng() % 3);
  return shape;
}

LinearLayout getRepeat(const LinearLayout &layout) {
  SmallVector<int64_t> shape;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    shape.push_back(int64_t(1) << layout.dimBits(dim));
  LinearLayout repeat(shape);
  for (HwDim dim : kAllHwDims)
    repeat.columns(dim) = f2::Columns(layout.columns(dim));
  return repeat;
}

LinearLayout randomLayout(std::mt19937 &rng, ArrayRef<int64_t> shape, const RandomShape &options,
                          unsigned warps, unsigned blocks) {
  LinearLayout layout(shape);
  unsigned bits = layout.elementBits();
  unsigned counts[] = {0, options.lanes, warps, blocks};
  unsigned threadBits = options.lanes + warps + blocks;
  // Enough registers for every bit, and now and then one more for a copy.
  unsigned copies = rng() % 3;
  unsigned columns = std::max(bits, threadBits) + copies;
  counts[0] = columns - threadBits;
  SmallVector<uint64_t> pool;
  for (unsigned bit = 0; bit < bits; ++bit)
    pool.push_back(uint64_t(1) << bit);
  pool.resize(columns, 0);
  std::shuffle(pool.begin(), pool.end(), rng);
  unsigned at = 0;
  for (unsigned dim = 0; dim < 4; ++dim)
    for (unsigned i = 0; i < counts[dim]; ++i)
      layout.columns(kAllHwDims[dim]).push_back(pool[at++]);
  return layout.canonical();
}

} // namespace tessera
