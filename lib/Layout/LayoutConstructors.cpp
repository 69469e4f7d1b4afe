// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LayoutConstructors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace tessera {
namespace {

/// Collects the atoms of a tile, then stretches it to the tensor.
class TileBuilder {
public:
  explicit TileBuilder(ArrayRef<int64_t> shape) : layout(shape), used(shape.size(), 0) {}

  TileBuilder &atom(HwDim hw, std::optional<unsigned> dim, uint64_t size) {
    layout.addAtom(hw, dim, size, used);
    return *this;
  }

  /// Repetitions go to registers, the last dimension first.
  LinearLayout fit() {
    for (unsigned dim = layout.rank(); dim-- > 0;)
      if (used[dim] < layout.dimBits(dim))
        layout.addAtom(HwDim::Reg, dim, uint64_t(1) << (layout.dimBits(dim) - used[dim]), used);
    return layout.canonical();
  }

private:
  LinearLayout layout;
  SmallVector<unsigned> used;
};

/// Elements of k in a register of 32 bits.
unsigned elementsPerWord(unsigned bits) { return bits < 32 ? 32 / bits : 1; }

} // namespace

LinearLayout blocked(ArrayRef<int64_t> shape, ArrayRef<unsigned> registersPerThread,
                     ArrayRef<unsigned> threadsPerWarp, ArrayRef<unsigned> warps,
                     ArrayRef<unsigned> order) {
  TileBuilder tile(shape);
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

LinearLayout mmaAccumulator(ArrayRef<int64_t> shape, unsigned warpsM, unsigned warpsN) {
  constexpr unsigned m = 0, n = 1;
  return TileBuilder(shape)
      .atom(HwDim::Reg, n, 2)
      .atom(HwDim::Lane, n, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Warp, n, warpsN)
      .atom(HwDim::Warp, m, warpsM)
      .fit();
}

LinearLayout mmaOperandA(ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN) {
  constexpr unsigned m = 0, k = 1;
  return TileBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, k, kRegisters)
      .atom(HwDim::Warp, std::nullopt, warpsN)
      .atom(HwDim::Warp, m, warpsM)
      .fit();
}

LinearLayout mmaOperandB(ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN) {
  constexpr unsigned k = 0, n = 1;
  return TileBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, n, 8)
      .atom(HwDim::Reg, k, kRegisters)
      .atom(HwDim::Warp, n, warpsN)
      .atom(HwDim::Warp, std::nullopt, warpsM)
      .fit();
}

LinearLayout wgmmaAccumulator(ArrayRef<int64_t> shape, unsigned groupsM, unsigned groupsN) {
  constexpr unsigned m = 0, n = 1;
  TileBuilder tile(shape);
  unsigned nBits = LinearLayout(shape).dimBits(n);
  // The instruction is as wide as the tile that one warpgroup has.
  uint64_t width = std::max<uint64_t>((uint64_t(1) << nBits) / groupsN, 8);
  return tile.atom(HwDim::Reg, n, 2)
      .atom(HwDim::Lane, n, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, n, width / 8)
      .atom(HwDim::Warp, m, 4)
      .atom(HwDim::Warp, m, groupsM)
      .atom(HwDim::Warp, n, groupsN)
      .fit();
}

LinearLayout wgmmaOperandA(ArrayRef<int64_t> shape, unsigned bits, unsigned groupsM,
                           unsigned groupsN) {
  constexpr unsigned m = 0, k = 1;
  return TileBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, k, 2)
      .atom(HwDim::Warp, m, 4)
      .atom(HwDim::Warp, m, groupsM)
      .atom(HwDim::Warp, std::nullopt, groupsN)
      .fit();
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
    unsigned maxPhase = widthBytes / 16, perPhase = 128 / widthBytes;
    inner = swizzledMemory(panel, std::max(1u, 128 / bits), perPhase, maxPhase);
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
