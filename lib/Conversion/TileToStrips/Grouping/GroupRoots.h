// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of single operations for strips-group: the roots of a group, and operations that are
// cheap enough to be computed once per group.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_GROUPROOTS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_GROUPROOTS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

enum class RootKind {
  None,           ///< does nothing to memory but load tiles; computed where it is needed
  Fused,          ///< a root that may share its nest with others
  InElementOrder, ///< a root that takes its elements one by one, in a nest of its own
  VolatileLoad,   ///< done once, where it stands
  Consumer,       ///< needs its tiles in buffers: dots, control flow, returns
  ScalarRead,     ///< a scalar that depends on memory
  ScalarEffect,   ///< an effect with no tile: no group may be moved over it
};

RootKind classify(mlir::Operation *op);

/// The shape of the nest that a root operation needs.
llvm::ArrayRef<int64_t> getIterationShape(mlir::Operation *root);

/// True if an operand or result is a tile.
bool hasTiles(mlir::Operation *op);

bool isControlFlow(mlir::Operation *op);

/// True if a tile already is in a buffer wherever it is needed: what loops carry,
/// dots, and results of groups.
bool isCrossing(mlir::Value tile);

/// Integer, pointer and boolean arithmetic and moving elements about: never worth a
/// buffer if the operands are at hand.
bool isIndexArithmetic(mlir::Operation *op);

/// True if a tile is computed from scalars by cheap operations alone.
bool isRematerializable(mlir::Value tile);

/// True if computing an element again costs more than keeping it.
bool isExpensive(mlir::Operation *op);

/// The dimension along which the elements of an atomic with unused old values are contiguous, with
/// enough of them for one access.
std::optional<unsigned> findRows(tile::AtomicRMWOp atomic, AccessAnalysis &access);

/// Reports an operation that the CPU target cannot do.
mlir::LogicalResult verifySupported(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_GROUPROOTS_H
