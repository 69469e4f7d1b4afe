// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps: what TMA knows of an array. A kernel that moves boxes
// gets one for each array, behind its other arguments. Which array it is, and how large, is
// known when the kernel is launched; so the kernel carries recipes, and each launch makes
// the maps (0.05 us each, so none is kept).

#ifndef TESSERA_RUNTIME_CUDA_TENSORMAP_H
#define TESSERA_RUNTIME_CUDA_TENSORMAP_H

#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::cuda {

/// An integer that a launch knows: a sum of products of arguments.
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

  /// For arguments in slots of 8 bytes. Nothing where 64 bits are not enough.
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

/// The bytes of an array that a kernel's programs reach by one argument, all of them and at any
/// time.
struct ArrayRange {
  struct Dim {
    LaunchExpression extent, stride; ///< in elements
    /// The index of the first of so many elements, in each program; 0 where there is none.
    std::optional<ProgramBound> first;
  };
  int argument = 0;
  int elementBytes = 1;
  std::vector<Dim> dims;

  /// The first byte and that behind the last; the two are the same where there is none.
  /// Nothing where 64 bits are not enough.
  std::optional<std::pair<uint64_t, uint64_t>> evaluate(const uint64_t *slots,
                                                        const int32_t grid[3]) const;
};

/// Two arrays of which the kernel takes for granted that they do not overlap.
struct ArraysApart {
  ArrayRange first, second;

  /// True if it is so for these arguments; false also where it cannot be told.
  bool holds(const uint64_t *slots, const int32_t grid[3]) const;
};

/// What TMA reads, in parameters of a kernel.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

/// An array whose numbers have been filled in.
struct TensorMapShape : tessera_shape {
  static constexpr int kMaxRank = 5;

  TensorMapShape() : tessera_shape() {}

  int rank = 0;
};

/// What a recipe gives for these arguments; false if TMA cannot move boxes of that: an
/// array that is empty or too large, a base or a stride that is no multiple of 16 bytes.
bool evaluate(const TensorMapRecipe &recipe, const uint64_t *slots, TensorMapShape &shape);

/// Makes the map; false if there cannot be one. Throws DriverError if there is no driver.
bool encode(const tessera_tensor_map &recipe, const tessera_shape &shape, TensorMap &map);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_TENSORMAP_H
