// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/F2Matrix.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace tessera;

namespace {

f2::Columns randomColumns(std::mt19937 &rng, unsigned count, unsigned bits) {
  f2::Columns columns;
  for (unsigned i = 0; i < count; ++i)
    columns.push_back(rng() & ((1u << bits) - 1));
  return columns;
}

TEST(F2Matrix, RankIsTheLogOfTheNumberOfValues) {
  std::mt19937 rng(1);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    f2::Columns columns = randomColumns(rng, rng() % 7, 1 + rng() % 6);
    std::set<uint64_t> image;
    for (uint64_t x = 0; x < uint64_t(1) << columns.size(); ++x)
      image.insert(f2::apply(columns, x));
    EXPECT_EQ(uint64_t(1) << f2::rank(columns), image.size());
  }
}

TEST(F2Matrix, SolveFindsAnXExactlyIfThereIsOne) {
  std::mt19937 rng(2);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 1 + rng() % 6;
    f2::Columns columns = randomColumns(rng, rng() % 7, bits);
    for (uint64_t target = 0; target < uint64_t(1) << bits; ++target) {
      bool exists = false;
      for (uint64_t x = 0; x < uint64_t(1) << columns.size(); ++x)
        exists |= f2::apply(columns, x) == target;
      auto x = f2::solve(columns, target);
      ASSERT_EQ(x.has_value(), exists);
      if (x) {
        EXPECT_EQ(f2::apply(columns, *x), target);
      }
    }
  }
}

TEST(F2Matrix, SolutionsPreferEarlierColumns) {
  // Column 2 repeats column 0, so it is never used.
  EXPECT_EQ(f2::solve({1, 2, 1}, 3), uint64_t(0b011));
}

TEST(F2Matrix, KernelIsWhatMapsToZero) {
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    f2::Columns columns = randomColumns(rng, rng() % 8, 1 + rng() % 5);
    f2::Columns kernel = f2::kernel(columns);
    EXPECT_EQ(kernel.size() + f2::rank(columns), columns.size());
    EXPECT_EQ(f2::rank(kernel), kernel.size());
    for (uint64_t x : kernel)
      EXPECT_EQ(f2::apply(columns, x), 0u);
  }
}

TEST(F2Matrix, InverseUndoes) {
  std::mt19937 rng(4);
  int invertible = 0;
  for (int i = 0; i < 5000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 1 + rng() % 8;
    f2::Columns columns = randomColumns(rng, bits, bits);
    auto inverse = f2::inverse(columns, bits);
    ASSERT_EQ(inverse.has_value(), f2::rank(columns) == bits);
    if (!inverse)
      continue;
    ++invertible;
    for (uint64_t x = 0; x < uint64_t(1) << bits; ++x)
      EXPECT_EQ(f2::apply(*inverse, f2::apply(columns, x)), x);
  }
  EXPECT_GT(invertible, 500);
}

TEST(F2Matrix, ExtendCompletesABasis) {
  std::mt19937 rng(5);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    unsigned bits = 1 + rng() % 8;
    f2::Columns base = randomColumns(rng, rng() % 6, bits);
    f2::Columns more = f2::extend(base, f2::unitVectors(bits));
    EXPECT_EQ(f2::rank(base) + more.size(), bits);
    f2::Columns all = base;
    all.append(more.begin(), more.end());
    EXPECT_EQ(f2::rank(all), bits);
  }
}

} // namespace
