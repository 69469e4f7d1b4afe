// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/ScheduleCost.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

int64_t getCycles(IterationWork work, IterationOverlap overlap) {
  return ScheduleCost::get(work, overlap, *GPUMachine::find("sm_90a")).cycles;
}

TEST(ScheduleCostTest, ProgramsHideEachOthersWork) {
  IterationWork work{/*dots=*/600, /*arithmetic=*/400};
  EXPECT_EQ(getCycles(work, {/*programs=*/1}), 1000);
  EXPECT_EQ(getCycles(work, {/*programs=*/2}), 800);
  EXPECT_EQ(getCycles(work, {/*programs=*/3}), 734); // rounded up
  EXPECT_EQ(getCycles(work, {/*programs=*/1, /*hasDotBeside=*/true}), 867);
  // Three programs do as well as two that each have a dot beside.
  EXPECT_EQ(getCycles(work, {/*programs=*/2, /*hasDotBeside=*/true}), 734);
}

TEST(ScheduleCostTest, NothingIsLessThanTheBusiestTakes) {
  for (int64_t dots : {0, 1, 100, 5000})
    for (int64_t arithmetic : {0, 1, 100, 5000})
      for (int64_t bytes : {0, 1000, 1000000}) {
        IterationWork work{dots, arithmetic, bytes};
        int64_t last = INT64_MAX;
        for (int64_t programs : {1, 2, 3, 8}) {
          const GPUMachine &machine = *GPUMachine::find("sm_90a");
          ScheduleCost cost = ScheduleCost::get(work, {programs}, machine);
          EXPECT_EQ(cost.copies, bytes / machine.getBusyL2Bandwidth());
          EXPECT_GE(cost.cycles, std::max({dots, arithmetic, cost.copies}));
          EXPECT_LE(cost.cycles, last) << "more programs cost more";
          EXPECT_LE(getCycles(work, {programs, /*hasDotBeside=*/true}), cost.cycles);
          last = cost.cycles;
        }
      }
}

TEST(ScheduleCostTest, CopiesThatComeLateBound) {
  const GPUMachine &machine = *GPUMachine::find("sm_90a");
  IterationWork work{/*dots=*/100};
  int64_t latency = machine.getBusyMemoryLatency();
  ScheduleCost late = ScheduleCost::get(work, {1, false, /*ahead=*/1}, machine);
  EXPECT_EQ(late.cycles, latency);
  EXPECT_EQ(late.bound, ScheduleBound::Latency);
  EXPECT_EQ(getCycles(work, {2, false, /*ahead=*/3}), latency / 6);
  EXPECT_EQ(getCycles(work, {1, false, /*ahead=*/0}), latency);
  EXPECT_EQ(getCycles(work, {1, false, 1, /*isMulticast=*/true}), machine.getMulticastLatency());
  ScheduleCost inTime = ScheduleCost::get(work, {1, false, /*ahead=*/1000}, machine);
  EXPECT_EQ(inTime.cycles, 100);
  EXPECT_EQ(inTime.bound, ScheduleBound::Dots);
}

TEST(ScheduleCostTest, SaysWhatTakesLongest) {
  const GPUMachine &machine = *GPUMachine::find("sm_90a");
  auto getBound = [&](IterationWork work) { return ScheduleCost::get(work, {}, machine).bound; };
  EXPECT_EQ(getBound({5, 4, 0}), ScheduleBound::Dots);
  EXPECT_EQ(getBound({5, 5, 0}), ScheduleBound::Dots);
  EXPECT_EQ(getBound({4, 5, 0}), ScheduleBound::Arithmetic);
  EXPECT_EQ(getBound({4, 5, 1 << 20}), ScheduleBound::Copies);
}

/// All rows of the table can be asked, those without wgmma, too.
TEST(ScheduleCostTest, EveryMachineHasTheRates) {
  for (const GPUMachine &machine : GPUMachine::getTable()) {
    ScheduleCost cost = ScheduleCost::get({10, 20, 1 << 16}, {1, false, 2}, machine);
    EXPECT_GT(cost.copies, 0) << machine.name.str();
    EXPECT_GT(cost.cycles, 0) << machine.name.str();
  }
}

} // namespace
