// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/Host/ThreadPool.h"
#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tessera::host;

namespace {

struct Meeting {
  std::atomic<int> present{0};
  std::atomic<bool> haveMet{false};
};

/// Returns when two threads are in it, or after a second.
void meet(void *context, int) {
  auto *meeting = static_cast<Meeting *>(context);
  meeting->present.fetch_add(1);
  auto start = std::chrono::steady_clock::now();
  while (meeting->present.load() < 2 &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(1))
    std::this_thread::yield();
  if (meeting->present.load() >= 2)
    meeting->haveMet = true;
}

TEST(ThreadPoolTest, ThreadsRunAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Meeting meeting;
    runOnThreads(2, meet, &meeting);
    EXPECT_TRUE(meeting.haveMet);
  }
}

TEST(ThreadPoolTest, WakesSleepingWorkers) {
  Meeting first, second;
  runOnThreads(2, meet, &first);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  runOnThreads(2, meet, &second);
  EXPECT_TRUE(second.haveMet);
}

TEST(ThreadPoolTest, NumbersAreDistinct) {
  struct Seen {
    std::atomic<int> counts[8] = {};
  } seen;
  for (int round = 0; round < 200; ++round)
    runOnThreads(
        8, [](void *context, int thread) { static_cast<Seen *>(context)->counts[thread]++; },
        &seen);
  EXPECT_EQ(seen.counts[0].load(), 200);
  for (auto &count : seen.counts)
    EXPECT_LE(count.load(), 200);
}

TEST(ThreadPoolTest, NothingRunsAfterTheReturn) {
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> running{0};
    runOnThreads(
        3,
        [](void *context, int) {
          auto *running = static_cast<std::atomic<int> *>(context);
          running->fetch_add(1);
          running->fetch_sub(1);
        },
        &running);
    ASSERT_EQ(running.load(), 0);
  }
}

TEST(ThreadPoolTest, WorksInAForkedChild) {
  Meeting before;
  runOnThreads(2, meet, &before);
  for (int round = 0; round < 20; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Meeting meeting;
      runOnThreads(2, meet, &meeting);
      _exit(meeting.haveMet ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

TEST(ThreadPoolTest, EnvironmentSaysHowMany) {
  ASSERT_GE(getNumAvailableCPUs(), 1);
  unsetenv("TESSERA_NUM_THREADS");
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(getDefaultNumThreads(), 3);
  setenv("TESSERA_NUM_THREADS", "5", 1);
  EXPECT_EQ(getDefaultNumThreads(), 5);
  setenv("TESSERA_NUM_THREADS", "many", 1);
  EXPECT_EQ(getDefaultNumThreads(), 3);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(getDefaultNumThreads(), getNumAvailableCPUs());
  unsetenv("TESSERA_NUM_THREADS");
}

} // namespace
