// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/MemoryReserve.h"

#include "tessera/Support/Cancellation.h"

#include "gtest/gtest.h"

#include <new>
#include <thread>

using namespace tessera;

namespace {

TEST(MemoryReserveTest, IsGivenUpOnce) {
  MemoryReserve reserve;
  MemoryReserveUse use;
  EXPECT_FALSE(isOutOfMemory());
  EXPECT_FALSE(isCancelled());
  EXPECT_TRUE(giveUpMemoryReserve());
  EXPECT_TRUE(isOutOfMemory());
  EXPECT_TRUE(isCancelled());
  EXPECT_THROW(throwIfCancelled(), std::bad_alloc);
  EXPECT_FALSE(giveUpMemoryReserve());
}

TEST(MemoryReserveTest, IsMadeAgainForTheNextUse) {
  MemoryReserve reserve;
  {
    MemoryReserveUse use;
    EXPECT_TRUE(giveUpMemoryReserve());
  }
  MemoryReserveUse use;
  EXPECT_FALSE(isOutOfMemory());
  EXPECT_TRUE(giveUpMemoryReserve());
}

TEST(MemoryReserveTest, IsForThoseWhoUseIt) {
  MemoryReserve reserve;
  EXPECT_FALSE(giveUpMemoryReserve());
  MemoryReserveUse use;
  std::thread([] {
    EXPECT_FALSE(giveUpMemoryReserve());
    EXPECT_FALSE(isOutOfMemory());
  }).join();
  EXPECT_TRUE(giveUpMemoryReserve());
}

TEST(MemoryReserveTest, AllWhoUseItTryAgain) {
  MemoryReserve reserve;
  MemoryReserveUse use;
  std::thread([] {
    MemoryReserveUse other;
    EXPECT_TRUE(giveUpMemoryReserve());
  }).join();
  EXPECT_TRUE(isOutOfMemory());
  EXPECT_TRUE(giveUpMemoryReserve());
  EXPECT_FALSE(giveUpMemoryReserve());
}

TEST(MemoryReserveTest, WithoutOneNothingIsGivenUp) {
  MemoryReserveUse use;
  EXPECT_FALSE(giveUpMemoryReserve());
  EXPECT_FALSE(isOutOfMemory());
}

} // namespace
