// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/TensorMapBox.h"

#include "tessera/Machine/Swizzle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace tessera {

/// Dimensions from the outermost: those whose neighbours are farther apart in memory first.
static SmallVector<unsigned> getOrder(const LinearLayout &memory, const f2::Columns &offsets) {
  auto distance = [&](unsigned dim) {
    return memory.dimBits(dim) ? bit_floor(offsets[memory.dimShift(dim)]) : UINT64_MAX;
  };
  SmallVector<unsigned> order(memory.rank());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::make_pair(distance(b), a) < std::make_pair(distance(a), b);
  });
  return order;
}

/// The bits of each dimension, in `order`, that are in a box with this swizzle.
static SmallVector<unsigned> getBoxBits(const LinearLayout &memory, const f2::Columns &offsets,
                                        ArrayRef<unsigned> order, unsigned width, unsigned bytes,
                                        int64_t rows) {
  SmallVector<unsigned> taken(order.size(), 0);
  uint64_t next = bytes;
  for (size_t i = order.size(); i-- > 0;) {
    bool isRow = i + 1 == order.size();
    unsigned shift = memory.dimShift(order[i]), most = Log2_64(isRow ? kMaxBoxElements : rows);
    if (width && isRow)
      most = Log2_64(width / bytes);
    while (taken[i] < std::min(memory.dimBits(order[i]), most) &&
           offsets[shift + taken[i]] == Swizzle::move(next, width)) {
      ++taken[i];
      next *= 2;
    }
  }
  return taken;
}

std::optional<TensorMapBox> TensorMapBox::match(const LinearLayout &memory, unsigned bits,
                                                int64_t rows) {
  if (bits < 8 || !memory.whyNotMemory().empty() || !memory.columns(HwDim::Block).empty())
    return std::nullopt;
  unsigned bytes = bits / 8;
  f2::Columns offsets = *memory.memoryOffsets();
  for (uint64_t &offset : offsets)
    offset *= bytes;
  SmallVector<unsigned> order = getOrder(memory, offsets);
  if (order.empty())
    return std::nullopt;
  bool isSwizzled = llvm::any_of(offsets, [](uint64_t offset) { return !has_single_bit(offset); });
  SmallVector<unsigned> widths = {0};
  if (isSwizzled)
    widths.assign(std::begin(Swizzle::kWidths), std::end(Swizzle::kWidths));

  for (unsigned width : widths) {
    SmallVector<unsigned> taken = getBoxBits(memory, offsets, order, width, bytes, rows);
    int64_t rowBytes = int64_t(bytes) << taken.back();
    if (rowBytes % kBoxRowAlignment != 0 || (width && rowBytes != width))
      continue;
    TensorMapBox box;
    box.order = order;
    box.swizzleBytes = width;
    // Bits outside of the box number boxes.
    box.parts.push_back({SmallVector<int64_t>(order.size(), 0), 0});
    bool isAligned = true;
    auto repeatAt = [&](size_t dim, int64_t coordinate, uint64_t offset) {
      isAligned &= offset % Swizzle::getAlignment(width) == 0;
      for (size_t i = 0, size = box.parts.size(); i < size; ++i) {
        Part part = box.parts[i];
        part.coordinates[dim] += coordinate;
        part.offset ^= offset;
        box.parts.push_back(part);
      }
    };
    for (auto [i, dim] : enumerate(order)) {
      box.extents.push_back(int64_t(1) << taken[i]);
      for (unsigned bit = taken[i]; bit < memory.dimBits(dim); ++bit)
        repeatAt(i, int64_t(1) << bit, offsets[memory.dimShift(dim) + bit]);
    }
    box.addRepeats(memory, bytes, rows);
    isAligned &= box.parts.size() == 1 ||
                 (uint64_t(bytes) << memory.elementBits()) % Swizzle::getAlignment(width) == 0;
    if (!isAligned)
      continue;
    llvm::sort(box.parts, [](const Part &a, const Part &b) { return a.offset < b.offset; });
    return box;
  }
  return std::nullopt;
}

void TensorMapBox::addRepeats(const LinearLayout &memory, unsigned bytes, int64_t rows) {
  int64_t repeatBytes = int64_t(bytes) << memory.elementBits(), repeats = 1;
  SmallVector<size_t> odd;
  for (auto [i, dim] : enumerate(order)) {
    repeats *= memory.oddFactor(dim);
    if (memory.oddFactor(dim) != 1)
      odd.push_back(i);
  }
  // Repeats along the outermost dimension go on where the box ends.
  if (odd.size() == 1 && parts.size() == 1 && memory.extent(order[odd[0]]) <= rows &&
      llvm::all_of(ArrayRef(order).take_front(odd[0]),
                   [&](unsigned dim) { return memory.extent(dim) == 1; }) &&
      odd[0] + 1 != order.size()) {
    extents[odd[0]] = memory.extent(order[odd[0]]);
    return;
  }
  SmallVector<Part> first = parts;
  for (int64_t repeat = 1; repeat < repeats; ++repeat)
    for (Part part : first) {
      part.offset += repeat * repeatBytes;
      // Repeats are numbered row by row of the tile.
      int64_t rest = repeat;
      for (unsigned dim = memory.rank(); dim-- > 0;) {
        int64_t index = rest % memory.oddFactor(dim);
        rest /= memory.oddFactor(dim);
        part.coordinates[llvm::find(order, dim) - order.begin()] += index << memory.dimBits(dim);
      }
      parts.push_back(part);
    }
}

} // namespace tessera
