// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/LaunchLimits.h"

namespace tessera::cuda {

static constexpr tessera_step kMultiply = {TESSERA_MUL, 64, 0}, kAdd = {TESSERA_ADD, 64, 0},
                              kEnd = {TESSERA_END, 0, 0};

static void appendTerm(const LaunchExpression::Term &term, std::vector<tessera_step> &steps) {
  bool isFirst = true;
  auto multiply = [&](tessera_step step) {
    steps.push_back(step);
    if (!isFirst)
      steps.push_back(kMultiply);
    isFirst = false;
  };
  if (term.scale != 1 || term.factors.empty())
    multiply({TESSERA_CONSTANT, 64, term.scale});
  for (const LaunchExpression::Factor &factor : term.factors)
    multiply({TESSERA_ARGUMENT, uint8_t(factor.isWide ? 64 : 32), factor.argument});
}

const tessera_step *FormulaTables::add(const LaunchExpression &sum) {
  std::vector<tessera_step> &steps = formulas.emplace_back();
  if (sum.terms.empty())
    steps.push_back({TESSERA_CONSTANT, 64, 0});
  for (const LaunchExpression::Term &term : sum.terms) {
    bool isFirst = steps.empty();
    appendTerm(term, steps);
    if (!isFirst)
      steps.push_back(kAdd);
  }
  steps.push_back(kEnd);
  return steps.data();
}

const tessera_step *FormulaTables::add(const ProgramBound &bound) {
  return formulas.emplace_back(bound.getSteps()).data();
}

tessera_array FormulaTables::add(const ArrayRange &range) {
  std::vector<tessera_dim> &made = dims.emplace_back();
  for (const ArrayRange::Dim &dim : range.dims)
    made.push_back({add(dim.extent), add(dim.stride), 0, dim.first ? add(*dim.first) : nullptr});
  return {range.argument, range.elementBytes, static_cast<int32_t>(made.size()), made.data()};
}

tessera_tensor_map FormulaTables::add(const TensorMapRecipe &recipe) {
  std::vector<tessera_dim> &made = dims.emplace_back();
  for (const TensorMapRecipe::Dim &dim : recipe.dims)
    made.push_back(
        {add(dim.extent), add(dim.stride), static_cast<uint32_t>(dim.box), /*first=*/nullptr});
  return {{recipe.base, recipe.elementBytes, static_cast<int32_t>(made.size()), made.data()},
          static_cast<int32_t>(recipe.element),
          recipe.swizzleBytes};
}

tessera_limits LaunchLimits::get() const {
  return {mostPrograms,
          countsPrograms,
          static_cast<int32_t>(conditions.size()),
          static_cast<int32_t>(apart.size()),
          static_cast<int32_t>(maps.size()),
          conditions.data(),
          apart.data(),
          maps.data()};
}

} // namespace tessera::cuda
