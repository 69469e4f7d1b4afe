// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads from an OpenMP runtime that the process has loaded. A program of its own,
// since a runtime once borrowed stays.

#include "tessera/Runtime/Host/ThreadPool.h"
#include "gtest/gtest.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tessera::host;

namespace {

struct Team {
  std::atomic<int> numCalls{0};
  std::atomic<unsigned> threads{0}; ///< a bit for each thread's number
};

void join(void *context, int thread) {
  auto *team = static_cast<Team *>(context);
  team->numCalls.fetch_add(1);
  team->threads.fetch_or(1u << thread);
}

TEST(BorrowedOpenMPTest, IsUsedOnceItIsLoaded) {
  unsetenv("TESSERA_NUM_THREADS");
  EXPECT_STREQ(getThreadProvider(), "pool");
  void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << "no libgomp.so.1 on this machine";
  EXPECT_STREQ(getThreadProvider(), "openmp");

  Team team;
  runOnThreads(3, join, &team);
  EXPECT_EQ(team.numCalls.load(), 3);
  EXPECT_EQ(team.threads.load(), 7u);

  // The program's setting of OpenMP applies to launches.
  auto setNumThreads = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  ASSERT_NE(setNumThreads, nullptr);
  setNumThreads(5);
  EXPECT_EQ(getDefaultNumThreads(), 5);

  // A launch inside a launch is serial.
  Team inner;
  runOnThreads(2, [](void *context, int) { runOnThreads(2, join, context); }, &inner);
  EXPECT_GE(inner.numCalls.load(), 1);
  EXPECT_LE(inner.numCalls.load(), 2);
  EXPECT_EQ(inner.threads.load(), 1u);

  // libgomp does not survive a fork; the child has a pool of its own.
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    Team own;
    runOnThreads(2, join, &own);
    _exit(own.numCalls.load() >= 1 && std::strcmp(getThreadProvider(), "pool") == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

} // namespace
