// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles and scalars as polynomials: what the box analysis reads off a program. (The access
// analysis asks how neighbours lie, and can leave open where a tile begins. Here that is
// the question.)

#ifndef TESSERA_LIB_ANALYSIS_INDEXFORMS_H
#define TESSERA_LIB_ANALYSIS_INDEXFORMS_H

#include "tessera/Analysis/ScalarPolynomial.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <string>

namespace tessera::box {

/// `base + uniform + sum over d of strides[d] * i_d`, in elements of the pointee, as if sums and
/// products did not wrap: of an address they do not. Whether those of a mask may is asked of
/// ranges.
struct IndexForm {
  /// Null for integers.
  mlir::BlockArgument base;
  ScalarPolynomial uniform;
  llvm::SmallVector<ScalarPolynomial> strides;
};

class IndexForms {
public:
  explicit IndexForms(std::function<bool(mlir::Value)> isNonNegative)
      : isNonNegative(std::move(isNonNegative)) {}

  /// None where a tile is no such sum. A scalar integer always has a form: at worst it is a
  /// factor.
  std::optional<IndexForm> get(mlir::Value value);

  /// What was the first thing in the way of a form, in the words of the language.
  llvm::StringRef getReason() const { return reason; }

private:
  std::optional<IndexForm> compute(mlir::Value value);
  std::optional<IndexForm> computeOp(mlir::OpResult value);
  std::optional<IndexForm> computeCarried(mlir::BlockArgument argument);
  std::optional<IndexForm> add(mlir::Value lhs, mlir::Value rhs, bool subtract);
  std::optional<IndexForm> multiply(mlir::Value lhs, mlir::Value rhs);
  std::optional<IndexForm> scale(mlir::Value value, int64_t factor);
  std::optional<IndexForm> reshape(tile::ReshapeOp op);
  std::nullopt_t refuse(const llvm::Twine &because);

  std::function<bool(mlir::Value)> isNonNegative;
  llvm::DenseMap<mlir::Value, std::optional<IndexForm>> forms;
  std::string reason;
  unsigned depth = 0;
};

} // namespace tessera::box

#endif // TESSERA_LIB_ANALYSIS_INDEXFORMS_H
