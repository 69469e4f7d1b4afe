// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/TensorMap.h"

#include "tessera/Runtime/CUDA/Driver.h"

#include <algorithm>

namespace tessera::cuda {

std::optional<int64_t> LaunchExpression::evaluate(const uint64_t *slots) const {
  int64_t sum = 0;
  for (const Term &term : terms) {
    int64_t product = term.scale;
    for (const Factor &factor : term.factors) {
      auto value = static_cast<int64_t>(slots[factor.argument]);
      // Nobody says what is in the rest of a narrow argument's slot.
      if (!factor.isWide)
        value = static_cast<int32_t>(value);
      if (__builtin_mul_overflow(product, value, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

std::optional<std::pair<uint64_t, uint64_t>> ArrayRange::evaluate(const uint64_t *slots,
                                                                  const int32_t grid[3]) const {
  uint64_t base = slots[argument];
  // To the first and to the last element, in elements.
  int64_t down = 0, up = 0;
  for (const Dim &dim : dims) {
    std::optional<int64_t> extent = dim.extent.evaluate(slots);
    if (!extent)
      return std::nullopt;
    if (*extent < 1)
      return std::pair(base, base);
    std::optional<int64_t> stride = dim.stride.evaluate(slots);
    ProgramBound::Range first = {0, 0, 0};
    if (dim.first) {
      std::optional<ProgramBound::Range> known = dim.first->getRange(slots, grid);
      if (!known)
        return std::nullopt;
      first = *known;
    }
    int64_t last = 0, reaches[2];
    if (!stride || __builtin_add_overflow(first.most, *extent - 1, &last) ||
        __builtin_mul_overflow(first.least, *stride, &reaches[0]) ||
        __builtin_mul_overflow(last, *stride, &reaches[1]) ||
        __builtin_add_overflow(down, std::min(reaches[0], reaches[1]), &down) ||
        __builtin_add_overflow(up, std::max(reaches[0], reaches[1]), &up))
      return std::nullopt;
  }
  int64_t above = 0;
  uint64_t begin = 0, end = 0;
  if (__builtin_add_overflow(up, 1, &above) ||
      __builtin_mul_overflow(above, int64_t(elementBytes), &above) ||
      __builtin_mul_overflow(down, int64_t(elementBytes), &down) ||
      __builtin_add_overflow(base, above, &end) || __builtin_add_overflow(base, down, &begin))
    return std::nullopt;
  return std::pair(begin, end);
}

bool ArraysApart::holds(const uint64_t *slots, const int32_t grid[3]) const {
  std::optional<std::pair<uint64_t, uint64_t>> a = first.evaluate(slots, grid),
                                               b = second.evaluate(slots, grid);
  if (!a || !b)
    return false;
  bool isEmpty = a->first == a->second || b->first == b->second;
  return isEmpty || a->second <= b->first || b->second <= a->first;
}

bool evaluate(const TensorMapRecipe &recipe, const uint64_t *slots, TensorMapShape &shape) {
  constexpr uint64_t kAlignment = 16;
  // Coordinates have 31 bits; strides, 40.
  constexpr int64_t kMostElements = int64_t(1) << 31, kMostBytes = int64_t(1) << 40;
  shape.base = slots[recipe.base];
  if (shape.base == 0 || shape.base % kAlignment != 0)
    return false;
  shape.rank = static_cast<int>(recipe.dims.size());
  for (int at = 0; at < shape.rank; ++at) {
    const TensorMapRecipe::Dim &dim = recipe.dims[shape.rank - 1 - at];
    std::optional<int64_t> extent = dim.extent.evaluate(slots);
    if (!extent || *extent < 1 || *extent > kMostElements)
      return false;
    shape.extents[at] = *extent;
    shape.box[at] = dim.box;
    shape.strides[at] = recipe.elementBytes;
    if (at == 0)
      continue;
    std::optional<int64_t> stride = dim.stride.evaluate(slots);
    if (!stride || *stride < 0 || *stride >= kMostBytes / recipe.elementBytes)
      return false;
    shape.strides[at] = *stride * recipe.elementBytes;
    if (shape.strides[at] % kAlignment != 0)
      return false;
  }
  return true;
}

bool encode(const TensorMapRecipe &recipe, const uint64_t *slots, TensorMap &map) {
  const DriverTable &driver = getDriver();
  TensorMapShape shape;
  if (!driver.cuTensorMapEncodeTiled || !evaluate(recipe, slots, shape))
    return false;
  // Values of CUtensorMapSwizzle, CUtensorMapL2promotion; no interleaving, and zeros outside.
  constexpr int kNoInterleave = 0, kZeros = 0, kPromote128 = 2, kPromote256 = 3;
  int swizzle = recipe.swizzleBytes == 128  ? 3
                : recipe.swizzleBytes == 64 ? 2
                : recipe.swizzleBytes == 32 ? 1
                                            : 0;
  constexpr uint32_t kDense[TensorMapShape::kMaxRank] = {1, 1, 1, 1, 1};
  bool isLong = static_cast<int>(shape.box[0]) * recipe.elementBytes >= 128;
  return driver.cuTensorMapEncodeTiled(&map, static_cast<int>(recipe.element), shape.rank,
                                       reinterpret_cast<void *>(shape.base), shape.extents,
                                       shape.strides + 1, shape.box, kDense, kNoInterleave, swizzle,
                                       isLong ? kPromote256 : kPromote128, kZeros) == 0;
}

} // namespace tessera::cuda
