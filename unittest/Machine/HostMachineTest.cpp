// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/HostMachine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace tessera;

namespace {

/// The row of a CPU that has just these features.
HostMachine findRow(StringRef arch, StringRef cpu, StringRef present) {
  return HostMachine::find(arch, cpu, [&](StringRef asked) {
    SmallVector<StringRef> parts, all;
    asked.split(parts, ',');
    present.split(all, ',');
    return all_of(parts, [&](StringRef part) { return is_contained(all, part); });
  });
}

constexpr StringLiteral kAVX512 = "+avx2,+avx512f,+avx512vl,+avx512bw,+avx512dq,+f16c";

TEST(HostMachineTest, EveryRowIsComplete) {
  for (const HostMachine &row : HostMachine::getTable()) {
    SCOPED_TRACE(row.name.str());
    EXPECT_GE(row.vectorBits, 128u);
    EXPECT_GE(row.vectorRegisters, 8u);
    EXPECT_GT(row.multiplyAdds, 0);
    EXPECT_GT(row.loads, 0);
    EXPECT_GT(row.latency, 0u);
    EXPECT_GT(row.gatherCost, 0);
    EXPECT_GT(row.runCost, 0);
    EXPECT_GE(row.strips, 1u);
    for (const CacheLevel &level : {row.l1, row.l2})
      EXPECT_EQ(level.bytes % (level.ways * HostMachine::kLineBytes), 0);
    EXPECT_GT(row.l2.bytes, row.l1.bytes);
    for (const DotInstruction *dot : {row.int8Dot, row.bf16Dot})
      if (dot)
        EXPECT_FALSE(dot->getIntrinsic(row.vectorBits).empty());
  }
}

TEST(HostMachineTest, PrintedAndParsedAgain) {
  for (const HostMachine &row : HostMachine::getTable()) {
    std::optional<HostMachine> parsed = HostMachine::parse(row.print());
    ASSERT_TRUE(parsed) << row.print();
    EXPECT_EQ(parsed->print(), row.print());
    EXPECT_EQ(parsed->int8Dot, row.int8Dot);
    EXPECT_EQ(parsed->bf16Dot, row.bf16Dot);
    EXPECT_EQ(parsed->int8AMX, row.int8AMX);
    EXPECT_EQ(parsed->bf16AMX, row.bf16AMX);
  }
  EXPECT_FALSE(HostMachine::parse("avx3"));
  EXPECT_FALSE(HostMachine::parse("avx2+bf16-dot")); // it has none
  EXPECT_FALSE(HostMachine::parse("avx2+"));
  EXPECT_EQ(HostMachine::parse("znver5")->bf16Dot, nullptr); // unless it is asked for
}

TEST(HostMachineTest, MeasuredFigures) {
  HostMachine row = *HostMachine::parse("znver4+int8-dot+bf16-dot+f16");
  std::optional<HostMachine> made = row.withFigures("bits=256+int8-dot=no+l1=16384/4");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->print(), "znver4+bf16-dot+f16+bits=256+l1=16384/4");
  std::optional<HostMachine> parsed = HostMachine::parse(made->print());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->print(), made->print());
  EXPECT_EQ(parsed->l1.bytes, 16384);
  EXPECT_EQ(parsed->vectorBits, 256u);
  for (llvm::StringRef wrong : {"", "bits=96", "bits=1024", "l1=7/1", "l2=1048576", "speed=2"})
    EXPECT_FALSE(row.withFigures(wrong)) << wrong.str();
}

TEST(HostMachineTest, NoRowIsHiddenByAnEarlierOne) {
  StringSet<> seen;
  for (const HostMachine &row : HostMachine::getTable()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name.str();
    SmallVector<StringRef> cpus;
    row.cpus.split(cpus, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef cpu : cpus)
      EXPECT_EQ(findRow(row.arch, cpu, row.features).name, row.name) << cpu.str();
  }
}

TEST(HostMachineTest, WhatACPULacksIsTakenOut) {
  EXPECT_EQ(findRow("x86", "znver5", kAVX512.str() + ",+avx512vnni,+avx512bf16").print(),
            "znver5+int8-dot+bf16-dot+f16");
  EXPECT_EQ(findRow("x86", "znver5", kAVX512).print(), "znver5+f16");
  EXPECT_EQ(findRow("x86", "znver5", "+avx2").print(), "avx2");
  EXPECT_EQ(findRow("x86", "emeraldrapids", kAVX512.str() + ",+avx512vnni,+avx512bf16").print(),
            "sapphirerapids+int8-dot+f16+bf16");
  std::string amx = kAVX512.str() + ",+avx512vnni,+amx-tile,+amx-bf16";
  EXPECT_EQ(findRow("x86", "emeraldrapids", amx).print(), "sapphirerapids+int8-dot+bf16-amx+f16");
  EXPECT_EQ(findRow("x86", "emeraldrapids", amx + ",+amx-int8").print(),
            "sapphirerapids+int8-dot+int8-amx+bf16-amx+f16");
  // Without permission for the registers, the CPU has none.
  EXPECT_EQ(findRow("x86", "emeraldrapids", kAVX512.str() + ",+amx-bf16").print(),
            "sapphirerapids+f16");
  EXPECT_EQ(findRow("x86", "cascadelake", kAVX512).print(), "cascadelake+f16");
  EXPECT_EQ(findRow("x86", "alderlake", "+avx2,+avxvnni,+f16c").print(), "alderlake+int8-dot+f16");
  EXPECT_EQ(findRow("x86", "x86-64-v3", "+avx2,+f16c").print(), "avx2+f16");
  EXPECT_EQ(findRow("x86", "diamondrapids", kAVX512).print(), "avx512+f16");
  EXPECT_EQ(findRow("x86", "x86-64", "").print(), "sse2");
}

TEST(HostMachineTest, OtherArchitectures) {
  EXPECT_EQ(findRow("aarch64", "neoverse-n1", "+neon,+dotprod").print(),
            "neoverse-n1+int8-dot+f16");
  EXPECT_EQ(findRow("aarch64", "neoverse-v1", "+neon,+dotprod,+bf16").print(),
            "neoverse-v1+int8-dot+bf16-dot+f16");
  EXPECT_EQ(findRow("aarch64", "neoverse-v1", "+neon,+dotprod,+bf16,+i8mm").print(),
            "neoverse-v1+int8-dot+bf16-dot+int8-matrix+f16");
  EXPECT_EQ(findRow("aarch64", "", "+neon,+i8mm").print(), "neon+int8-matrix+f16");
  EXPECT_FALSE(HostMachine::parse("znver5+int8-matrix")); // it has none
  EXPECT_EQ(HostMachine::parse("neon+int8-dot")->int8Matrix, nullptr);
  EXPECT_EQ(findRow("aarch64", "cortex-a72", "+neon").print(), "neon+f16");
  EXPECT_EQ(findRow("", "rv64", "").print(), "any");
}

} // namespace
