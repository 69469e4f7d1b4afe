// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AccessPlan.h"

using namespace mlir;
using namespace tessera;

SmallVector<int64_t> tessera::getRepresentatives(Operation *op, Type type) {
  auto runs = op->getAttrOfType<DenseI64ArrayAttr>(kRunsAttr);
  SmallVector<int64_t> result;
  for (int64_t i = 0, e = getNumRegisters(type); i < e; ++i) {
    result.push_back(i);
    if (!runs)
      continue;
    const LinearLayout &layout = tilegpu::getLayout(type);
    SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, i);
    for (auto [coordinate, run] : llvm::zip_equal(coordinates, runs.asArrayRef()))
      coordinate -= coordinate % run;
    result.back() = *findRegister(layout, coordinates);
  }
  return result;
}

SmallVector<SmallVector<int64_t>> tessera::getAccesses(Operation *op, Type pointers) {
  SmallVector<SmallVector<int64_t>> accesses;
  int64_t count = getNumRegisters(pointers);
  auto plan = op->getAttrOfType<DenseI64ArrayAttr>(kAccessAttr);
  if (!plan) {
    for (int64_t i = 0; i < count; ++i)
      accesses.push_back({i});
    return accesses;
  }
  const LinearLayout &layout = tilegpu::getLayout(pointers);
  int64_t dim = plan[0], elements = plan[1];
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, i);
    if (coordinates[dim] % elements != 0)
      continue;
    SmallVector<int64_t> &access = accesses.emplace_back();
    for (int64_t j = 0; j < elements; ++j) {
      access.push_back(*findRegister(layout, coordinates));
      ++coordinates[dim];
    }
  }
  return accesses;
}
