// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AxisFragment.h"

#include "ClusterWaits.h"
#include "TileExchange.h"
#include "tessera/Layout/LayoutConversion.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

std::optional<unsigned> tessera::getAxisBit(const LinearLayout &layout, unsigned axis,
                                            uint64_t column) {
  uint64_t along = (column & layout.dimMask(axis)) >> layout.dimShift(axis);
  if (along == 0)
    return std::nullopt;
  return llvm::countr_zero(along);
}

LinearLayout tessera::compactAxis(const LinearLayout &layout, unsigned axis, uint32_t repeats) {
  uint64_t present = 0;
  for (uint64_t column : layout.allColumns())
    present |= (column & layout.dimMask(axis)) >> layout.dimShift(axis);
  SmallVector<int64_t> shape = layout.shape();
  shape[axis] = int64_t(repeats) << llvm::popcount(present);
  LinearLayout result(shape);
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : layout.columns(dim)) {
      SmallVector<int64_t> coordinates = layout.coordinates(column);
      if (uint64_t along = coordinates[axis])
        coordinates[axis] = int64_t(1) << llvm::popcount(present & (along - 1));
      result.columns(dim).push_back(result.element(coordinates));
    }
  return result;
}

LinearLayout tessera::dropRegisterBits(const LinearLayout &layout, unsigned axis, unsigned limit) {
  LinearLayout result = layout;
  llvm::erase_if(result.columns(HwDim::Reg), [&](uint64_t column) {
    std::optional<unsigned> bit = getAxisBit(layout, axis, column);
    return bit && *bit < limit;
  });
  return result;
}

LinearLayout tessera::dropLaneBits(const LinearLayout &layout, unsigned axis) {
  LinearLayout result = layout;
  for (uint64_t &column : result.columns(HwDim::Lane))
    if (getAxisBit(layout, axis, column))
      column = 0;
  return result;
}

LinearLayout tessera::moveToRegisters(const LinearLayout &layout, unsigned axis, bool lanesToo) {
  LinearLayout result = layout;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block}) {
    if (dim == HwDim::Lane && !lanesToo)
      continue;
    for (uint64_t &column : result.columns(dim))
      if (getAxisBit(layout, axis, column)) {
        result.columns(HwDim::Reg).push_back(column);
        column = 0;
      }
  }
  llvm::sort(result.columns(HwDim::Reg));
  return result;
}

LinearLayout tessera::moveToLanes(const LinearLayout &layout, unsigned axis) {
  LinearLayout result = layout;
  for (HwDim dim : {HwDim::Warp, HwDim::Block})
    for (uint64_t &column : result.columns(dim)) {
      if (!getAxisBit(layout, axis, column))
        continue;
      f2::Columns &lanes = result.columns(HwDim::Lane);
      auto free = llvm::find(lanes, uint64_t(0));
      if (free != lanes.end())
        *free = column;
      else
        result.columns(HwDim::Reg).push_back(column);
      column = 0;
    }
  llvm::sort(result.columns(HwDim::Reg));
  return result;
}

bool tessera::hasAxisBits(const LinearLayout &layout, unsigned axis, HwDim dim) {
  return llvm::any_of(layout.columns(dim), [&](uint64_t column) {
    return getAxisBit(layout, axis, column).has_value();
  });
}

int64_t tessera::getPartBytes(const LinearLayout &layout, Type type, unsigned rounds) {
  int64_t elements = 1;
  for (int64_t extent : layout.shape())
    elements *= extent;
  elements /= rounds * countBlockParts(layout);
  return llvm::alignTo(elements * tilegpu::getElementBytes(getElementTypeOrSelf(type)), 16);
}

int64_t AxisExchange::getBytes(TypeRange types) const {
  int64_t bytes = 0;
  for (Type type : types)
    bytes += getPartBytes(source, type, rounds);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

Group AxisFragment::get(int64_t number) const {
  Group group;
  for (const SmallVector<Value> &registers : operands)
    group.push_back(registers[number]);
  return group;
}

void AxisFragment::exchange(ThreadBuilder &thread, const AxisExchange &way, TypeRange types,
                            Value scratch) {
  // All operands are written before any is read: one barrier. Each part is its own.
  std::vector<TileExchange> parts;
  int64_t offset = 0;
  for (auto [type, registers] : llvm::zip_equal(types, operands)) {
    parts.emplace_back(thread.advance(scratch, static_cast<int32_t>(offset)), way.source,
                       way.destination, registers.front().getType(), MatrixInstructions(),
                       way.rounds);
    offset += getPartBytes(way.source, type, way.rounds);
  }
  size_t repeats = operands.front().size() >> way.source.columns(HwDim::Reg).size();
  SmallVector<SmallVector<Value>> exchanged(
      operands.size(), SmallVector<Value>(repeats << way.destination.columns(HwDim::Reg).size()));
  // The layouts are the same for all operands.
  bool isAcrossBlocks = parts.front().isAcrossBlocks();
  auto meet = [&] { isAcrossBlocks ? emitClusterBarrier(thread) : emitBarrier(thread); };
  for (unsigned round = 0; round < way.rounds; ++round) {
    if (round != 0)
      meet();
    for (auto [part, registers] : llvm::zip_equal(parts, operands))
      part.store(thread, registers, round);
    meet();
    for (auto [part, registers] : llvm::zip_equal(parts, exchanged))
      part.load(thread, registers, round);
  }
  if (isAcrossBlocks)
    emitClusterRelease(thread);
  operands = std::move(exchanged);
  layout = way.destination;
}

void AxisFragment::foldLines(llvm::function_ref<Group(ArrayRef<Group>)> fold) {
  // The registers of each line, by what they add along the other dimensions.
  std::map<std::vector<int64_t>, std::map<int64_t, Group>> lines;
  int64_t count = operands.front().size();
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, number);
    int64_t along = std::exchange(coordinates[axis], 0);
    lines[{coordinates.begin(), coordinates.end()}][along] = get(number);
  }
  layout = dropRegisterBits(layout, axis);
  layout = compactAxis(layout, axis, /*repeats=*/1);
  for (SmallVector<Value> &registers : operands)
    registers.clear();
  for (int64_t number = 0, e = count / lines.begin()->second.size(); number < e; ++number) {
    SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, number);
    SmallVector<Group> line;
    for (auto &[along, group] : lines.at({coordinates.begin(), coordinates.end()}))
      line.push_back(group);
    for (auto [registers, value] : llvm::zip_equal(operands, fold(line)))
      registers.push_back(value);
  }
}

void AxisFragment::foldRegisters(const CombineRegion &combine) {
  foldLines([&](ArrayRef<Group> groups) {
    SmallVector<Group> line(groups);
    while (line.size() % 2 == 0) {
      size_t half = line.size() / 2;
      for (size_t i = 0; i < half; ++i)
        line[i] = combine(line[i], line[i + half]);
      line.truncate(half);
    }
    Group folded = line.front();
    for (const Group &group : ArrayRef(line).drop_front())
      folded = combine(folded, group);
    return folded;
  });
}

void AxisFragment::foldRegisterBit(const CombineRegion &combine, unsigned bit) {
  SmallVector<SmallVector<Value>> folded(operands.size());
  int64_t step = int64_t(1) << bit;
  for (int64_t number = 0, e = operands.front().size(); number < e; ++number) {
    if (number & step)
      continue;
    for (auto [registers, value] :
         llvm::zip_equal(folded, combine(get(number), get(number | step))))
      registers.push_back(value);
  }
  operands = std::move(folded);
  f2::Columns &columns = layout.columns(HwDim::Reg);
  columns.erase(columns.begin() + bit);
}

void AxisFragment::foldLaneBit(ThreadBuilder &thread, const CombineRegion &combine, unsigned bit) {
  bool isCommutative = combine.isCommutative();
  Value isUpper;
  if (!isCommutative)
    isUpper = thread.compare(LLVM::ICmpPredicate::ne,
                             thread.bitAnd(emitLaneId(thread), uint64_t(1) << bit), 0);
  for (int64_t number = 0, e = operands.front().size(); number < e; ++number) {
    Group own = get(number), left = own, right;
    for (Value value : own)
      right.push_back(emitShuffleXor(thread, value, 1u << bit));
    if (!isCommutative)
      for (auto [l, r] : llvm::zip_equal(left, right)) {
        Value lower = thread.select(isUpper, r, l);
        r = thread.select(isUpper, l, r);
        l = lower;
      }
    for (auto [registers, value] : llvm::zip_equal(operands, combine(left, right)))
      registers[number] = value;
  }
  layout.columns(HwDim::Lane)[bit] = 0;
}

bool AxisFragment::isOfWholeWarp() const {
  ArrayRef<uint64_t> lanes(layout.columns(HwDim::Lane));
  size_t bits = llvm::count_if(
      lanes, [&](uint64_t column) { return getAxisBit(layout, axis, column).has_value(); });
  size_t copies = llvm::count(lanes, uint64_t(0));
  return bits >= 2 && bits + copies == lanes.size();
}

bool AxisFragment::foldWarp(ThreadBuilder &thread, const CombineRegion &combine) {
  std::optional<WarpReduction> kind = combine.getWarpReduction();
  f2::Columns &lanes = layout.columns(HwDim::Lane);
  // The instruction takes all lanes: copies must not count.
  bool countsTwice = kind == WarpReduction::Add || kind == WarpReduction::Xor;
  if (!kind || !isOfWholeWarp() || (countsTwice && llvm::is_contained(lanes, uint64_t(0))))
    return false;
  for (Value &value : operands.front())
    value = thread.getHooks().emitWarpReduce(thread, *kind, value);
  llvm::fill(lanes, 0);
  return true;
}
