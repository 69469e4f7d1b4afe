// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/LaunchCost.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

const GPUMachine &hopper() { return *GPUMachine::find("sm_90a"); }

LaunchCost get(const ProgramWork &work, KernelResources kernel, int64_t blocks,
               double memoryBytes = 0) {
  return LaunchCost::get(work, kernel, blocks, memoryBytes, hopper(), LaunchRates::get(hopper()),
                         hopper().numSMs);
}

ProgramWork makeWork(Resource resource, double amount, double latency) {
  ProgramWork work;
  work.use[resource] = amount;
  work.latency = latency;
  return work;
}

TEST(LaunchCostTest, ResidentPrograms) {
  auto count = [](int64_t warps, int64_t registers, int64_t bytes) {
    return KernelResources{warps, registers, bytes}.countResident(hopper());
  };
  EXPECT_EQ(count(1, 32, 0), 32);
  EXPECT_EQ(count(4, 32, 0), 16);
  EXPECT_EQ(count(4, 33, 0), 12); // registers come in steps of eight
  EXPECT_EQ(count(4, 255, 0), 2);
  EXPECT_EQ(count(4, 32, 100 << 10), 2);
  EXPECT_EQ(count(32, 64, 0), 1);
  EXPECT_EQ(count(12, 168, 230528), 1);
}

TEST(LaunchCostTest, TheBusiestResourceBounds) {
  LaunchCost cost = get(makeWork(Resource::Tensor, 1e6, 1000), {8, 128, 0}, 132);
  EXPECT_EQ(cost.bound, "tensor");
  EXPECT_NEAR(cost.microseconds, 1e6 / LaunchRates::get(hopper()).megahertz, 5);
  // Twice as many programs on each SM take twice as long.
  EXPECT_NEAR(get(makeWork(Resource::Tensor, 1e6, 1000), {8, 128, 0}, 264).microseconds,
              2e6 / LaunchRates::get(hopper()).megahertz, 5);
  EXPECT_EQ(get(makeWork(Resource::Issue, 1e6, 1000), {8, 128, 0}, 132).bound, "issue");
  EXPECT_EQ(get(makeWork(Resource::Issue, 10, 1e6), {8, 128, 0}, 132).bound, "latency");
  EXPECT_EQ(get(makeWork(Resource::Issue, 10, 10), {8, 128, 0}, 1).bound, "launch");
  EXPECT_EQ(get(makeWork(Resource::Issue, 10, 10), {8, 128, 0}, 132, 1e9).bound, "memory");
}

TEST(LaunchCostTest, MoreResidentProgramsHideLatency) {
  ProgramWork work = makeWork(Resource::Issue, 4000, 20000);
  double last = 1e30;
  for (int64_t bytes : {200 << 10, 100 << 10, 60 << 10, 30 << 10}) {
    double time = get(work, {4, 64, bytes}, 132 * 64).microseconds;
    EXPECT_LT(time, last);
    last = time;
  }
}

TEST(LaunchCostTest, WarpsOfARingHideNoMore) {
  ProgramWork work = makeWork(Resource::Issue, 20000, 20000);
  auto gain = [&] {
    return get(work, {4, 64, 200 << 10, 0, 3}, 132).microseconds -
           get(work, {16, 64, 200 << 10, 0, 3}, 132).microseconds;
  };
  EXPECT_GT(gain(), 1);
  work.usesMbarriers = true;
  EXPECT_EQ(gain(), 0);
}

TEST(LaunchCostTest, WavesAreWhole) {
  ProgramWork work = makeWork(Resource::Tensor, 50000, 60000);
  KernelResources kernel{8, 255, 200 << 10};
  double one = get(work, kernel, 132).microseconds, more = get(work, kernel, 133).microseconds;
  EXPECT_EQ(get(work, kernel, 1).microseconds, one);
  EXPECT_GT(more, 1.9 * one);
  EXPECT_EQ(get(work, kernel, 264).microseconds, more);
}

TEST(LaunchCostTest, FewStagesWaitForCopies) {
  ProgramWork work = makeWork(Resource::AsyncCopy, 1 << 20, 1000);
  EXPECT_GT(get(work, {4, 64, 32 << 10, 0, 2}, 132).latency,
            1.9 * get(work, {4, 64, 64 << 10, 0, 4}, 132).latency);
}

TEST(LaunchCostTest, RowsThatTheCacheReplacedAreReadAgain) {
  // Each program reads 16 KB twice: 4 programs an SM have 8 MB together, and 32 have 66 MB.
  ProgramWork work = makeWork(Resource::Read, 32 << 10, 1000);
  work.traffic[0] = {32 << 10, 0};
  double bytes = 8192.0 * (16 << 10);
  auto getMemory = [&](int64_t warps) {
    return get(work, {warps, 32, 0}, 8192, bytes).memoryMicroseconds;
  };
  double once = getMemory(1);
  work.reread[0] = 16 << 10;
  EXPECT_DOUBLE_EQ(getMemory(16), once);
  EXPECT_DOUBLE_EQ(getMemory(1), 2 * once);
  EXPECT_GT(getMemory(4), 1.2 * once);
  EXPECT_LT(getMemory(4), 1.8 * once);
}

TEST(LaunchCostTest, SpillsCost) {
  ProgramWork work = makeWork(Resource::Issue, 1000, 1000);
  EXPECT_GT(get(work, {8, 255, 0, /*spillBytes=*/4096}, 1320).microseconds,
            get(work, {8, 255, 0}, 1320).microseconds);
  // Eight warps have 100 iterations of a loop.
  double once = get(work, {8, 255, 0, 4096}, 1320).busy[Resource::Global];
  work.visitsOfBusiest = 8 * 100;
  EXPECT_EQ(get(work, {8, 255, 0, 4096}, 1320).busy[Resource::Global], 50 * once);
}

} // namespace
