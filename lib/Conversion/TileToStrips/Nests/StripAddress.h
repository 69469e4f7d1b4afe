// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The addresses of the lanes of one strip of an access. StripMemory.cpp computes them, and
// ShortRuns.cpp for strips that consist of several runs.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPADDRESS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPADDRESS_H

#include "StripEmitter.h"

namespace tessera {

struct StripEmitter::Address {
  enum Kind { Contiguous, Strided, Uniform, Runs, Scattered } kind;
  mlir::Value value;  ///< an i64 (of the first lane; Contiguous, Strided: before `step` elements
                      ///< are added; Scattered: to which `offsets` are added), or a vector of them
  mlir::Value step;   ///< Contiguous, Strided: of type index; null for 0
  int64_t offset = 0; ///< Contiguous: so many elements more
  unsigned level = 0;
  /// Contiguous: `value` is known at this level, and is the address of an element that a
  /// strip begins with; none if other strips may lie otherwise.
  std::optional<unsigned> rowLevel = std::nullopt;
  int64_t stride = 1;       ///< Strided: from lane to lane, in elements
  LaneRuns runs = {};       ///< Runs: what they are
  mlir::Value offsets = {}; ///< Scattered: a vector of integers with a sign, in elements; or null
  unsigned offsetLevel = 0;
  llvm::SmallVector<mlir::Value, 8> begins = {}; ///< Runs: the i64 address of each one
};

/// `build` under a condition, `otherwise` without it.
mlir::Value buildIf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                    mlir::Value otherwise,
                    llvm::function_ref<mlir::Value(mlir::OpBuilder &)> build);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPADDRESS_H
