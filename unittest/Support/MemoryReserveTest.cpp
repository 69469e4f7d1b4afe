// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/MemoryReserve.h"

#include "tessera/Support/Cancellation.h"

#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

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

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
struct HasDestructor {
  volatile int value = 1;
  ~HasDestructor() { value = 0; }
};

/// glibc ends a process that has no memory to note the destructor of what a thread has for itself.
TEST(MemoryReserveTest, IsGivenUpForDestructorsOfThreads) {
  pid_t child = fork();
  if (child == 0) {
    MemoryReserve reserve;
    MemoryReserveUse use;
    std::ifstream statm("/proc/self/statm");
    size_t pages = 0;
    statm >> pages;
    rlimit asMuchAsIsUsed = {pages * sysconf(_SC_PAGESIZE), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &asMuchAsIsUsed);
    for (size_t bytes = size_t(1) << 20; bytes >= 16; bytes /= 2)
      while (void *volatile taken = std::malloc(bytes))
        (void)taken;
    thread_local HasDestructor made;
    _exit(made.value == 1 && isOutOfMemory() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

/// A thread that reads the reserve while another one releases it gets either the reserve or none.
TEST(MemoryReserveTest, ThreadsComeAndGo) {
  std::atomic<bool> isOver{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!isOver)
        MemoryReserveUse use;
    });
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) {
    {
      MemoryReserve reserve;
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  isOver = true;
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
