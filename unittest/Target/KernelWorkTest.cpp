// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/KernelWork.h"

#include "tessera/Machine/LaunchRates.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace tessera;

namespace {

KernelSkeleton count(const std::string &body,
                     const std::string &arguments = "ptr addrspace(1) %p") {
  LLVMContext context;
  SMDiagnostic error;
  std::string text = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
define ptx_kernel void @k()" +
                     arguments + ") {\n" + body + "}\n";
  std::unique_ptr<Module> module = parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  return module ? countWork(*module->getFunction("k"), *GPUMachine::find("sm_90a"),
                            [](unsigned) -> int64_t { return 16384; })
                : KernelSkeleton();
}

/// A load of `type` by each lane, `stride` bytes apart.
ResourceUse load(int stride, const std::string &type, const std::string &space) {
  return count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%o = mul i32 %t, " +
                   std::to_string(stride) + "\n%a = getelementptr i8, ptr addrspace(" + space +
                   ") %p, i32 %o\n%x = load " + type + ", ptr addrspace(" + space +
                   ") %a\nret void\n",
               "ptr addrspace(" + space + ") %p")
      .blocks[0]
      .work;
}

TEST(KernelWorkTest, AccessesMoveSectors) {
  EXPECT_EQ(load(4, "float", "1")[Resource::Read], 128);
  EXPECT_EQ(load(4, "float", "1")[Resource::Global], 1);
  EXPECT_EQ(load(16, "<4 x float>", "1")[Resource::Read], 512);
  // Each lane has a sector of its own, and a line.
  EXPECT_EQ(load(4096, "float", "1")[Resource::Read], 32 * 32);
  EXPECT_EQ(load(4096, "float", "1")[Resource::Global], 32);
  EXPECT_EQ(load(0, "float", "1")[Resource::Read], 32);
}

TEST(KernelWorkTest, LoadsOfABlockShareSectors) {
  // Pairs of numbers: the second load finds the sectors of the first one, and looks them up again.
  auto read = [](const std::string &between) {
    KernelSkeleton skeleton = count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%o = shl i32 "
                                    "%t, 3\n%a = getelementptr i8, ptr "
                                    "addrspace(1) %p, i32 %o\n%b = getelementptr i8, ptr "
                                    "addrspace(1) %a, i32 4\n%x = load float, "
                                    "ptr addrspace(1) %a\n" +
                                    between + "%y = load float, ptr addrspace(1) %b\nret void\n");
    ResourceUse all;
    for (const SkeletonBlock &block : skeleton.blocks)
      all.add(block.work);
    EXPECT_EQ(all[Resource::Global], 4);
    EXPECT_EQ(all[Resource::Requests] * 128, all[Resource::Read]);
    return all[Resource::Read];
  };
  EXPECT_EQ(read(""), 256);
  EXPECT_EQ(read("br label %next\nnext:\n"), 512);
}

TEST(KernelWorkTest, QuotientsOfNeighboursShareSectors) {
  // Number i of a patch of 14 columns lies in row i / 14 of a picture with %w columns. A thread has
  // two neighbours, so the second load finds the sectors of the first one.
  auto read = [](const std::string &divisor) {
    return count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%i = shl i32 %t, 1\n%j = or "
                 "disjoint i32 %i, 1\n%q = udiv i32 %i, 14\n%c = urem i32 %i, 14\n%r = mul i32 "
                 "%q, %w\n%o = add i32 %r, %c\n%a = getelementptr i16, ptr addrspace(1) %p, i32 "
                 "%o\n%x = load i16, ptr addrspace(1) %a\n%u = udiv i32 %j, " +
                     divisor + "\n%d = urem i32 %j, " + divisor +
                     "\n%s = mul i32 %u, %w\n%v = add i32 %s, %d\n%b = getelementptr i16, ptr "
                     "addrspace(1) %p, i32 %v\n%y = load i16, ptr addrspace(1) %b\nret void\n",
                 "ptr addrspace(1) %p, i32 %w")
        .blocks[0]
        .work[Resource::Read];
  };
  EXPECT_EQ(read("14"), 5 * 32); // five rows
  EXPECT_EQ(read("12"), (5 + 6) * 32);
}

TEST(KernelWorkTest, MasksOfAccessesAreWalked) {
  // A predicated load of a thread's number below %n, and one from number 1 on.
  auto walk = [](const std::string &compare) {
    KernelSkeleton skeleton = count(
        "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%m = icmp " + compare +
            "\n%a = getelementptr float, ptr addrspace(1) %p, i32 %t\n%x = call i32 asm sideeffect "
            "\"@$3 ld.global.b32 $0, [$2];\", \"=r,0,l,b\"(i32 0, ptr addrspace(1) %a, i1 %m)\n"
            "ret void\n",
        "ptr addrspace(1) %p, i32 %n");
    LaunchSizes sizes{{1, 1, 1}, 128, {std::nullopt, 40}};
    return skeleton.walk(sizes).use[Resource::Global];
  };
  EXPECT_EQ(walk("slt i32 %t, %n"), 2); // two of four warps have numbers below 40
  EXPECT_EQ(walk("sgt i32 %n, %t"), 2);
  EXPECT_EQ(walk("sgt i32 %t, 0"), 4); // the first lane's mask says nothing of the others
}

TEST(KernelWorkTest, LanesStoreAtPlacesOfTheirOwn) {
  auto countStored = [](int stride, const std::string &store) {
    return count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%o = mul i32 %t, " +
                     std::to_string(stride) + "\n%a = getelementptr i8, ptr addrspace(1) %p, i32 " +
                     "%o\n" + store + "\nret void\n",
                 "ptr addrspace(1) %p")
        .blocks[0]
        .stored;
  };
  using Stored = std::map<int, double>;
  EXPECT_EQ(countStored(4, "store i32 1, ptr addrspace(1) %a"), (Stored{{0, 128}}));
  EXPECT_EQ(countStored(16, "store i16 1, ptr addrspace(1) %a"), (Stored{{0, 64}}));
  // All lanes store the same number, or add to many.
  EXPECT_EQ(countStored(0, "store i32 1, ptr addrspace(1) %a"), Stored());
  EXPECT_EQ(countStored(4, "%x = atomicrmw add ptr addrspace(1) %a, i32 1 monotonic"), Stored());
  EXPECT_EQ(countStored(4, "%x = load i32, ptr addrspace(1) %a"), Stored());
}

TEST(KernelWorkTest, AddressesDependOnPrograms) {
  auto read = [](const std::string &offset, int argument = 0) {
    return count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                 "%b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
                 "%bq = getelementptr i32, ptr addrspace(1) %q, i32 %b\n"
                 "%o = " +
                     offset +
                     "\n%a = getelementptr float, ptr addrspace(1) %p, i32 %o\n"
                     "%x = load float, ptr addrspace(1) %a\nret void\n",
                 "ptr addrspace(1) %p, ptr addrspace(1) %q")
        .blocks[0]
        .reads[argument];
  };
  EXPECT_EQ(read("add i32 %t, 0").axes, ArrayRead::kThreads);
  EXPECT_EQ(read("add i32 %t, 0").bytes, 128);
  EXPECT_EQ(read("add i32 %t, %b").axes, ArrayRead::kThreads | 1);
  // All warps load the same number: 4 bytes, although a sector moves.
  EXPECT_EQ(read("add i32 %b, 0").axes, 1u);
  EXPECT_EQ(read("add i32 %b, 0").shared, 4);
  EXPECT_EQ(read("add i32 %b, 0").bytes, 0);
  // A loaded index differs where its own address does.
  EXPECT_EQ(read("load i32, ptr addrspace(1) %q").axes, 0u);
  EXPECT_EQ(read("load i32, ptr addrspace(1) %bq").axes, 1u);
  EXPECT_EQ(read("load i32, ptr addrspace(1) %bq", 1).shared, 4);
  // The place of a program in another order: a quotient along the second axis, a remainder along
  // the first one. Other divisors mix both.
  std::string order = "add i32 %b, 0\n%c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()\n"
                      "%n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()\n%r = mul i32 %c, %n\n"
                      "%i = add i32 %r, %b\n%s = xor i32 %i, 1\n";
  auto readAt = [&](const std::string &place) {
    return read(order + place + "\n%e = getelementptr float, ptr addrspace(1) %q, i32 %z\n" +
                    "%y = load float, ptr addrspace(1) %e",
                1)
        .axes;
  };
  EXPECT_EQ(readAt("%z = udiv i32 %s, %n"), 2u);
  EXPECT_EQ(readAt("%z = urem i32 %s, %n"), 1u);
  EXPECT_EQ(readAt("%d = udiv i32 %s, %n\n%m = mul i32 %d, %n\n%z = sub i32 %s, %m"), 1u);
  EXPECT_EQ(readAt("%z = udiv i32 %s, 4"), 3u);
}

TEST(KernelWorkTest, LanesHandAddressesOn) {
  KernelSkeleton skeleton = count(R"(
  %b = ptrtoint ptr addrspace(1) %p to i64
  %h = lshr i64 %b, 32
  %low = trunc i64 %b to i32
  %high = trunc i64 %h to i32
  %l = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %low, i32 3, i32 31)
  %u = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %high, i32 3, i32 31)
  %lz = zext i32 %l to i64
  %uz = zext i32 %u to i64
  %us = shl i64 %uz, 32
  %a = or i64 %us, %lz
  %c = inttoptr i64 %a to ptr addrspace(1)
  %x = load float, ptr addrspace(1) %c
  ret void
)");
  EXPECT_EQ(skeleton.blocks[0].traffic.count(0), 1u);
  EXPECT_EQ(skeleton.blocks[0].traffic.count(-1), 0u);
}

TEST(KernelWorkTest, ProductsOfNarrowNumbersAreOneInstruction) {
  auto getIssue = [](const std::string &number, const std::string &rest) {
    return count("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%w = load i64, ptr addrspace(1) "
                 "%p\n%z = zext i32 %t to i64\n%m = mul i64 " +
                 number + ", 3528531795\n" + rest + "store i64 %m, ptr addrspace(1) %p\nret void\n")
        .blocks[0]
        .work[Resource::Issue];
  };
  EXPECT_EQ(getIssue("%w", "") - getIssue("%z", ""), 2);
  // The upper half is a register, and a shift by another number is two instructions.
  EXPECT_EQ(getIssue("%z", "%h = lshr i64 %m, 32\n"), getIssue("%z", ""));
  EXPECT_EQ(getIssue("%z", "%h = lshr i64 %m, 7\n"), getIssue("%z", "") + 2);
}

TEST(KernelWorkTest, LoadedNumbersAreRarelyEqual) {
  auto guess = [](const std::string &predicate) {
    return count(
               "%x = load i64, ptr addrspace(1) %p\n%c = icmp " + predicate +
                   " i64 %x, -100\nbr i1 %c, label %a, label %b\na:\nstore i64 1, ptr addrspace(1) "
                   "%p\nbr label %b\nb:\nret void\n",
               "ptr addrspace(1) %p")
        .blocks[0]
        .guess;
  };
  EXPECT_EQ(guess("eq"), 1);
  EXPECT_EQ(guess("ne"), 0);
  EXPECT_EQ(guess("slt"), 0);
}

TEST(KernelWorkTest, UnknownBodiesRun) {
  auto guess = [](const std::string &branch, const std::string &body) {
    return count("%x = load i32, ptr addrspace(1) %p\n%c = icmp sgt i32 %x, 7\nbr i1 %c, " +
                 branch + "\nbody:\nstore i32 1, ptr addrspace(1) %p\n" + body +
                 "\nend:\nret void\n")
        .blocks[0]
        .guess;
  };
  EXPECT_EQ(guess("label %body, label %end", "br label %end"), 0);
  EXPECT_EQ(guess("label %end, label %body", "br label %end"), 1);
}

TEST(KernelWorkTest, LoopsOverSegmentsAreSkipped) {
  // 16 segments with loaded lengths. An iteration reads 128 bytes of an array with 512.
  KernelSkeleton skeleton = count(
      "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%o = shl i32 %t, 2\n%b = getelementptr i8, "
      "ptr "
      "addrspace(1) %q, i32 %o\nbr label %outer\nouter:\n%i = phi i32 [ 0, %0 ], [ %k, %latch ]\n"
      "%a = getelementptr i32, ptr addrspace(1) %p, i32 %i\n%n = load i32, ptr addrspace(1) %a\n"
      "%g = icmp sgt i32 %n, 0\nbr i1 %g, label %inner, label %latch\ninner:\n%j = phi i32 [ 0, "
      "%outer ], [ %l, %inner ]\n%x = load float, ptr addrspace(1) %b\n%l = add i32 %j, 1\n%c = "
      "icmp "
      "slt i32 %l, %n\nbr i1 %c, label %inner, label %latch\nlatch:\n%k = add i32 %i, 1\n%d = icmp "
      "slt "
      "i32 %k, 16\nbr i1 %d, label %outer, label %end\nend:\nret void\n",
      "ptr addrspace(1) %p, ptr addrspace(1) %q");
  LaunchSizes sizes;
  sizes.threads = 32;
  sizes.arguments = {std::nullopt, std::nullopt};
  sizes.arrayBytes = {64, 512};
  EXPECT_EQ(skeleton.walk(sizes).visits[2], 4);
  sizes.arrayBytes = {64, 16 * 3 * 128};
  EXPECT_EQ(skeleton.walk(sizes).visits[2], 16 * 3);
}

TEST(KernelWorkTest, OrdersByBitsAreKnown) {
  // 31 - the leading zeros of the number of programs is its logarithm.
  KernelSkeleton skeleton = count(
      "%n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()\n%z = call i32 @llvm.ctlz.i32(i32 %n, "
      "i1 true)\n%s = sub i32 31, %z\n%b = call i32 @llvm.ctpop.i32(i32 %n)\n%m = add i32 %s, "
      "%b\nbr label %loop\nloop:\n%i = phi i32 [ 0, %0 ], [ %j, %loop ]\n%j = add i32 %i, 1\n"
      "%c = icmp slt i32 %j, %m\nbr i1 %c, label %loop, label %end\nend:\nret void\n");
  LaunchSizes sizes;
  sizes.grid = {96, 1, 1};
  sizes.threads = 32;
  ProgramWork work = skeleton.walk(sizes);
  EXPECT_TRUE(work.isCertain);
  EXPECT_NEAR(work.visits[1], 6 + 2, 1e-9);
}

TEST(KernelWorkTest, BankConflictsAreWavefronts) {
  EXPECT_EQ(load(4, "float", "3")[Resource::Shared], 1);
  EXPECT_EQ(load(0, "float", "3")[Resource::Shared], 1);
  EXPECT_EQ(load(8, "float", "3")[Resource::Shared], 2);
  EXPECT_EQ(load(128, "float", "3")[Resource::Shared], 32);
  EXPECT_EQ(load(132, "float", "3")[Resource::Shared], 1);
  EXPECT_EQ(load(16, "<4 x float>", "3")[Resource::Shared], 4);
}

TEST(KernelWorkTest, LoopsOfArguments) {
  KernelSkeleton skeleton = count(R"(
entry:
  %first = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %step = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  br label %loop
loop:
  %i = phi i32 [%first, %entry], [%next, %loop]
  %s = phi float [0.0, %entry], [%e, %loop]
  %e = call float @llvm.nvvm.ex2.approx.ftz.f(float %s)
  %next = add i32 %i, %step
  %c = icmp slt i32 %next, %n
  br i1 %c, label %loop, label %end
end:
  store float %e, ptr addrspace(1) %p
  ret void
)",
                                  "ptr addrspace(1) %p, i32 %n");
  ProgramWork work = skeleton.walk({{10, 1, 1}, 64, {std::nullopt, 1000}});
  EXPECT_TRUE(work.isCertain);
  EXPECT_NEAR(work.use[Resource::Functions], 2 * 100, 1e-9); // of two warps
  EXPECT_GT(work.latency, 100 * 20);
  EXPECT_NEAR(work.traffic[0].second, 2 * 32, 1e-9);
}

TEST(KernelWorkTest, LoopsOfLastIterationsAreRemainders) {
  // A loop up to %middle, and another one up to a loaded end.
  auto getLoop = [](const std::string &step, const std::string &begin) {
    return count(R"(
entry:
  %n = load i32, ptr addrspace(1) %p
  %middle = and i32 %n, -4
  %bound = add i32 %middle, -4
  br label %first
first:
  %i = phi i32 [0, %entry], [%in, %first]
  %in = add i32 %i, )" +
                 step + R"(
  %c = icmp slt i32 %i, %bound
  br i1 %c, label %first, label %between
between:
  br label %second
second:
  %j = phi i32 [)" +
                 begin + R"(, %between], [%j1, %second]
  %j1 = add i32 %j, 1
  %d = icmp slt i32 %j1, %n
  br i1 %d, label %second, label %end
end:
  ret void
)")
        .blocks;
  };
  using Loop = SkeletonBlock::Loop;
  EXPECT_EQ(getLoop("4", "%middle")[1].loop, Loop::Guessed);
  EXPECT_EQ(getLoop("4", "%middle")[3].loop, Loop::Remainder);
  // Two halves of the iterations, and the same ones twice.
  EXPECT_EQ(getLoop("1", "%middle")[3].loop, Loop::Guessed);
  EXPECT_EQ(getLoop("4", "0")[3].loop, Loop::Guessed);
}

TEST(KernelWorkTest, WarpsTakeTheirOwnBranches) {
  KernelSkeleton skeleton = count(R"(
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %t, 32
  br i1 %c, label %one, label %end
one:
  call void asm sideeffect "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0}, $1, $2, p, 1, 1, 0, 0;", "f,l,l"(float 0.0, i64 0, i64 0)
  br label %end
end:
  ret void
)");
  ProgramWork work = skeleton.walk({{1, 1, 1}, 128, {}});
  // A quarter of 64 * 128 * 16 multiply-adds, at 2048 in a cycle.
  EXPECT_EQ(work.use[Resource::Tensor], 16);
}

TEST(KernelWorkTest, DotsOfOneText) {
  auto get = [](const std::string &dots, const std::string &operands) {
    return count("call void asm sideeffect \"" + dots + "\", \"" + operands +
                 "(float 0.0, i64 0, i32 0)\nret void\n")
        .walk({{1, 1, 1}, 128, {}});
  };
  const std::string dot = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 ";
  std::string inMemory = dot + "{$0}, $1, $1, p, 1, 1, 0, 0;";
  auto one = get(inMemory, "f,l,r\""), two = get(inMemory + "\\0A" + inMemory, "f,l,r\"");
  EXPECT_EQ(two.use[Resource::Tensor], 2 * one.use[Resource::Tensor]);
  EXPECT_EQ(two.use[Resource::Shared], 2 * one.use[Resource::Shared]);
  EXPECT_GE(two.latency, one.latency + 64); // the second adds to the first one's results
  auto others = get(inMemory + "\\0A" + dot + "{$2}, $1, $1, p, 1, 1, 0, 0;", "f,l,r\"");
  EXPECT_LT(others.latency, one.latency + 8); // these are only issued behind it
  auto words = get(dot + "{$0}, {$2, $2, $2, $2}, $1, p, 1, 1, 0;", "f,l,r\"");
  EXPECT_LT(words.use[Resource::Shared], one.use[Resource::Shared]);
}

TEST(KernelWorkTest, BarriersOrderAndLoadsOverlap) {
  auto latency = [](const std::string &between) {
    return count("%a = getelementptr i8, ptr addrspace(1) %p, i32 4096\n"
                 "%x = load float, ptr addrspace(1) %p\n%u = fadd float %x, 1.0\n" +
                 between +
                 "%y = load float, ptr addrspace(1) %a\n%v = fadd float %u, %y\n"
                 "store float %v, ptr addrspace(1) %p\nret void\n")
        .blocks[0]
        .latency;
  };
  double memory = LaunchRates::get(*GPUMachine::find("sm_90a")).latencies.memory;
  EXPECT_LT(latency(""), 1.2 * memory);
  EXPECT_GT(latency("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"), 2 * memory);
}

TEST(KernelWorkTest, LoadsForOtherBlocksArePending) {
  KernelSkeleton skeleton = count(R"(
  %x = load float, ptr addrspace(1) %p
  br label %next
next:
  %y = fadd float %x, 1.0
  store float %y, ptr addrspace(1) %p
  ret void
)");
  EXPECT_LT(skeleton.blocks[0].latency, 50);
  EXPECT_GT(skeleton.blocks[0].pending, 400);
  EXPECT_TRUE(skeleton.blocks[1].waitsForPending);
  EXPECT_GT(skeleton.walk({{1, 1, 1}, 32, {}}).latency, 400);
}

} // namespace
