// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which stores may be non-temporal (see NonTemporalStores.cpp).

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_NONTEMPORALSTORES_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_NONTEMPORALSTORES_H

#include "mlir/IR/Builders.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

class NonTemporalStores {
public:
  explicit NonTemporalStores(tile::FuncOp kernel);

  /// True if its program neither reads nor writes the stored elements again.
  bool mayBeNonTemporal(tile::StoreOp store);

  /// The bytes that a program writes by a store, of type i64; built at `builder`, which
  /// stands where the store does or further out by groups alone.
  mlir::Value buildBytes(mlir::OpBuilder &builder, tile::StoreOp store);

  /// True if no array that is loaded from begins where a stored one does; null if none is loaded
  /// from. Built at `builder`.
  mlir::Value buildIsApart(mlir::OpBuilder &builder, tile::StoreOp store);

private:
  bool isPossible = true;
  llvm::DenseSet<mlir::Value> read; ///< arguments whose arrays are loaded from
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_NONTEMPORALSTORES_H
