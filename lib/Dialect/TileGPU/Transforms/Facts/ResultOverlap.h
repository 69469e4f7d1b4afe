// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The overlap of the arrays that a loop stores with those that an inner loop copies. If the kernel
// loads their addresses, the places are compared once, in front of the outer loop.
//
//     while there is a tile:                      may = [a, a + bytes) meets [c, c + bytes), or ...
//       for k: multiply boxes of a and b    >     while there is a tile:
//       store a box of c if may: the producer waits for the stores
//                                                   for k: ...
//
// An array reaches from its first element to the one at its greatest coordinates. If that number
// does not fit, or the array has no elements, the arrays count as overlapping.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_RESULTOVERLAP_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_RESULTOVERLAP_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"

#include <vector>

namespace tessera::tilegpu {

class ResultOverlap {
public:
  /// The loop around a loop that copies these boxes, if it otherwise writes only boxes of arrays.
  /// These arrays, like the copied ones, must be known in front of it.
  static std::optional<ResultOverlap>
  find(mlir::scf::ForOp loop, llvm::ArrayRef<const BoxAccess *> copied, AccessAnalysis &analysis);

  mlir::Operation *getLoop() const { return around; }
  /// True if a copied and a stored array may overlap: an i1.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc) const;

private:
  explicit ResultOverlap(mlir::Operation *around) : around(around) {}

  mlir::Operation *around;
  std::vector<BoxAccess> copied, stored;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_RESULTOVERLAP_H
