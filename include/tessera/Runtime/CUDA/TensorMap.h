// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps, the descriptions of arrays that TMA reads. A kernel that copies boxes gets one for
// each array, behind its other arguments. The address and the extents are known at the launch. So
// the kernel has recipes, and each launch makes the maps (0.05 us each, so none is cached).

#ifndef TESSERA_RUNTIME_CUDA_TENSORMAP_H
#define TESSERA_RUNTIME_CUDA_TENSORMAP_H

#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::cuda {

/// An integer that a launch computes: a sum of products of arguments.
struct LaunchExpression {
  struct Factor {
    int argument = 0;
    bool isWide = false; ///< 64 bits, not 32
  };
  struct Term {
    int64_t scale = 0;
    std::vector<Factor> factors;
  };
  std::vector<Term> terms;

  /// The value for arguments in slots of 8 bytes; nothing if it overflows 64 bits.
  std::optional<int64_t> evaluate(const uint64_t *slots) const;
};

/// The types of elements, as the driver numbers them.
enum class TensorMapElement {
  UInt8 = 0,
  UInt16 = 1,
  UInt32 = 2,
  Int32 = 3,
  UInt64 = 4,
  Int64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  BFloat16 = 9,
};

struct TensorMapRecipe {
  struct Dim {
    LaunchExpression extent, stride; ///< in elements
    int box = 1;                     ///< elements that one instruction moves
  };
  int base = 0; ///< the argument that points to the array
  TensorMapElement element = TensorMapElement::UInt8;
  int elementBytes = 1;
  int swizzleBytes = 0;  ///< 0, 32, 64 or 128
  std::vector<Dim> dims; ///< one to five, outermost first
};

/// The range of bytes that all programs of a kernel access by one argument.
struct ArrayRange {
  struct Dim {
    LaunchExpression extent, stride; ///< in elements
    /// A program's index of the first element; 0 if there is no bound.
    std::optional<ProgramBound> first;
  };
  int argument = 0;
  int elementBytes = 1;
  std::vector<Dim> dims;

  /// The first byte, and the one behind the last; equal if the range is empty. Nothing if they
  /// overflow 64 bits.
  std::optional<std::pair<uint64_t, uint64_t>> evaluate(const uint64_t *slots,
                                                        const int32_t grid[3]) const;
};

/// Two arrays that must not overlap.
struct ArraysApart {
  ArrayRange first, second;

  /// True if they do not overlap with these arguments; false also if that is unknown.
  bool holds(const uint64_t *slots, const int32_t grid[3]) const;
};

/// The form in which TMA reads a tensor map, as a kernel's parameter.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

/// An array with its address, extents and strides.
struct TensorMapShape : tessera_shape {
  static constexpr int kMaxRank = 5;

  TensorMapShape() : tessera_shape() {}

  int rank = 0;
};

/// Evaluates a recipe for these arguments. False if TMA cannot copy boxes of the array: it is empty
/// or too large, or its base or a stride is no multiple of 16 bytes.
bool evaluate(const TensorMapRecipe &recipe, const uint64_t *slots, TensorMapShape &shape);

/// Makes the map; false if that is impossible. Throws DriverError if there is no driver.
bool encode(const tessera_tensor_map &recipe, const tessera_shape &shape, TensorMap &map);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_TENSORMAP_H
