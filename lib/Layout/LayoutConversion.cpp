// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LayoutConversion.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tessera {

//===----------------------------------------------------------------------===//
// Pull maps
//===----------------------------------------------------------------------===//

Place PullMap::apply(const Place &place) const {
  Place result{};
  for (unsigned dim = 0; dim < kNumHwDims; ++dim)
    for (auto [index, column] : llvm::enumerate(columns[dim]))
      if (place[dim] >> index & 1)
        for (unsigned part = 0; part < kNumHwDims; ++part)
          result[part] ^= column[part];
  return result;
}

std::optional<PullMap> pull(const LinearLayout &source, const LinearLayout &destination,
                            HwDimSet keep) {
  // One more row for each bit that must stay: it is set in that bit's source column and in its
  // destination column.
  unsigned row = std::max(source.elementBits(), destination.elementBits());
  std::array<unsigned, kNumHwDims> firstRow{};
  for (HwDim dim : kAllHwDims) {
    unsigned at = static_cast<unsigned>(dim);
    firstRow[at] = row;
    if (keep.contains(dim))
      row += std::max(source.columns(dim).size(), destination.columns(dim).size());
  }
  auto stacked = [&](HwDim dim, unsigned index, uint64_t column) {
    if (keep.contains(dim))
      column |= uint64_t(1) << (firstRow[static_cast<unsigned>(dim)] + index);
    return column;
  };

  f2::Span span;
  SmallVector<std::pair<HwDim, unsigned>> names;
  for (HwDim dim : kAllHwDims)
    for (auto [index, column] : llvm::enumerate(source.columns(dim))) {
      span.add(stacked(dim, index, column), uint64_t(1) << names.size());
      names.push_back({dim, index});
    }

  PullMap map;
  for (HwDim dim : kAllHwDims)
    for (auto [index, column] : llvm::enumerate(destination.columns(dim))) {
      uint64_t combination;
      if (span.reduce(stacked(dim, index, column), &combination))
        return std::nullopt;
      Place place{};
      for (auto [bit, name] : llvm::enumerate(names))
        if (combination >> bit & 1)
          place[static_cast<unsigned>(name.first)] ^= uint64_t(1) << name.second;
      map.columns[static_cast<unsigned>(dim)].push_back(place);
    }
  return map;
}

Conversion classify(const LinearLayout &source, const LinearLayout &destination) {
  constexpr HwDim threads[] = {HwDim::Lane, HwDim::Warp, HwDim::Block};
  if (llvm::all_of(threads,
                   [&](HwDim dim) { return source.columns(dim) == destination.columns(dim); })) {
    f2::Span registers;
    for (uint64_t column : source.columns(HwDim::Reg))
      registers.add(column);
    if (llvm::all_of(destination.columns(HwDim::Reg),
                     [&](uint64_t column) { return registers.contains(column); })) {
      // Every thread finds its elements in its own registers, at the same names.
      auto map = pull(source, destination, {HwDim::Lane, HwDim::Warp, HwDim::Block});
      return {ConversionKind::Rename, std::move(*map)};
    }
  }
  const std::pair<ConversionKind, HwDimSet> kinds[] = {
      {ConversionKind::Select, {HwDim::Lane, HwDim::Warp, HwDim::Block}},
      {ConversionKind::Warp, {HwDim::Warp, HwDim::Block}},
      {ConversionKind::Block, {HwDim::Block}},
  };
  for (const auto &[kind, keep] : kinds)
    if (auto map = pull(source, destination, keep))
      return {kind, std::move(*map)};
  auto map = pull(source, destination, {});
  assert(map && "a distributed layout holds every element");
  return {ConversionKind::Cluster, std::move(*map)};
}

} // namespace tessera
