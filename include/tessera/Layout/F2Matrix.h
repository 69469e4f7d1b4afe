// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear algebra over F2 on machine words.
//
// A vector is a uint64_t, a matrix a list of columns; addition is XOR. Everything that
// layouts need (rank, solving, inverses, complements) comes from one object: an echelon
// basis that remembers which columns each of its vectors was made of. With at most 64
// columns of one word each, every operation takes well under a microsecond, so nothing
// here is clever.
//
// Preference is insertion order: a column that depends on earlier ones is never used in a solution.
// To restrict a solution to certain columns, add those first.

#ifndef TESSERA_LAYOUT_F2MATRIX_H
#define TESSERA_LAYOUT_F2MATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cstdint>
#include <optional>

namespace tessera::f2 {

using Columns = llvm::SmallVector<uint64_t, 16>;

/// A growing set of independent vectors in echelon form, with lowest-bit pivots.
class Span {
public:
  /// The remainder of a vector modulo the span: 0 exactly for the vectors of the span.
  /// `combination` receives the tags of the columns that were XORed to get there.
  uint64_t reduce(uint64_t vector, uint64_t *combination = nullptr) const;

  /// Adds a column. Returns false, and changes nothing, if it is in the span already.
  /// `tag` names the column in combinations (usually one bit a column).
  bool add(uint64_t column, uint64_t tag = 0);

  bool contains(uint64_t vector) const { return reduce(vector) == 0; }
  unsigned rank() const;

private:
  std::array<uint64_t, 64> vectors{};
  std::array<uint64_t, 64> tags{};
  uint64_t pivots = 0;
};

/// The product of a matrix and a vector: the XOR of the columns that `x` selects.
uint64_t apply(llvm::ArrayRef<uint64_t> columns, uint64_t x);

/// The number of independent columns.
unsigned rank(llvm::ArrayRef<uint64_t> columns);

/// An x with `columns * x == target`, made of the earliest independent columns.
std::optional<uint64_t> solve(llvm::ArrayRef<uint64_t> columns, uint64_t target);

/// A basis of the x with `columns * x == 0`.
Columns kernel(llvm::ArrayRef<uint64_t> columns);

/// The candidates that are independent of `base` and of the candidates before them.
Columns extend(llvm::ArrayRef<uint64_t> base, llvm::ArrayRef<uint64_t> candidates);

/// The inverse of an invertible matrix of `bits` rows and columns, or nothing.
std::optional<Columns> inverse(llvm::ArrayRef<uint64_t> columns, unsigned bits);

/// 1, 2, 4, ..., 2^(bits - 1).
Columns unitVectors(unsigned bits);

} // namespace tessera::f2

#endif // TESSERA_LAYOUT_F2MATRIX_H
