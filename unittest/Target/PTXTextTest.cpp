// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/PTXText.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

constexpr const char *kKernel = R"(.version 8.0
.visible .entry k(
)
.reqntid 128
{
	setmaxnreg.inc.sync.aligned.u32 	232;
	// begin inline asm
	mov.u32 %r1, %smid;
	// end inline asm
	setmaxnreg.inc.sync.aligned.u32 240;
	setmaxnreg.dec.sync.aligned.u32 248;
	ret;
}
)";

TEST(PTXText, LoopsThatOnlyLoadNeedRegisters) {
  std::string loop = "$L__BB0_1:\n\tld.global.b32 %r1, [%rd1];\n\tadd.f32 %f1, %f1, %f2;\n";
  std::string back = "\t@%p1 bra \t$L__BB0_1;\n";
  EXPECT_TRUE(needsRegisters(loop + back));
  for (const char *other : {"\tst.global.b32 [%rd1], %r1;\n", "\tbar.sync 0;\n",
                            "\tshfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;\n"})
    EXPECT_FALSE(needsRegisters(loop + other + back));
  EXPECT_TRUE(hasLoops(loop + "\tbar.sync 0;\n" + back));
  EXPECT_FALSE(hasLoops("\t@%p1 bra \t$L__BB0_1;\n" + loop));
  EXPECT_FALSE(needsRegisters("\t@%p1 bra \t$L__BB0_1;\n" + loop)) << "a branch forwards";
  EXPECT_TRUE(needsRegisters("\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n"));
  EXPECT_FALSE(needsRegisters("\tld.global.b32 %r1, [%rd1];\n"));
}

TEST(PTXText, LoadsAreEarlyIfTheirUseIsFar) {
  std::string load = "\t@%p1 ld.global.v2.b32 {%r1, %r12}, [%rd1];\n";
  std::string use = "\tadd.s32 %r3, %r12, %r4;\n", other = "\tadd.s32 %r3, %r1234, %rd1;\n";
  EXPECT_TRUE(hasEarlyLoads(load + other + other + use, 2));
  EXPECT_FALSE(hasEarlyLoads(load + other + "\t.loc 1 8 15\n" + use, 2));
  EXPECT_FALSE(hasEarlyLoads(load + use + other + other + other, 2));
  // A move passes the value on.
  std::string move = "\tmov.b32 {%rs1, %rs2}, %r1;\n", later = "\tadd.f16 %rs3, %rs2, %rs4;\n";
  EXPECT_TRUE(hasEarlyLoads(load + "$L__tmp1:\n" + move + other + later, 2));
  EXPECT_FALSE(hasEarlyLoads(load + move + later + other + other, 2));
  for (const char *end : {"$L__BB0_1:\n", "\t@%p1 bra \t$L__BB0_1;\n", "\tbar.sync 0;\n"})
    EXPECT_FALSE(hasEarlyLoads(load + other + end + other + other + use, 2)) << end;
}

TEST(PTXText, ProgramsMeetAtBarriersOfLoops) {
  std::string begin = "$L__BB0_1:\n\tld.global.b32 %r1, [%rd1];\n", barrier = "\tbar.sync \t0;\n";
  std::string back = "\t@%p1 bra \t$L__BB0_1;\n";
  EXPECT_TRUE(meetsAtBarriers(begin + barrier + back));
  EXPECT_FALSE(meetsAtBarriers(barrier + begin + back + barrier));
  EXPECT_TRUE(meetsAtBarriers(barrier));
  EXPECT_FALSE(meetsAtBarriers(begin + "\tbar.warp.sync \t-1;\n" + back));
}

TEST(PTXText, ProgramsPerSMAreSetWithoutANewLine) {
  std::string ptx = kKernel;
  EXPECT_EQ(getProgramsPerSM(ptx), 0);
  for (int programs : {2, 16, 3}) {
    setProgramsPerSM(ptx, programs);
    EXPECT_EQ(getProgramsPerSM(ptx), programs);
  }
  std::string expected = kKernel;
  expected.replace(expected.find(".reqntid 128"), 12, ".reqntid 128 .minnctapersm 3");
  EXPECT_EQ(ptx, expected);
}

TEST(PTXText, ALimitOfRegistersReplacesTheNumberOfPrograms) {
  std::string ptx = ".entry k()\n.reqntid 128\n.minnctapersm 2\n{\n}\n";
  limitRegisters(ptx, 64);
  EXPECT_EQ(ptx, ".entry k()\n.reqntid 128\n.maxnreg 64\n{\n}\n");
}

TEST(PTXText, RaisedRegistersAreTheMostOfAllWarps) {
  EXPECT_EQ(findRaisedRegisters(kKernel), 240);
  EXPECT_EQ(findRaisedRegisters("setmaxnreg.dec.sync.aligned.u32 40;"), 0);
}

TEST(PTXText, InlineAssemblyIsFoundByItsLine) {
  EXPECT_EQ(findInlineAssembly(kKernel, 8), "mov.u32 %r1, %smid;");
  for (unsigned line : {0, 1, 6, 10, 1000})
    EXPECT_EQ(findInlineAssembly(kKernel, line), std::nullopt) << line;
}

TEST(PTXText, AKernelMayWaitForEarlierOnes) {
  EXPECT_FALSE(waitsForEarlierKernels(kKernel));
  EXPECT_TRUE(waitsForEarlierKernels("	griddepcontrol.wait;\n"));
}

TEST(PTXText, LinesHavePlacesInTheSource) {
  const char *const ptx = R"(.version 8.0
.func helper(
)
{
	.loc	2 3 4
	ret;
}
.visible .entry k(
)
{
	mov.b32 %r1, 1;
	.loc	1 8 15
	add.s32 %r1, %r1, 1;
	.loc	2 30 5, function_name $L__info_string1, inlined_at 1 9 3
	add.s32 %r1, %r1, 2;
}
	.file	1 "/a folder/kernel.py"
	.file	2 "/b.py"
)";
  EXPECT_EQ(findSourcePlace(ptx, 6), "/b.py:3:4");
  EXPECT_EQ(findSourcePlace(ptx, 11), "");
  EXPECT_EQ(findSourcePlace(ptx, 13), "/a folder/kernel.py:8:15");
  EXPECT_EQ(findSourcePlace(ptx, 15), "/b.py:30:5");
  EXPECT_EQ(findSourcePlace(ptx, 1000), "/b.py:30:5");
  EXPECT_EQ(findSourcePlace("", 3), "");
  EXPECT_EQ(findFirstSourcePlace(ptx), "/b.py:3:4");
  EXPECT_EQ(findFirstSourcePlace(kKernel), "");
}

} // namespace
