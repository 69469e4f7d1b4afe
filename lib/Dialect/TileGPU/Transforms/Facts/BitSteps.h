// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far an address moves with each bit of an element's index. An index that is divided, such as
// i // 128 * 4096 + i % 128 * 16, has no stride, yet each bit of i adds a constant.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_BITSTEPS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_BITSTEPS_H

#include "mlir/IR/Value.h"
#include "tessera/Analysis/Access/Access.h"

#include <optional>

namespace tessera::tilegpu {

/// A tile of integers or pointers: the sum of one number, and of a step for each bit that is set in
/// the indices of an element.
struct BitSteps {
  /// One list a dimension, from its lowest bit.
  llvm::SmallVector<llvm::SmallVector<int64_t>> steps;
  /// A power of two that divides the number.
  int64_t divisibility = 1;
};

/// The steps of a tile of integers, or, in elements, of pointers. Nothing if they are not known, or
/// if an extent is no power of two. Quotients are taken to be of numbers that are not negative, and
/// nothing to wrap: a use for which a wrong answer costs time alone.
std::optional<BitSteps> findBitSteps(mlir::Value tile, AccessAnalysis &analysis);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_BITSTEPS_H
