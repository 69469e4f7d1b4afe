// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The limits of a kernel's launches, as the tables of tessera_limits.h. The compiler has limits as
// sums of products of arguments (LaunchExpression) and as texts (ProgramBound). Both become
// formulas here, once for each kernel. Each launch evaluates the tables.

#ifndef TESSERA_RUNTIME_CUDA_LAUNCHLIMITS_H
#define TESSERA_RUNTIME_CUDA_LAUNCHLIMITS_H

#include "tessera/Runtime/CUDA/ProgramBound.h"
#include "tessera/Runtime/CUDA/TensorMap.h"
#include "tessera/Runtime/CUDA/tessera_limits.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace tessera::cuda {

/// Makes tables, and owns all data that they point to.
class FormulaTables {
public:
  FormulaTables() = default;
  FormulaTables(FormulaTables &&) = default;
  FormulaTables &operator=(FormulaTables &&) = default;

  const tessera_step *add(const LaunchExpression &sum);
  const tessera_step *add(const ProgramBound &bound);
  tessera_array add(const ArrayRange &range);
  tessera_tensor_map add(const TensorMapRecipe &recipe);

private:
  /// Elements of a deque never move.
  std::deque<std::vector<tessera_step>> formulas;
  std::deque<std::vector<tessera_dim>> dims;
};

/// All assumptions of one kernel about a launch.
class LaunchLimits {
public:
  /// The maximum number of programs along an axis of the grid; 0: no limit.
  int64_t mostPrograms = 0;
  /// True if the kernel is persistent, and counts all programs of the grid in 32 bits.
  bool countsPrograms = false;

  /// Numbers that must not be negative.
  void addCondition(const LaunchExpression &sum) { conditions.push_back(tables.add(sum)); }
  void addCondition(const ProgramBound &bound) { conditions.push_back(tables.add(bound)); }
  void addApart(const ArraysApart &pair) {
    apart.push_back({tables.add(pair.first), tables.add(pair.second)});
  }
  void addTensorMap(const TensorMapRecipe &recipe) { maps.push_back(tables.add(recipe)); }

  bool isEmpty() const {
    return !mostPrograms && !countsPrograms && conditions.empty() && apart.empty() && maps.empty();
  }
  /// Valid until the next addition.
  tessera_limits get() const;

private:
  FormulaTables tables;
  std::vector<const tessera_step *> conditions;
  std::vector<tessera_array_pair> apart;
  std::vector<tessera_tensor_map> maps;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_LAUNCHLIMITS_H
