// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Polynomials of scalars are lists of few terms, so everything here searches them from end
// to end. Their order says nothing and is kept all the same: code that is made of them must
// not depend on where values happen to lie in memory.

#include "tessera/Analysis/Access/ScalarPolynomial.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

/// Index arithmetic has a handful of each.
static constexpr size_t kMaxTerms = 24;
static constexpr size_t kMaxFactors = 8;

bool ScalarTerm::isLike(const ScalarTerm &other) const {
  return factors.size() == other.factors.size() &&
         std::is_permutation(factors.begin(), factors.end(), other.factors.begin());
}

ScalarPolynomial::ScalarPolynomial(int64_t constant) {
  if (constant != 0)
    terms.push_back({constant, {}});
}

ScalarPolynomial ScalarPolynomial::ofFactor(ScalarFactor factor) {
  ScalarPolynomial result;
  result.terms.push_back({1, {factor}});
  return result;
}

std::optional<int64_t> ScalarPolynomial::getConstant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.front().isConstant())
    return terms.front().scale;
  return std::nullopt;
}

std::optional<ScalarMultiple> ScalarPolynomial::getMultiple() const {
  if (std::optional<int64_t> constant = getConstant())
    return ScalarMultiple{*constant, {}};
  if (terms.size() != 1 || terms.front().factors.size() != 1 ||
      terms.front().factors.front().isIteration)
    return std::nullopt;
  return ScalarMultiple{terms.front().scale, terms.front().factors.front().value};
}

bool ScalarPolynomial::isInvariant(Operation *loop) const {
  return llvm::all_of(terms, [&](const ScalarTerm &term) {
    return llvm::all_of(term.factors, [&](ScalarFactor factor) {
      return !loop->isAncestor(factor.value.getParentBlock()->getParentOp());
    });
  });
}

bool ScalarPolynomial::operator==(const ScalarPolynomial &other) const {
  return terms.size() == other.terms.size() && llvm::all_of(terms, [&](const ScalarTerm &term) {
           return llvm::any_of(other.terms, [&](const ScalarTerm &candidate) {
             return candidate.scale == term.scale && candidate.isLike(term);
           });
         });
}

bool ScalarPolynomial::add(ScalarTerm term) {
  if (term.scale == 0)
    return true;
  auto *like = llvm::find_if(terms, [&](const ScalarTerm &mine) { return mine.isLike(term); });
  if (like == terms.end()) {
    terms.push_back(std::move(term));
    return terms.size() <= kMaxTerms && terms.back().factors.size() <= kMaxFactors;
  }
  if (llvm::AddOverflow(like->scale, term.scale, like->scale))
    return false;
  if (like->scale == 0)
    terms.erase(like);
  return true;
}

std::optional<ScalarPolynomial> ScalarPolynomial::plus(const ScalarPolynomial &other) const {
  if (isZero())
    return other;
  ScalarPolynomial result = *this;
  for (const ScalarTerm &term : other.terms)
    if (!result.add(term))
      return std::nullopt;
  return result;
}

std::optional<ScalarPolynomial> ScalarPolynomial::minus(const ScalarPolynomial &other) const {
  ScalarPolynomial result = *this;
  for (const ScalarTerm &term : other.terms)
    if (term.scale == INT64_MIN || !result.add({-term.scale, term.factors}))
      return std::nullopt;
  return result;
}

std::optional<ScalarPolynomial> ScalarPolynomial::times(const ScalarPolynomial &other) const {
  if (isZero() || other.isOne())
    return *this;
  if (other.isZero() || isOne())
    return other;
  ScalarPolynomial result;
  for (const ScalarTerm &mine : terms)
    for (const ScalarTerm &theirs : other.terms) {
      ScalarTerm product = mine;
      llvm::append_range(product.factors, theirs.factors);
      if (llvm::MulOverflow(mine.scale, theirs.scale, product.scale) ||
          !result.add(std::move(product)))
        return std::nullopt;
    }
  return result;
}

std::optional<ScalarTerm> tessera::divideTerms(const ScalarTerm &term, const ScalarTerm &divisor) {
  if (divisor.scale == 0 || (divisor.scale == -1 && term.scale == INT64_MIN) ||
      term.scale % divisor.scale != 0)
    return std::nullopt;
  ScalarTerm quotient{term.scale / divisor.scale, term.factors};
  for (const ScalarFactor &factor : divisor.factors) {
    auto *found = llvm::find(quotient.factors, factor);
    if (found == quotient.factors.end())
      return std::nullopt;
    quotient.factors.erase(found);
  }
  return quotient;
}

std::optional<ScalarPolynomial> ScalarPolynomial::dividedBy(const ScalarPolynomial &divisor) const {
  if (divisor.terms.size() != 1)
    return std::nullopt;
  ScalarPolynomial result;
  for (const ScalarTerm &term : terms) {
    std::optional<ScalarTerm> quotient = divideTerms(term, divisor.terms.front());
    if (!quotient || !result.add(*quotient))
      return std::nullopt;
  }
  return result;
}

std::pair<ScalarPolynomial, ScalarPolynomial>
ScalarPolynomial::partition(llvm::function_ref<bool(const ScalarFactor &)> isOfKind) const {
  std::pair<ScalarPolynomial, ScalarPolynomial> result;
  for (const ScalarTerm &term : terms)
    (llvm::all_of(term.factors, isOfKind) ? result.first : result.second).terms.push_back(term);
  return result;
}
