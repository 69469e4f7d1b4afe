// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/GPUMachine.h"

#include "gtest/gtest.h"

using namespace llvm;
using namespace tessera;

namespace {

const GPUMachine &get(StringRef name) {
  const GPUMachine *machine = GPUMachine::find(name);
  EXPECT_NE(machine, nullptr) << name.str();
  return machine ? *machine : GPUMachine::getDefault();
}

TEST(GPUMachineTest, EveryRowIsComplete) {
  unsigned last = 0;
  for (const GPUMachine &row : GPUMachine::getTable()) {
    SCOPED_TRACE(row.name.str());
    EXPECT_EQ(GPUMachine::find(row.name), &row);
    EXPECT_GE(row.capability, last);
    last = row.capability;
    EXPECT_EQ(row.isSpecific, row.name.ends_with("a"));
    EXPECT_GE(row.ptxVersion, 90u);
    EXPECT_EQ(row.maxThreadsOfSM % GPUMachine::kMaxThreads % 512, 0u);
    EXPECT_GE(row.maxThreadsOfSM, GPUMachine::kMaxThreads);
    EXPECT_GE(row.maxBlocksOfSM, 16u);
    EXPECT_GE(row.numSMs, 16u);
    EXPECT_GE(row.l2Bytes, 4 << 20);
    // A block can have all of an SM's shared memory except the driver's part.
    EXPECT_EQ(row.sharedBytes + GPUMachine::kReservedSharedBytes, row.sharedBytesOfSM);
    EXPECT_GT(row.warpMMARate, 0);
    EXPECT_GT(row.warpMMARateF64, 0);
    EXPECT_GT(row.f32Rate, 0);
    EXPECT_GT(row.f16Rate, 0);
    EXPECT_GT(row.functionRate, 0);
    EXPECT_GT(row.issueRate, 0);
    EXPECT_GT(row.sharedBandwidth, 0);
    EXPECT_LT(row.sharedLatency, row.l2Latency);
    EXPECT_LT(row.l2Latency, row.memoryLatency);
    for (double cost :
         {row.costs.barrier, row.costs.exchange, row.costs.shuffle, row.costs.meetWarps,
          row.costs.meetLanes, row.costs.atomic, row.costs.access, row.costs.sector, row.costs.line,
          row.costs.globalAtomic, row.costs.atomicSector, row.costs.function})
      EXPECT_GT(cost, 0);
    // Warpgroup dots require TMA for their operands, and transfer of registers.
    if (row.hasWarpgroupMMA())
      EXPECT_TRUE(row.hasTMA && row.hasRegisterTransfer && row.isSpecific);
    EXPECT_EQ(row.maxClusterSize > 1, row.hasTMA);
    if (row.hasTensorMapReplace || row.hasRegisterTransfer || row.hasTensorMemory)
      EXPECT_TRUE(row.isSpecific);
  }
}

TEST(GPUMachineTest, UnknownNames) {
  for (StringRef name : {"", "sm_", "sm_75", "sm_81", "sm_90b", "sm_80a", "SM_80", "sm_900", "90a",
                         "sm_90a ", "gfx942"})
    EXPECT_EQ(GPUMachine::find(name), nullptr) << name.str();
  EXPECT_EQ(GPUMachine::listNames(), "sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, "
                                     "sm_103a, sm_120 or sm_120a");
  EXPECT_EQ(GPUMachine::getDefault().name, "sm_80");
}

TEST(GPUMachineTest, TheRowOfACapability) {
  auto name = [](unsigned major, unsigned minor) {
    const GPUMachine *machine = GPUMachine::findForCapability(major, minor);
    return machine ? machine->name.str() : "";
  };
  EXPECT_EQ(name(8, 0), "sm_80");
  EXPECT_EQ(name(8, 6), "sm_86");
  EXPECT_EQ(name(8, 7), "sm_87");
  EXPECT_EQ(name(8, 8), "sm_87"); // code of an older one of the generation runs
  EXPECT_EQ(name(8, 9), "sm_89");
  EXPECT_EQ(name(9, 0), "sm_90a");
  EXPECT_EQ(name(10, 0), "sm_100a");
  EXPECT_EQ(name(10, 1), "sm_100"); // code with an "a" runs on that one alone
  EXPECT_EQ(name(10, 3), "sm_103a");
  EXPECT_EQ(name(12, 0), "sm_120a");
  EXPECT_EQ(name(12, 1), "sm_120");
  EXPECT_EQ(name(7, 5), "");
  EXPECT_EQ(name(11, 0), "");
  EXPECT_EQ(name(13, 0), "");
}

TEST(GPUMachineTest, SharedMemory) {
  EXPECT_EQ(get("sm_80").sharedBytes, 163 << 10);
  EXPECT_EQ(get("sm_86").sharedBytes, 99 << 10);
  EXPECT_EQ(get("sm_87").sharedBytes, 163 << 10);
  EXPECT_EQ(get("sm_89").sharedBytes, 99 << 10);
  EXPECT_EQ(get("sm_90a").sharedBytes, 232448);
  EXPECT_EQ(get("sm_100a").sharedBytes, 232448);
  EXPECT_EQ(get("sm_120a").sharedBytes, 99 << 10);
  // Each of two blocks takes a KB for the driver.
  EXPECT_EQ(get("sm_90a").getSharedBytes(1), 232448);
  EXPECT_EQ(get("sm_90a").getSharedBytes(2), 113 << 10);
  EXPECT_EQ(get("sm_90a").getSharedBytes(3), 75 << 10);
  // By registers, by shared memory, and where not even one has room.
  EXPECT_EQ(get("sm_90a").countBlocks(/*threads=*/128, /*registers=*/168, /*bytes=*/1 << 10), 3);
  EXPECT_EQ(get("sm_90a").countBlocks(128, 168, (75 << 10) + 1), 2);
  EXPECT_EQ(get("sm_90a").countBlocks(256, 255, 113 << 10), 1);
  EXPECT_EQ(get("sm_90a").countBlocks(1024, 255, 1 << 20), 1);
}

TEST(GPUMachineTest, Registers) {
  EXPECT_EQ(GPUMachine::kMaxAllocatedRegisters, 248);
  EXPECT_EQ(GPUMachine::getRegisters(32), 248);
  EXPECT_EQ(GPUMachine::getRegisters(256), 248);
  EXPECT_EQ(GPUMachine::getRegisters(384), 168);
  EXPECT_EQ(GPUMachine::getRegisters(1024), 64);
}

TEST(GPUMachineTest, MMAInstructions) {
  const GPUMachine &hopper = get("sm_90a"), &ampere = get("sm_80"), &ada = get("sm_89");
  std::optional<MMAInstruction> half = ampere.findMMA(MMAKind::Warp, MMAElement::F16);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->m, 16);
  EXPECT_EQ(half->n, 8);
  EXPECT_EQ(half->minK, 8);
  EXPECT_EQ(half->k, 16);
  EXPECT_EQ(half->rate, 1024);
  EXPECT_EQ(ampere.findMMA(MMAKind::Warp, MMAElement::TF32)->minK, 4);
  EXPECT_EQ(ampere.findMMA(MMAKind::Warp, MMAElement::I8)->minK, 16);
  EXPECT_EQ(ampere.findMMA(MMAKind::Warp, MMAElement::I8)->rate, 2048);
  EXPECT_EQ(ampere.findMMA(MMAKind::Warp, MMAElement::F64)->m, 8);
  EXPECT_FALSE(ampere.findMMA(MMAKind::Warp, MMAElement::F8));
  EXPECT_EQ(ada.findMMA(MMAKind::Warp, MMAElement::F8)->minK, 32);
  EXPECT_EQ(ada.findMMA(MMAKind::Warp, MMAElement::F8)->rate, 1024);
  EXPECT_TRUE(get("sm_120a").findMMA(MMAKind::Warp, MMAElement::F8));
  // ptxas takes the instruction there, and makes two of f16 of it.
  for (StringRef name : {"sm_90", "sm_90a", "sm_100a"})
    EXPECT_FALSE(get(name).findMMA(MMAKind::Warp, MMAElement::F8)) << name.str();
  EXPECT_FALSE(ampere.findMMA(MMAKind::Warpgroup, MMAElement::F16));

  std::optional<MMAInstruction> wide = hopper.findMMA(MMAKind::Warpgroup, MMAElement::BF16);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->m, 64);
  EXPECT_EQ(wide->maxN, 256);
  EXPECT_EQ(wide->minK, 16);
  EXPECT_EQ(wide->getCycles(64, 256, 16), 128);
  EXPECT_EQ(hopper.findMMA(MMAKind::Warpgroup, MMAElement::F8)->k, 32);
  EXPECT_FALSE(hopper.findMMA(MMAKind::Warpgroup, MMAElement::F64));
  for (StringRef name : {"sm_90", "sm_100a", "sm_103a", "sm_120a"})
    EXPECT_FALSE(get(name).findMMA(MMAKind::Warpgroup, MMAElement::F16)) << name.str();
}

TEST(GPUMachineTest, OnlyWhatHasRunSaysSo) {
  for (const GPUMachine &row : GPUMachine::getTable())
    EXPECT_EQ(row.hasRun, row.name == "sm_90a") << row.name.str();
}

} // namespace
