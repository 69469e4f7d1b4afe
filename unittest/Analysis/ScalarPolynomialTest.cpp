// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares polynomials with their values for random factors.

#include "tessera/Analysis/Access/ScalarPolynomial.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace tessera;

namespace {

struct ScalarPolynomialTest : testing::Test {
  ScalarPolynomialTest() {
    Builder builder(&context);
    for (int64_t number : {3, -7, 11}) {
      factors.push_back(block.addArgument(builder.getI32Type(), builder.getUnknownLoc()));
      values[factors.back()] = number;
    }
  }

  int64_t evaluate(const ScalarPolynomial &polynomial) {
    int64_t sum = 0;
    for (const ScalarTerm &term : polynomial.getTerms()) {
      int64_t product = term.scale;
      for (const ScalarFactor &factor : term.factors)
        product *= values.lookup(factor.value);
      sum += product;
    }
    return sum;
  }

  ScalarPolynomial make(std::mt19937 &random, unsigned depth) {
    if (depth == 0) {
      if (random() % 2)
        return static_cast<int64_t>(random() % 7) - 3;
      return ScalarPolynomial::ofFactor(factors[random() % factors.size()]);
    }
    ScalarPolynomial l = make(random, depth - 1), r = make(random, depth - 1);
    std::optional<ScalarPolynomial> result = random() % 3 == 0   ? l.times(r)
                                             : random() % 2 == 0 ? l.plus(r)
                                                                 : l.minus(r);
    return result.value_or(l);
  }

  MLIRContext context;
  Block block;
  SmallVector<Value> factors;
  DenseMap<Value, int64_t> values;
};

TEST_F(ScalarPolynomialTest, ComputesAsNumbersDo) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    ScalarPolynomial a = make(random, trial % 4), b = make(random, 2);
    int64_t l = evaluate(a), r = evaluate(b);
    if (auto sum = a.plus(b))
      EXPECT_EQ(evaluate(*sum), l + r);
    if (auto difference = a.minus(b)) {
      EXPECT_EQ(evaluate(*difference), l - r);
      EXPECT_EQ(difference->isZero(), a == b);
    }
    if (auto product = a.times(b)) {
      EXPECT_EQ(evaluate(*product), l * r);
      if (b.getTerms().size() == 1) {
        auto quotient = product->dividedBy(b);
        ASSERT_TRUE(quotient);
        EXPECT_TRUE(*quotient == a);
      }
    }
    auto [some, others] =
        a.partition([&](const ScalarFactor &factor) { return factor.value == factors[0]; });
    EXPECT_EQ(evaluate(some) + evaluate(others), l);
    if (std::optional<int64_t> constant = a.getConstant())
      EXPECT_EQ(*constant, l);
  }
}

TEST_F(ScalarPolynomialTest, TermsAreAlikeInAnyOrder) {
  auto x = ScalarPolynomial::ofFactor(factors[0]), y = ScalarPolynomial::ofFactor(factors[1]);
  EXPECT_TRUE(*x.times(y) == *y.times(x));
  EXPECT_TRUE(x.times(y)->minus(*y.times(x))->isZero());
  EXPECT_FALSE(*x.times(x) == *x.times(y));
}

TEST_F(ScalarPolynomialTest, DivisionHasNoRemainder) {
  auto x = ScalarPolynomial::ofFactor(factors[0]), y = ScalarPolynomial::ofFactor(factors[1]);
  EXPECT_FALSE(x.dividedBy(y));
  EXPECT_FALSE(x.dividedBy(2));
  EXPECT_FALSE(x.dividedBy(0));
  EXPECT_FALSE(x.dividedBy(*x.plus(y)));
}

TEST_F(ScalarPolynomialTest, GivesUpBeyond64Bits) {
  ScalarPolynomial large = int64_t(1) << 62;
  EXPECT_FALSE(large.times(4));
  EXPECT_FALSE(large.plus(large));
  EXPECT_FALSE(ScalarPolynomial(INT64_MIN).minus(1));
}

} // namespace
