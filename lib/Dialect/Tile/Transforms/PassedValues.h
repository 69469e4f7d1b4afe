// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_PASSEDVALUES_H
#define TESSERA_DIALECT_TILE_TRANSFORMS_PASSEDVALUES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace tessera::tile {

/// The numbers of the `after` region's arguments among the carried values; none if one of them is
/// no carried value.
std::optional<mlir::SmallVector<unsigned>> findPassedValues(mlir::scf::WhileOp loop);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_PASSEDVALUES_H
