// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LayoutConstructors.h"

#include "LayoutBuilder.h"
#include "tessera/Machine/Swizzle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace tessera {

LinearLayout blocked(ArrayRef<int64_t> shape, ArrayRef<unsigned> registersPerThread,
                     ArrayRef<unsigned> threadsPerWarp, ArrayRef<unsigned> warps,
                     ArrayRef<unsigned> order) {
  LayoutBuilder tile(shape);
  for (unsigned dim : order)
    tile.atom(HwDim::Reg, dim, registersPerThread[dim]);
  for (unsigned dim : order)
    tile.atom(HwDim::Lane, dim, threadsPerWarp[dim]);
  for (unsigned dim : order)
    tile.atom(HwDim::Warp, dim, warps[dim]);
  return tile.fit();
}

LinearLayout overBlocks(const LinearLayout &part, ArrayRef<unsigned> blocks) {
  LinearLayout outer((SmallVector<int64_t>(blocks.begin(), blocks.end())));
  for (unsigned dim = outer.rank(); dim-- > 0;)
    for (unsigned bit = 0; bit < outer.dimBits(dim); ++bit)
      outer.columns(HwDim::Block).push_back(uint64_t(1) << (outer.dimShift(dim) + bit));
  return LinearLayout::product(part, outer).canonical();
}

SmallVector<unsigned> divideOverBlocks(ArrayRef<int64_t> shape, unsigned blockBits) {
  LinearLayout numbers(shape);
  SmallVector<unsigned> blocks;
  for (unsigned dim = 0; dim < numbers.rank(); ++dim) {
    unsigned bits = std::min(blockBits, numbers.dimBits(dim));
    blocks.push_back(1u << bits);
    blockBits -= bits;
  }
  return blocks;
}

LinearLayout swizzledMemory(ArrayRef<int64_t> shape, unsigned vec, unsigned perPhase,
                            unsigned maxPhase) {
  assert(shape.size() == 2 && "a swizzle moves columns by rows");
  LinearLayout layout(shape);
  f2::Columns &offsets = layout.columns(HwDim::Offset);
  unsigned columnBits = layout.dimBits(1);
  for (unsigned bit = 0; bit < columnBits; ++bit)
    offsets.push_back(uint64_t(1) << bit);
  uint64_t columnMask = maskTrailingOnes<uint64_t>(columnBits);
  for (unsigned bit = 0; bit < layout.dimBits(0); ++bit) {
    uint64_t row = uint64_t(1) << bit;
    uint64_t moved = vec * ((row / perPhase) % maxPhase);
    offsets.push_back(row << columnBits | (moved & columnMask));
  }
  return layout;
}

LinearLayout nvidiaSwizzle(ArrayRef<int64_t> shape, unsigned widthBytes, unsigned bits) {
  assert(shape.size() == 2 && "a swizzle moves columns by rows");
  LinearLayout whole(shape);
  // Without a swizzle there are no panels either.
  uint64_t rowElements = uint64_t(1) << whole.dimBits(1);
  uint64_t width =
      widthBytes ? std::min<uint64_t>(widthBytes * 8 / bits, rowElements) : rowElements;
  int64_t panel[2] = {shape[0], static_cast<int64_t>(width)};
  LinearLayout inner(panel);
  if (widthBytes == 0 || width * bits / 8 < widthBytes) {
    inner = swizzledMemory(panel, 1, 1, 1);
  } else {
    unsigned maxPhase = widthBytes / Swizzle::kChunkBytes;
    unsigned perPhase = Swizzle::kLineBytes / widthBytes;
    inner =
        swizzledMemory(panel, std::max(1u, 8 * Swizzle::kChunkBytes / bits), perPhase, maxPhase);
  }
  int64_t panels[2] = {1, static_cast<int64_t>(rowElements / width) * whole.oddFactor(1)};
  LinearLayout outer(panels);
  for (unsigned bit = 0; bit < outer.dimBits(1); ++bit)
    outer.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  return LinearLayout::product(inner, outer);
}

LinearLayout coalesced(ArrayRef<int64_t> shape, ArrayRef<std::optional<int64_t>> strides,
                       unsigned vectorBits, unsigned warpBits) {
  LinearLayout layout(shape);
  assert(strides.size() == layout.elementBits() && "one stride a bit");
  SmallVector<unsigned> order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  // A stride of 0 is a broadcast: copies of one element are best kept apart from what
  // makes a vector. Unknown strides come last.
  auto key = [&](unsigned bit) {
    if (!strides[bit])
      return std::make_pair(2, int64_t(0));
    int64_t stride = std::abs(*strides[bit]);
    return stride == 0 ? std::make_pair(1, int64_t(0)) : std::make_pair(0, stride);
  };
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::make_pair(key(a), a) < std::make_pair(key(b), b);
  });
  for (auto [index, bit] : llvm::enumerate(order)) {
    HwDim hw = index < vectorBits                  ? HwDim::Reg
               : index < vectorBits + 5            ? HwDim::Lane
               : index < vectorBits + 5 + warpBits ? HwDim::Warp
                                                   : HwDim::Reg;
    layout.columns(hw).push_back(uint64_t(1) << bit);
  }
  // A tile too small for all threads is held in copies.
  layout.columns(HwDim::Lane).resize(5, 0);
  layout.columns(HwDim::Warp).resize(warpBits, 0);
  return layout.canonical();
}

} // namespace tessera
