// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LinearLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tessera {

StringRef getName(HwDim dim) {
  switch (dim) {
  case HwDim::Reg:
    return "reg";
  case HwDim::Lane:
    return "lane";
  case HwDim::Warp:
    return "warp";
  case HwDim::Block:
    return "block";
  case HwDim::Offset:
    return "offset";
  }
  llvm_unreachable("covered switch");
}

LinearLayout::LinearLayout(ArrayRef<int64_t> shape) {
  for (int64_t extent : shape) {
    unsigned twos = llvm::countr_zero(static_cast<uint64_t>(extent));
    log2.push_back(twos);
    odd.push_back(extent >> twos);
  }
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

f2::Columns LinearLayout::allColumns() const {
  f2::Columns all;
  for (HwDim dim : kAllHwDims)
    llvm::append_range(all, columns(dim));
  return all;
}

SmallVector<int64_t> LinearLayout::shape() const {
  SmallVector<int64_t> result;
  for (unsigned dim = 0; dim < rank(); ++dim)
    result.push_back(extent(dim));
  return result;
}

unsigned LinearLayout::elementBits() const {
  unsigned total = 0;
  for (uint8_t bits : log2)
    total += bits;
  return total;
}

unsigned LinearLayout::dimShift(unsigned dim) const {
  unsigned shift = 0;
  for (unsigned later = dim + 1; later < rank(); ++later)
    shift += log2[later];
  return shift;
}

uint64_t LinearLayout::dimMask(unsigned dim) const {
  return maskTrailingOnes<uint64_t>(log2[dim]) << dimShift(dim);
}

bool LinearLayout::operator==(const LinearLayout &other) const {
  return in == other.in && log2 == other.log2 && odd == other.odd;
}

uint64_t LinearLayout::apply(const Place &place) const {
  uint64_t element = 0;
  for (HwDim dim : kAllHwDims)
    element ^= f2::apply(columns(dim), place[static_cast<unsigned>(dim)]);
  return element;
}

SmallVector<int64_t> LinearLayout::coordinates(uint64_t element) const {
  SmallVector<int64_t> result;
  for (unsigned dim = 0; dim < rank(); ++dim)
    result.push_back((element & dimMask(dim)) >> dimShift(dim));
  return result;
}

uint64_t LinearLayout::element(ArrayRef<int64_t> coordinates) const {
  uint64_t result = 0;
  for (unsigned dim = 0; dim < rank(); ++dim)
    result |= static_cast<uint64_t>(coordinates[dim]) << dimShift(dim);
  return result;
}

bool LinearLayout::isSurjective() const { return f2::rank(allColumns()) == elementBits(); }

bool LinearLayout::isInjective() const {
  f2::Columns all = allColumns();
  return f2::rank(all) == all.size();
}

std::string LinearLayout::whyNotDistributed() const {
  if (!columns(HwDim::Offset).empty())
    return "a distributed layout has no offset columns";
  uint64_t seen = 0;
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : columns(dim)) {
      if (column == 0)
        continue;
      if (!isPowerOf2_64(column))
        return (getName(dim) + " column " + Twine(column) + " is no power of two").str();
      if (seen & column)
        return (getName(dim) + " column " + Twine(column) + " occurs twice").str();
      seen |= column;
    }
  if (seen != maskTrailingOnes<uint64_t>(elementBits()))
    return "not every element is somewhere";
  return {};
}

std::string LinearLayout::whyNotMemory() const {
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp})
    if (!columns(dim).empty())
      return ("a memory layout has no " + getName(dim) + " columns").str();
  if (!isSurjective())
    return "not every element is somewhere";
  if (f2::rank(columns(HwDim::Offset)) != columns(HwDim::Offset).size())
    return "two offsets hold one element";
  if (!memoryOffsets())
    return "two blocks hold some elements, and not others";
  return {};
}

std::optional<f2::Columns> LinearLayout::memoryOffsets() const {
  f2::Columns places(columns(HwDim::Offset));
  uint64_t offsets = maskTrailingOnes<uint64_t>(places.size());
  for (uint64_t column : columns(HwDim::Block))
    if (column != 0) // else all blocks have it
      places.push_back(column);
  std::optional<f2::Columns> result = f2::inverse(places, elementBits());
  if (result)
    for (uint64_t &place : *result)
      place &= offsets;
  return result;
}

LinearLayout LinearLayout::canonical() const {
  LinearLayout result = *this;
  f2::Columns &registers = result.columns(HwDim::Reg);
  llvm::erase(registers, uint64_t(0));
  llvm::sort(registers);
  return result;
}

Place LinearLayout::freeBits() const {
  Place result{};
  f2::Span span;
  for (HwDim dim : kAllHwDims)
    for (auto [index, column] : llvm::enumerate(columns(dim)))
      if (!span.add(column))
        result[static_cast<unsigned>(dim)] |= uint64_t(1) << index;
  return result;
}

//===----------------------------------------------------------------------===//
// Shape operations
//===----------------------------------------------------------------------===//

std::optional<LinearLayout> LinearLayout::reshape(ArrayRef<int64_t> shape) const {
  LinearLayout result(shape);
  if (result.elementBits() != elementBits())
    return std::nullopt;
  // Row-major order visits the odd repeats of a dimension after its 2^k part. So they stay in place
  // only if each keeps its dimension and no dimension is slower.
  SmallVector<uint32_t> odds, newOdds;
  for (uint32_t factor : odd)
    if (factor != 1)
      odds.push_back(factor);
  for (uint32_t factor : result.odd)
    if (factor != 1)
      newOdds.push_back(factor);
  if (odds != newOdds)
    return std::nullopt;
  if (!odds.empty()) {
    auto bitsBelow = [](const LinearLayout &layout) {
      SmallVector<unsigned> bits;
      for (unsigned dim = 0; dim < layout.rank(); ++dim)
        if (layout.odd[dim] != 1)
          bits.push_back(layout.dimShift(dim) + layout.dimBits(dim));
      return bits;
    };
    if (bitsBelow(*this) != bitsBelow(result))
      return std::nullopt;
  }
  result.in = in;
  return result;
}

LinearLayout LinearLayout::transpose(ArrayRef<unsigned> order) const {
  LinearLayout result;
  for (unsigned dim : order) {
    result.log2.push_back(log2[dim]);
    result.odd.push_back(odd[dim]);
  }
  for (HwDim hw : kAllHwDims)
    for (uint64_t column : columns(hw)) {
      uint64_t moved = 0;
      for (auto [to, from] : llvm::enumerate(order))
        moved |= (column & dimMask(from)) >> dimShift(from) << result.dimShift(to);
      result.columns(hw).push_back(moved);
    }
  return result;
}

LinearLayout LinearLayout::expandDims(unsigned axis) const {
  LinearLayout result = *this;
  result.log2.insert(result.log2.begin() + axis, 0);
  result.odd.insert(result.odd.begin() + axis, 1);
  return result;
}

LinearLayout LinearLayout::join() const {
  LinearLayout result = *this;
  result.log2.push_back(1);
  result.odd.push_back(1);
  for (HwDim hw : kAllHwDims)
    for (uint64_t &column : result.columns(hw))
      column <<= 1;
  f2::Columns &registers = result.columns(HwDim::Reg);
  registers.insert(registers.begin(), 1);
  return result;
}

std::optional<LinearLayout> LinearLayout::split() const {
  if (log2.empty() || log2.back() != 1 || odd.back() != 1)
    return std::nullopt;
  LinearLayout result = *this;
  f2::Columns &registers = result.columns(HwDim::Reg);
  auto *at = llvm::find(registers, uint64_t(1));
  if (at == registers.end())
    return std::nullopt;
  registers.erase(at);
  result.log2.pop_back();
  result.odd.pop_back();
  for (HwDim hw : kAllHwDims)
    for (uint64_t &column : result.columns(hw)) {
      if (column & 1)
        return std::nullopt;
      column >>= 1;
    }
  return result;
}

LinearLayout LinearLayout::project(unsigned axis) const {
  LinearLayout result;
  for (unsigned dim = 0; dim < rank(); ++dim)
    if (dim != axis) {
      result.log2.push_back(log2[dim]);
      result.odd.push_back(odd[dim]);
    }
  uint64_t low = maskTrailingOnes<uint64_t>(dimShift(axis));
  for (HwDim hw : kAllHwDims)
    for (uint64_t column : columns(hw))
      result.columns(hw).push_back((column & low) |
                                   (column & ~(low | dimMask(axis))) >> dimBits(axis));
  llvm::erase(result.columns(HwDim::Reg), uint64_t(0));
  return result;
}

LinearLayout LinearLayout::inEachBlock() const {
  LinearLayout result = *this;
  for (uint64_t &column : result.columns(HwDim::Block))
    if (column)
      result.columns(HwDim::Reg).push_back(std::exchange(column, 0));
  return result.canonical();
}

//===----------------------------------------------------------------------===//
// Making layouts
//===----------------------------------------------------------------------===//

LinearLayout LinearLayout::product(const LinearLayout &inner, const LinearLayout &outer) {
  assert(inner.rank() == outer.rank() && "a product is taken dimension by dimension");
  SmallVector<int64_t> shape;
  for (unsigned dim = 0; dim < inner.rank(); ++dim)
    shape.push_back(inner.extent(dim) * outer.extent(dim));
  LinearLayout result(shape);
  auto place = [&](const LinearLayout &from, uint64_t column, bool isOuter) {
    uint64_t moved = 0;
    for (unsigned dim = 0; dim < from.rank(); ++dim) {
      uint64_t bits = (column & from.dimMask(dim)) >> from.dimShift(dim);
      if (isOuter)
        bits <<= inner.dimBits(dim);
      moved |= bits << result.dimShift(dim);
    }
    return moved;
  };
  for (HwDim hw : kAllHwDims) {
    for (uint64_t column : inner.columns(hw))
      result.columns(hw).push_back(place(inner, column, /*isOuter=*/false));
    for (uint64_t column : outer.columns(hw))
      result.columns(hw).push_back(place(outer, column, /*isOuter=*/true));
  }
  return result;
}

void LinearLayout::addAtom(HwDim hw, std::optional<unsigned> dim, uint64_t size,
                           SmallVectorImpl<unsigned> &used) {
  assert(isPowerOf2_64(size) && "an atom has a power of two of places");
  for (uint64_t step = 1; step < size; step *= 2) {
    if (!dim) {
      columns(hw).push_back(0);
      continue;
    }
    unsigned bit = used[*dim]++;
    // Past the extent there is nothing left to count: these places hold copies.
    columns(hw).push_back(bit < dimBits(*dim) ? uint64_t(1) << (dimShift(*dim) + bit) : 0);
  }
}

void LinearLayout::print(raw_ostream &os) const {
  os << "tile ";
  llvm::interleave(shape(), os, "x");
  for (HwDim hw : kAllHwDims) {
    if (columns(hw).empty())
      continue;
    os << ", " << getName(hw) << " [";
    llvm::interleaveComma(columns(hw), os, [&](uint64_t column) {
      os << "(";
      llvm::interleaveComma(coordinates(column), os);
      os << ")";
    });
    os << "]";
  }
}

} // namespace tessera
