// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/TensorMap.h"

#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Runtime/CUDA/LaunchLimits.h"

namespace tessera::cuda {

static constexpr int32_t kNoGrid[3] = {0, 0, 0};

std::optional<int64_t> LaunchExpression::evaluate(const uint64_t *slots) const {
  tessera_range range;
  if (!tessera_find_range(FormulaTables().add(*this), kNoGrid, slots, &range))
    return std::nullopt;
  return range.least;
}

std::optional<std::pair<uint64_t, uint64_t>> ArrayRange::evaluate(const uint64_t *slots,
                                                                  const int32_t grid[3]) const {
  FormulaTables tables;
  tessera_array array = tables.add(*this);
  uint64_t begin = 0, end = 0;
  if (!tessera_find_bytes(&array, grid, slots, &begin, &end))
    return std::nullopt;
  return std::pair(begin, end);
}

bool ArraysApart::holds(const uint64_t *slots, const int32_t grid[3]) const {
  FormulaTables tables;
  tessera_array_pair pair = {tables.add(first), tables.add(second)};
  return tessera_are_apart(&pair, grid, slots) != 0;
}

bool evaluate(const TensorMapRecipe &recipe, const uint64_t *slots, TensorMapShape &shape) {
  FormulaTables tables;
  tessera_tensor_map map = tables.add(recipe);
  shape.rank = map.array.rank;
  return tessera_find_shape(&map.array, kNoGrid, slots, &shape) != 0;
}

bool encode(const tessera_tensor_map &recipe, const tessera_shape &shape, TensorMap &map) {
  const DriverTable &driver = getDriver();
  if (!driver.cuTensorMapEncodeTiled)
    return false;
  // Values of CUtensorMapSwizzle, CUtensorMapL2promotion; no interleaving, and zeros outside.
  constexpr int kNoInterleave = 0, kZeros = 0, kPromote128 = 2, kPromote256 = 3;
  int swizzle = recipe.swizzle_bytes == 128  ? 3
                : recipe.swizzle_bytes == 64 ? 2
                : recipe.swizzle_bytes == 32 ? 1
                                             : 0;
  constexpr uint32_t kDense[TensorMapShape::kMaxRank] = {1, 1, 1, 1, 1};
  bool isLong = static_cast<int>(shape.box[0]) * recipe.array.element_bytes >= 128;
  return driver.cuTensorMapEncodeTiled(&map, recipe.element, recipe.array.rank,
                                       reinterpret_cast<void *>(shape.base), shape.extents,
                                       shape.strides + 1, shape.box, kDense, kNoInterleave, swizzle,
                                       isLong ? kPromote256 : kPromote128, kZeros) == 0;
}

} // namespace tessera::cuda
