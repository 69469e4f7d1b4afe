// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LayoutConversion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

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
  // One more row for each bit that must stay: it is set in that bit's source column and
  // asked for in that bit's destination column.
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

//===----------------------------------------------------------------------===//
// Swizzles
//===----------------------------------------------------------------------===//

LinearLayout SwizzlePlan::layout(const LinearLayout &like) const {
  LinearLayout result(like.shape());
  for (const f2::Columns *part : {&vector, &bank, &segment})
    llvm::append_range(result.columns(HwDim::Offset), *part);
  return result;
}

static f2::Columns nonZero(ArrayRef<uint64_t> columns) {
  f2::Columns result;
  for (uint64_t column : columns)
    if (column)
      result.push_back(column);
  return result;
}

SwizzlePlan planSwizzle(const LinearLayout &source, const LinearLayout &destination,
                        unsigned bits) {
  unsigned total = source.elementBits();
  f2::Columns units = f2::unitVectors(total);
  f2::Columns sourceRegs = nonZero(source.columns(HwDim::Reg));
  f2::Columns destinationRegs = nonZero(destination.columns(HwDim::Reg));
  ArrayRef<uint64_t> sourceWarps = source.columns(HwDim::Warp);
  ArrayRef<uint64_t> destinationWarps = destination.columns(HwDim::Warp);

  SwizzlePlan plan;
  // Elements that both sides hold in neighbouring registers, up to 128 bits.
  unsigned limit = bits >= 128 ? 0 : Log2_32(128 / bits);
  f2::Columns sorted = sourceRegs;
  llvm::sort(sorted);
  for (uint64_t column : sorted)
    if (plan.vector.size() < limit && llvm::is_contained(destinationRegs, column))
      plan.vector.push_back(column);
  // Below a bank's 32 bits, anything kept together is better than lanes in one word.
  auto fill = [&](ArrayRef<uint64_t> candidates, auto allowed) {
    for (uint64_t column : candidates)
      if ((bits << plan.vector.size()) < 32 && column && allowed(column) &&
          !llvm::is_contained(plan.vector, column))
        plan.vector.push_back(column);
  };
  auto always = [](uint64_t) { return true; };
  fill(sourceRegs, [&](uint64_t c) { return llvm::is_contained(destinationWarps, c); });
  fill(destinationRegs, [&](uint64_t c) { return llvm::is_contained(sourceWarps, c); });
  fill(sourceWarps, [&](uint64_t c) { return llvm::is_contained(destinationWarps, c); });
  fill(sourceWarps, always);
  fill(destinationWarps, always);
  fill(units, always);

  // An access of 8 (16) bytes a lane is served in two (four) phases of 16 (8) lanes.
  unsigned bytes = std::max(1u, (bits << plan.vector.size()) / 32);
  unsigned phaseBits = std::min(2u, Log2_32(bytes));
  auto lanesOfAPhase = [&](const LinearLayout &layout) {
    ArrayRef<uint64_t> lanes = layout.columns(HwDim::Lane);
    return f2::extend(plan.vector, nonZero(lanes.take_front(
                                       lanes.size() > phaseBits ? lanes.size() - phaseBits : 0)));
  };
  f2::Columns stores = lanesOfAPhase(source), loads = lanesOfAPhase(destination);
  unsigned vectorBits = plan.vector.size();
  unsigned lineBits = Log2_32(1024 / bits); // elements of the 128 bytes of one line of banks
  unsigned bankBits =
      std::min(lineBits > vectorBits ? lineBits - vectorBits : 0, total - vectorBits);
  unsigned segmentBits = total - vectorBits - bankBits;

  f2::Columns onlyStores, onlyLoads;
  for (uint64_t column : stores)
    if (!llvm::is_contained(loads, column))
      onlyStores.push_back(column);
  for (uint64_t column : loads)
    if (!llvm::is_contained(stores, column))
      onlyLoads.push_back(column);
  f2::Columns lanes = plan.vector;
  llvm::append_range(lanes, stores);
  llvm::append_range(lanes, loads);
  f2::Columns outside = f2::extend(lanes, units);
  // What is in registers on both sides can be a round of its own: highest address bits.
  f2::Columns rounds;
  llvm::erase_if(outside, [&](uint64_t column) {
    bool isRound =
        llvm::is_contained(sourceRegs, column) && llvm::is_contained(destinationRegs, column);
    if (isRound)
      rounds.push_back(column);
    return isRound;
  });
  llvm::append_range(outside, rounds);
  f2::Columns mixed;
  for (auto [e, f] : llvm::zip(onlyStores, onlyLoads))
    mixed.push_back(e ^ f);

  if (outside.size() >= segmentBits) {
    // Unit vectors make the cheapest addresses; mixed ones only as far as needed.
    plan.segment.append(outside.end() - segmentBits, outside.end());
  } else {
    unsigned missing = segmentBits - outside.size();
    plan.segment.append(mixed.begin(), mixed.begin() + std::min<size_t>(missing, mixed.size()));
    llvm::append_range(plan.segment, outside);
    if (plan.segment.size() < segmentBits) {
      // One side has fewer lanes than the other: the rest conflicts on neither.
      f2::Columns taken = plan.vector;
      llvm::append_range(taken, plan.segment);
      f2::Columns candidates = onlyStores;
      llvm::append_range(candidates, onlyLoads);
      llvm::append_range(candidates, units);
      f2::Columns more = f2::extend(taken, candidates);
      more.truncate(std::min<size_t>(more.size(), segmentBits - plan.segment.size()));
      plan.segment.insert(plan.segment.begin(), more.begin(), more.end());
    }
  }
  f2::Columns taken = plan.vector;
  llvm::append_range(taken, plan.segment);
  plan.bank = f2::extend(taken, units);
  return plan;
}

unsigned wavefronts(ArrayRef<uint64_t> lanes, unsigned vectorBits, unsigned bits) {
  unsigned words = std::max(1u, (bits << vectorBits) / 32);
  unsigned phaseBits = std::min(2u, Log2_32(words));
  f2::Columns elements(lanes.take_front(lanes.size() > phaseBits ? lanes.size() - phaseBits : 0));
  for (unsigned bit = 0; bit < vectorBits; ++bit)
    elements.push_back(uint64_t(1) << bit);
  f2::Columns addresses;
  for (uint64_t element : elements)
    addresses.push_back(bits >= 32 ? element * (bits / 32) : element >> Log2_32(32 / bits));
  for (unsigned word = 1; word < bits / 32; word *= 2)
    addresses.push_back(word);
  f2::Columns banks;
  for (uint64_t address : addresses)
    banks.push_back(address & 31);
  return 1u << phaseBits << (f2::rank(addresses) - f2::rank(banks));
}

unsigned vectorizableBits(ArrayRef<uint64_t> registerOffsets, ArrayRef<uint64_t> otherOffsets,
                          unsigned limit) {
  unsigned usable = 0;
  while (usable < limit) {
    uint64_t low = maskTrailingOnes<uint64_t>(usable + 1);
    if (llvm::any_of(otherOffsets, [&](uint64_t offset) { return (offset & low) != 0; }))
      break;
    f2::Columns rows;
    for (uint64_t offset : registerOffsets)
      rows.push_back(offset & low);
    if (f2::rank(rows) != usable + 1)
      break;
    ++usable;
  }
  return usable;
}

} // namespace tessera
