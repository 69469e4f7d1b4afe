// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of products of scalars, for reasoning about index arithmetic as if integers were
// those of mathematics:
//
//     pid * 64 * ld + 3        {64, [pid, ld]} + {3, []}
//
// A factor is a scalar of the program, or the number of a loop's iteration, counted from 0. So an
// induction of a loop is a product like any other.

#ifndef TESSERA_ANALYSIS_ACCESS_SCALARPOLYNOMIAL_H
#define TESSERA_ANALYSIS_ACCESS_SCALARPOLYNOMIAL_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera {

struct ScalarFactor {
  ScalarFactor(mlir::Value value, bool isIteration = false)
      : value(value), isIteration(isIteration) {}

  mlir::Value value;
  /// Then the value is the loop's induction variable.
  bool isIteration;

  bool operator==(const ScalarFactor &other) const {
    return value == other.value && isIteration == other.isIteration;
  }
};

/// `scale` times all the factors.
struct ScalarTerm {
  int64_t scale = 0;
  /// In the order in which they came up; two terms are alike if they are a permutation.
  llvm::SmallVector<ScalarFactor, 1> factors;

  bool isConstant() const { return factors.empty(); }
  bool isLike(const ScalarTerm &other) const;
};

/// `scale` times `symbol`, or `scale` alone where there is none.
struct ScalarMultiple {
  int64_t scale = 0;
  mlir::Value symbol;

  bool isConstant() const { return !symbol; }
};

class ScalarPolynomial {
public:
  ScalarPolynomial() = default;
  ScalarPolynomial(int64_t constant);
  static ScalarPolynomial ofFactor(ScalarFactor factor);

  /// No two alike, none 0. Their order is that in which they were added.
  llvm::ArrayRef<ScalarTerm> getTerms() const { return terms; }
  bool isZero() const { return terms.empty(); }
  /// The value, if there are no factors.
  std::optional<int64_t> getConstant() const;
  bool isConstant() const { return getConstant().has_value(); }
  bool isOne() const { return getConstant() == 1; }
  /// The value, if it is a multiple of a scalar of the program, or a number.
  std::optional<ScalarMultiple> getMultiple() const;
  /// True if it is the same in all iterations of a loop.
  bool isInvariant(mlir::Operation *loop) const;
  bool operator==(const ScalarPolynomial &other) const;

  /// Nothing where a number leaves 64 bits, or where there would be too many terms.
  std::optional<ScalarPolynomial> plus(const ScalarPolynomial &other) const;
  std::optional<ScalarPolynomial> minus(const ScalarPolynomial &other) const;
  std::optional<ScalarPolynomial> times(const ScalarPolynomial &other) const;
  /// The quotient by a polynomial of one term, if there is no remainder.
  std::optional<ScalarPolynomial> dividedBy(const ScalarPolynomial &divisor) const;

  /// The terms all of whose factors are of a kind, and the others.
  std::pair<ScalarPolynomial, ScalarPolynomial>
  partition(llvm::function_ref<bool(const ScalarFactor &)> isOfKind) const;

private:
  bool add(ScalarTerm term);

  llvm::SmallVector<ScalarTerm, 1> terms;
};

/// The quotient of two terms, if there is no remainder.
std::optional<ScalarTerm> divideTerms(const ScalarTerm &term, const ScalarTerm &divisor);

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_SCALARPOLYNOMIAL_H
