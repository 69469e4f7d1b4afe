// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of what loops carry, and sums in which scalars are replaced by what they are computed from.
// The total that a loop adds to a carried value is a product with the iteration's number. So a
// pointer that a loop advances is a sum like any other.

#include "AccessRules.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

/// Deeper than any expression that a person writes; below it calls might not fit the stack.
static constexpr unsigned kMaxLoopDepth = 400;

bool access::isInvariant(const ScalarPolynomial &polynomial, scf::ForOp loop) {
  return llvm::all_of(polynomial.getTerms(), [&](const ScalarTerm &term) {
    return llvm::all_of(term.factors, [&](const ScalarFactor &factor) {
      return loop.isDefinedOutsideOfLoop(factor.value);
    });
  });
}

//===----------------------------------------------------------------------===//
// Carried values
//===----------------------------------------------------------------------===//

bool access::collectAmounts(Value value, Value argument, SmallVectorImpl<Value> &amounts) {
  constexpr size_t kMaxAmounts = 8;
  if (value == argument)
    return true;
  if (amounts.size() == kMaxAmounts)
    return false;
  auto through = [&](Value next, Value amount) {
    amounts.push_back(amount);
    if (collectAmounts(next, argument, amounts))
      return true;
    amounts.pop_back();
    return false;
  };
  if (auto add = value.getDefiningOp<AddPtrOp>())
    return through(add.getPtr(), add.getOffset());
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    return through(add.getLhs(), add.getRhs()) || through(add.getRhs(), add.getLhs());
  return false;
}

Value access::getEndInIteration(scf::ForOp loop) {
  auto choice = loop.getUpperBound().getDefiningOp<arith::SelectOp>();
  return choice && choice.getFalseValue() == loop.getLowerBound() ? choice.getTrueValue()
                                                                  : loop.getUpperBound();
}

/// The induction variable is the lower bound and so many steps.
AccessForm AccessAnalysis::computeInduction(BlockArgument argument, FormKind kind) {
  auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
  const AccessForm &lower = getForm(loop.getLowerBound(), kind),
                   &step = getForm(loop.getStep(), kind);
  AccessForm form = makeOpaque(argument.getType());
  form.divisibility = std::min(lower.divisibility, step.divisibility);
  if (!isWide(argument.getType()) || !lower.uniform || !step.uniform)
    return form;
  std::optional<ScalarPolynomial> moved =
      step.uniform->times(ScalarPolynomial::ofFactor({argument, /*isIteration=*/true}));
  form.uniform = moved ? lower.uniform->plus(*moved) : std::nullopt;
  return form;
}

/// Carried values that start at a known place and advance by equal amounts.
std::optional<ScalarPolynomial> AccessAnalysis::sumOverIterations(scf::ForOp loop,
                                                                  const AccessForm &initial,
                                                                  ArrayRef<Value> amounts,
                                                                  FormKind kind) {
  std::optional<ScalarPolynomial> sum = initial.uniform;
  // The carried value itself is not known yet, nor is what is computed from it.
  Expansions known;
  for (Value amount : amounts) {
    const AccessForm &added = getForm(amount, kind);
    std::optional<ScalarPolynomial> moved =
        sum && added.uniform ? expand(*added.uniform, kind.isExact, known) : std::nullopt;
    if (!moved || !isInvariant(*moved, loop))
      return std::nullopt;
    moved =
        moved->times(ScalarPolynomial::ofFactor({loop.getInductionVar(), /*isIteration=*/true}));
    sum = moved ? sum->plus(*moved) : std::nullopt;
  }
  return sum;
}

/// A carried value to which each iteration adds uniform amounts: its own shape is the initial
/// value's. Anything else that a loop carries is opaque.
AccessForm AccessAnalysis::computeCarried(BlockArgument argument, FormKind kind) {
  auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
  Type type = argument.getType();
  AccessForm unknown = makeOpaque(type);
  if (type.isIntOrIndex())
    unknown.uniform = ScalarPolynomial::ofFactor(argument);
  // The forms of the amounts may depend on this very value.
  getKnown(kind)[argument] = std::make_unique<AccessForm>(unknown);

  Value next = loop.getYieldedValues()[number];
  if (next == argument)
    return getForm(loop.getInitArgs()[number], kind);
  SmallVector<Value> amounts;
  if (!isWide(type) || !collectAmounts(next, argument, amounts))
    return unknown;
  int64_t divisibility = kAnyPower;
  for (Value amount : amounts) {
    const AccessForm &step = getForm(amount, kind);
    if (!step.isUniform())
      return unknown;
    divisibility = std::min(
        divisibility, multiplyPowers(elementDivisibility(step), powerOfTwoDivisor(unitOf(type))));
  }
  AccessForm result = getForm(loop.getInitArgs()[number], kind);
  result.uniform = sumOverIterations(loop, result, amounts, kind);
  result.divisibility = std::min(result.divisibility, divisibility);
  for (int64_t &ofRuns : result.runDivisibility)
    ofRuns = std::min(ofRuns, divisibility);
  return result;
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

ScalarPolynomial AccessAnalysis::expandName(Value name, bool isExact, Expansions &known,
                                            unsigned depth) {
  if (auto it = known.find(name); it != known.end())
    return it->second;
  ScalarPolynomial itself = ScalarPolynomial::ofFactor(name);
  const AccessForm &form = getForm(name, {isExact});
  if (!form.definition || depth == kMaxLoopDepth)
    return itself;
  // A carried value may be computed from itself.
  known[name] = itself;
  ScalarPolynomial result = expand(*form.definition, isExact, known, depth + 1).value_or(itself);
  known[name] = result;
  return result;
}

std::optional<ScalarPolynomial> AccessAnalysis::expand(const ScalarPolynomial &polynomial,
                                                       bool isExact, Expansions &known,
                                                       unsigned depth) {
  std::optional<ScalarPolynomial> sum = ScalarPolynomial();
  for (const ScalarTerm &term : polynomial.getTerms()) {
    std::optional<ScalarPolynomial> product = ScalarPolynomial(term.scale);
    for (const ScalarFactor &factor : term.factors) {
      product =
          product->times(factor.isIteration ? ScalarPolynomial::ofFactor(factor)
                                            : expandName(factor.value, isExact, known, depth));
      if (!product)
        return std::nullopt;
    }
    sum = sum->plus(*product);
    if (!sum)
      return std::nullopt;
  }
  return sum;
}

std::optional<LinearForm> AccessAnalysis::getLinearForm(Value value) {
  const AccessForm &form = getForm(value);
  if (!form.uniform)
    return std::nullopt;
  LinearForm linear;
  linear.base = form.base;
  std::optional<ScalarPolynomial> uniform = expand(*form.uniform, /*isExact=*/false, expansions);
  if (!uniform)
    return std::nullopt;
  linear.uniform = std::move(*uniform);
  for (const ScalarPolynomial &stride : form.strides) {
    std::optional<ScalarPolynomial> expanded = expand(stride, /*isExact=*/false, expansions);
    if (!expanded)
      return std::nullopt;
    linear.strides.push_back(std::move(*expanded));
  }
  return linear;
}
