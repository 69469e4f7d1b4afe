// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/Host/Launcher.h"
#include "gtest/gtest.h"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

using namespace tessera::host;

namespace {

/// Counts how often each program ran.
int32_t countPrograms(const Launch *launch, int64_t begin, int64_t end, char *) {
  auto *counts = reinterpret_cast<std::atomic<int> *>(launch->args[0]);
  for (int64_t i = begin; i < end; ++i)
    counts[i].fetch_add(1);
  return 0;
}

void expectEachOnce(const int32_t (&grid)[3], int numThreads) {
  int64_t size = int64_t(1) * grid[0] * grid[1] * grid[2];
  std::vector<std::atomic<int>> counts(size);
  uint64_t args[] = {reinterpret_cast<uint64_t>(counts.data())};
  LaunchableKernel kernel;
  kernel.function = countPrograms;
  LaunchOptions options;
  options.numThreads = numThreads;
  Fault fault;
  // The first launch has no estimate of the time and takes all its threads.
  for (int round = 1; round <= 3; ++round) {
    kernel.nanosecondsPerProgram = round == 2 ? 1e6f : -1.0f;
    EXPECT_TRUE(launch(kernel, grid, args, fault, options));
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(counts[i].load(), round) << "program " << i;
  }
}

TEST(LauncherTest, RunsEachProgramOnce) {
  for (int threads : {0, 1, 2, 3, 16}) {
    expectEachOnce({1, 1, 1}, threads);
    expectEachOnce({2, 1, 1}, threads);
    expectEachOnce({7, 5, 3}, threads);
    expectEachOnce({100003, 1, 1}, threads);
  }
}

/// Notes how long each chunk is, in the order they come.
int32_t noteChunk(const Launch *launch, int64_t begin, int64_t end, char *) {
  reinterpret_cast<std::vector<int64_t> *>(launch->args[0])->push_back(end - begin);
  return 0;
}

TEST(LauncherTest, AFirstChunkThatIsShortTakesItsRestNext) {
  std::vector<int64_t> chunks;
  uint64_t args[] = {reinterpret_cast<uint64_t>(&chunks)};
  LaunchableKernel kernel;
  kernel.function = noteChunk;
  LaunchOptions options;
  options.numThreads = 1;
  options.isInterrupted = [] { return false; };
  Fault fault;
  EXPECT_TRUE(
      launch(kernel, std::initializer_list<int32_t>{1000, 1, 1}.begin(), args, fault, options));
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_LE(chunks[0], 4);
  EXPECT_EQ(chunks[0] + chunks[1], 1000);
}

TEST(LauncherTest, EmptyGridRunsNothing) {
  LaunchableKernel kernel; // No function: calling it would crash.
  Fault fault;
  for (auto grid : {std::vector<int32_t>{0, 1, 1}, {5, 0, 2}, {1, 1, 0}})
    EXPECT_TRUE(launch(kernel, grid.data(), nullptr, fault));
}

int32_t tellCachedBytes(const Launch *launch, int64_t, int64_t, char *) {
  *reinterpret_cast<uint64_t *>(launch->args[0]) = launch->cachedBytes;
  return 0;
}

TEST(LauncherTest, TellsHowMuchTheCachesKeep) {
  uint64_t bytes = 0;
  uint64_t args[] = {reinterpret_cast<uint64_t>(&bytes)};
  LaunchableKernel kernel;
  kernel.function = tellCachedBytes;
  Fault fault;
  EXPECT_TRUE(launch(kernel, std::vector<int32_t>{1, 1, 1}.data(), args, fault));
  EXPECT_GE(bytes, uint64_t(1) << 17);
  EXPECT_LE(bytes, uint64_t(1) << 31);
}

int32_t checkScratch(const Launch *launch, int64_t begin, int64_t end, char *scratch) {
  auto *bad = reinterpret_cast<std::atomic<int> *>(launch->args[0]);
  if (reinterpret_cast<uintptr_t>(scratch) % 64 != 0)
    bad->fetch_add(1);
  // No other thread may write to it meanwhile.
  char mark = static_cast<char>(begin % 127);
  std::memset(scratch, mark, 1000);
  std::this_thread::yield();
  for (int i = 0; i < 1000; ++i)
    if (scratch[i] != mark)
      bad->fetch_add(1);
  return 0;
}

TEST(LauncherTest, ScratchIsAlignedAndPrivate) {
  std::atomic<int> bad{0};
  uint64_t args[] = {reinterpret_cast<uint64_t>(&bad)};
  LaunchableKernel kernel;
  kernel.function = checkScratch;
  kernel.scratchBytes = 1000;
  LaunchOptions options;
  options.numThreads = 4;
  int32_t grid[] = {500, 1, 1};
  Fault fault;
  EXPECT_TRUE(launch(kernel, grid, args, fault, options));
  EXPECT_EQ(bad.load(), 0);
}

TEST(LauncherTest, ScratchThatDoesNotFitIsBadAlloc) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer ends the process where memory is short";
#endif
#endif
  LaunchableKernel kernel;
  kernel.function = checkScratch;
  kernel.scratchBytes = int64_t(1) << 60;
  int32_t grid[] = {4, 1, 1};
  Fault fault;
  EXPECT_THROW(launch(kernel, grid, nullptr, fault), std::bad_alloc);
}

int32_t failAtProgram(const Launch *launch, int64_t begin, int64_t end, char *) {
  auto *ran = reinterpret_cast<std::atomic<int> *>(launch->args[0]);
  for (int64_t i = begin; i < end; ++i) {
    ran->fetch_add(1);
    if (i == 1000) {
      launch->fault->site = 3;
      launch->fault->program[0] = static_cast<int32_t>(i);
      launch->fault->raised = 1;
      return 1;
    }
  }
  return 0;
}

TEST(LauncherTest, FaultStopsTheGrid) {
  std::atomic<int> ran{0};
  uint64_t args[] = {reinterpret_cast<uint64_t>(&ran)};
  LaunchableKernel kernel;
  kernel.function = failAtProgram;
  LaunchOptions options;
  options.numThreads = 2;
  int32_t grid[] = {1000000, 1, 1};
  Fault fault;
  EXPECT_FALSE(launch(kernel, grid, args, fault, options));
  EXPECT_EQ(fault.site, 3);
  EXPECT_EQ(fault.program[0], 1000);
  EXPECT_LT(ran.load(), 1000000);
}

int32_t launchInside(const Launch *outer, int64_t begin, int64_t end, char *) {
  auto *counts = reinterpret_cast<std::atomic<int> *>(outer->args[0]);
  LaunchableKernel kernel;
  kernel.function = countPrograms;
  LaunchOptions options;
  options.numThreads = 4;
  int32_t grid[] = {100, 1, 1};
  Fault fault;
  for (int64_t i = begin; i < end; ++i) {
    uint64_t args[] = {reinterpret_cast<uint64_t>(counts)};
    launch(kernel, grid, args, fault, options);
  }
  return 0;
}

TEST(LauncherTest, NestedLaunchWorks) {
  std::vector<std::atomic<int>> counts(100);
  uint64_t args[] = {reinterpret_cast<uint64_t>(counts.data())};
  LaunchableKernel kernel;
  kernel.function = launchInside;
  LaunchOptions options;
  options.numThreads = 4;
  int32_t grid[] = {50, 1, 1};
  Fault fault;
  EXPECT_TRUE(launch(kernel, grid, args, fault, options));
  for (auto &count : counts)
    EXPECT_EQ(count.load(), 50);
}

/// Writes all of its scratch.
int32_t fillScratch(const Launch *launch, int64_t begin, int64_t end, char *scratch) {
  for (int64_t i = begin; i < end; ++i)
    std::memset(scratch, 1, launch->args[0]);
  return 0;
}

/// The same, after a first program that takes long enough for signals to be looked for.
int32_t fillScratchSlowly(const Launch *launch, int64_t begin, int64_t end, char *scratch) {
  if (begin == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  return fillScratch(launch, begin, end, scratch);
}

/// A signal's handler may be Python code that launches a kernel.
TEST(LauncherTest, AHandlerOfSignalsMayLaunch) {
  static int numLaunched;
  numLaunched = 0;
  for (bool isLarger : {true, false}) {
    LaunchableKernel kernel;
    kernel.function = fillScratchSlowly;
    uint64_t args[] = {uint64_t(isLarger ? 1 << 12 : 1 << 20)};
    kernel.scratchBytes = static_cast<int64_t>(args[0]);
    LaunchOptions options;
    options.numThreads = 1;
    options.isInterrupted = [] {
      LaunchableKernel inner;
      inner.function = fillScratch;
      uint64_t size[] = {1 << 16};
      inner.scratchBytes = static_cast<int64_t>(size[0]);
      Fault fault;
      int32_t grid[] = {1, 1, 1};
      numLaunched += launch(inner, grid, size, fault);
      return false;
    };
    Fault fault;
    int32_t grid[] = {1000, 1, 1};
    EXPECT_TRUE(launch(kernel, grid, args, fault, options));
  }
  EXPECT_GE(numLaunched, 2);
}

TEST(LauncherTest, SeveralThreadsLaunchAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] { expectEachOnce({997, 1, 1}, 3); });
  for (std::thread &thread : threads)
    thread.join();
}

// How this thread computes with floats, and the bits by which it takes denormals for zero.
#if defined(__x86_64__)
#define TESSERA_CAN_FLUSH
constexpr uint64_t kFlush = 0x8040;
uint64_t getFloatControl() { return __builtin_ia32_stmxcsr(); }
void setFloatControl(uint64_t control) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(control)); }
#elif defined(__aarch64__)
#define TESSERA_CAN_FLUSH
constexpr uint64_t kFlush = uint64_t(1) << 24;
uint64_t getFloatControl() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void setFloatControl(uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
#endif

#ifdef TESSERA_CAN_FLUSH
int32_t halveSmallest(const Launch *launch, int64_t begin, int64_t end, char *) {
  auto *out = reinterpret_cast<volatile float *>(launch->args[0]);
  volatile float smallest = std::numeric_limits<float>::min();
  for (int64_t i = begin; i < end; ++i)
    out[i] = smallest * 0.5f;
  return 0;
}

TEST(LauncherTest, DenormalsAreKeptWhateverTheCallerHasSet) {
  uint64_t before = getFloatControl();
  setFloatControl(before | kFlush);
  float out[64] = {};
  uint64_t args[] = {reinterpret_cast<uint64_t>(out)};
  LaunchableKernel kernel;
  kernel.function = halveSmallest;
  int32_t grid[] = {64, 1, 1};
  Fault fault;
  launch(kernel, grid, args, fault);
  uint64_t after = getFloatControl();
  setFloatControl(before);
  EXPECT_EQ(after & kFlush, kFlush);
  for (float value : out) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    EXPECT_EQ(bits, 0x00400000u);
  }
}
#endif

} // namespace
