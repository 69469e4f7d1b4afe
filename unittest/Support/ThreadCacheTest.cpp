// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/ThreadCache.h"

#include "gtest/gtest.h"

#include <set>
#include <thread>

using namespace tessera;

namespace {

/// Each test has its own type, since kept objects are never freed.
template <int test> struct Thing {
  static inline int numMade = 0;
  int number = ++numMade;
};

template <int test> auto take(llvm::StringRef key = "") {
  return ThreadCache<Thing<test>>::take(key, [] { return std::make_unique<Thing<test>>(); });
}

TEST(ThreadCacheTest, WhatIsGivenUpIsTakenAgain) {
  EXPECT_EQ(take<0>()->number, 1);
  EXPECT_EQ(take<0>()->number, 1);
}

TEST(ThreadCacheTest, WhatIsInUseIsNotShared) {
  auto first = take<1>(), second = take<1>();
  EXPECT_NE(first->number, second->number);
}

TEST(ThreadCacheTest, AnotherKeyIsAnotherObject) {
  EXPECT_EQ(take<2>("a")->number, 1);
  EXPECT_EQ(take<2>("b")->number, 2);
  EXPECT_EQ(take<2>("b")->number, 2);
  EXPECT_EQ(take<2>("a")->number, 3);
}

TEST(ThreadCacheTest, AThreadKeepsForItself) {
  take<3>();
  int number = 0;
  std::thread([&] { number = take<3>()->number; }).join();
  EXPECT_EQ(number, 2);
  EXPECT_EQ(take<3>()->number, 1);
}

TEST(ThreadCacheTest, NothingIsKeptForEver) {
  std::set<int> numbers;
  for (int use = 0; use < 1000; ++use)
    numbers.insert(take<4>()->number);
  EXPECT_GT(numbers.size(), 1u);
  EXPECT_LT(numbers.size(), 100u);
}

} // namespace
