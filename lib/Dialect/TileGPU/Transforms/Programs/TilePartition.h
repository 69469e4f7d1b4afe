// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dividing tiles into equal parts along a dimension: the parts of its operands that an op needs for
// a part of its results, and the types and attributes of parts. The dimensions follow from source
// maps (IndexMapOpInterface). Blocks of a cluster (DividePrograms.cpp) and slices one after the
// other (SliceTiles.cpp) are such parts.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEPARTITION_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEPARTITION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace tessera::tilegpu {

/// The dimension along which a tile is divided; none for a whole tile, and for a scalar.
using PartDim = std::optional<unsigned>;

class TilePartition {
public:
  explicit TilePartition(int64_t parts) : parts(parts) {}

  int64_t getParts() const { return parts; }

  /// True if parts of a tile along the dimension have a legal extent.
  bool canDivide(mlir::Value value, unsigned dim) const;

  /// The parts of its operands that an op needs for a part of its results along `dim`, or for whole
  /// results. None if the op cannot be done part by part.
  std::optional<llvm::SmallVector<PartDim, 4>> getOperandParts(mlir::Operation *op,
                                                               PartDim dim) const;

  /// The part of the op's results that is made of such a part of an operand; none if there is none.
  PartDim getResultPart(mlir::OpOperand &operand, unsigned dim, unsigned result = 0) const;

  /// The type of a part of a tile.
  mlir::RankedTensorType getPartType(mlir::Type tile, unsigned dim) const;

  /// Gives a result of an op the type of a part, and the op the attributes for it. Returns the
  /// part: the result itself, or the operand of a hint that does not hold of parts. The elements of
  /// a range are still those of the first part.
  mlir::Value makePart(mlir::OpResult result, unsigned dim) const;

private:
  int64_t parts;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_TILEPARTITION_H
