// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that an access can come to, in any program of a launch and in any iteration of the loops
// around it, as sums that a launcher can bound (ProgramBounds.h).

#ifndef TESSERA_ANALYSIS_BOXES_ACCESSREACH_H
#define TESSERA_ANALYSIS_BOXES_ACCESSREACH_H

#include "tessera/Analysis/Boxes/BoxAccess.h"

namespace tessera {

/// Elements of strided dimensions, from an index on that may be another one each time.
struct AccessReach {
  struct Dim {
    LaunchExpr extent, stride; ///< in elements
    ScalarPolynomial first;
  };
  mlir::BlockArgument base; ///< of the kernel
  int64_t elementBytes = 1;
  llvm::SmallVector<Dim, 3> dims;
  /// As those of a box: what has to hold at a launch, or it may come to more.
  llvm::SmallVector<LaunchExpr, 0> conditions;
  int64_t mostPrograms = 0;
  llvm::SmallVector<std::string, 0> programBounds;
};

/// The reach of pointers, or of one, with a mask (null: none). None where it is not known.
std::optional<AccessReach> getAccessReach(mlir::Operation *access, mlir::Value pointers,
                                          mlir::Value mask, AccessAnalysis &analysis);

} // namespace tessera

#endif // TESSERA_ANALYSIS_BOXES_ACCESSREACH_H
