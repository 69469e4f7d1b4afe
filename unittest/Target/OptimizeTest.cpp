// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

#include <string>
#include <utility>

using namespace tessera;

namespace {

#if defined(__x86_64__)
/// Two strips of an iteration, loaded before and stored after a branch.
constexpr const char *kTwoStrips = R"(
define void @f(ptr %p, ptr %q, i64 %n, i1 %c) {
entry:
  br label %iteration
iteration:
  %i = phi i64 [ 0, %entry ], [ %next, %last ]
  %j = add i64 %i, 16
  %a = getelementptr float, ptr %p, i64 %i
  %b = getelementptr float, ptr %p, i64 %j
  %x = load <16 x float>, ptr %a, align 4
  %y = load <16 x float>, ptr %b, align 4
  %d = getelementptr float, ptr %q, i64 %i
  %e = getelementptr float, ptr %q, i64 %j
  br i1 %c, label %streamed, label %plain
streamed:
  store <16 x float> %x, ptr %d, align 64, !nontemporal !0
  store <16 x float> %y, ptr %e, align 64, !nontemporal !0
  br label %last
plain:
  store <16 x float> %x, ptr %d, align 4
  store <16 x float> %y, ptr %e, align 4
  br label %last
last:
  %next = add nuw nsw i64 %i, 32
  %go = icmp ult i64 %next, %n
  br i1 %go, label %iteration, label %end
end:
  ret void
}
!0 = !{i32 1}
)";

TEST(OptimizeTest, StripsOfAnIterationAreConstantOffsetsOfOneRegister) {
  HostTarget target = HostTarget::get("x86-64-v4");
  auto machine = target.createTargetMachine();
  llvm::LLVMContext context;
  auto module = parseLLVMIR(kTwoStrips, "f.ll", context);
  setTarget(*module, *machine, target.cpu, target.features, 512);
  optimize(*module, *machine, OptimizationLevel::Lite);
  std::string assembly = emitAssembly(*module, *machine);
  for (const char *strip : {"vmovups\t64(%rdi,", "vmovntps\t%zmm0, 64(%rsi,"})
    EXPECT_NE(assembly.find(strip), std::string::npos) << strip << " is not in\n" << assembly;
  for (const char *extra : {"\torq\t", "\tleaq\t"})
    EXPECT_EQ(assembly.find(extra), std::string::npos) << extra << " is in\n" << assembly;
}

/// As many gathers of 16 16-bit elements, with two addresses to choose from for each.
std::string makeGathers(int count) {
  std::string text = "define void @f(ptr %q, <16 x ptr> %a, <16 x ptr> %b, <16 x i1> %m) {\n";
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i), pointers = i % 2 ? "%a" : "%b";
    std::string mask = i % 4 < 2 ? "%m" : "splat (i1 true)";
    text += "%x" + n + " = call <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr> align 2 " +
            pointers + ", <16 x i1> " + mask + ", <16 x i16> zeroinitializer)\n%q" + n +
            " = getelementptr i8, ptr %q, i64 " + std::to_string(32 * i) + "\nstore <16 x i16> %x" +
            n + ", ptr %q" + n + "\n";
  }
  return text + "ret void\n}\n"
                "declare <16 x i16> @llvm.masked.gather.v16i16.v16p0(<16 x ptr>, <16 x i1>, "
                "<16 x i16>)\n";
}

/// How many functions gather, and how many calls there are of them.
std::pair<size_t, size_t> countOutlined(int gathers, llvm::StringRef cpu) {
  HostTarget target = HostTarget::get(cpu);
  auto machine = target.createTargetMachine();
  llvm::LLVMContext context;
  auto module = parseLLVMIR(makeGathers(gathers), "f.ll", context);
  setTarget(*module, *machine, target.cpu, target.features, 512);
  outlineLaneAccesses(*module, *machine);
  size_t functions = 0, calls = 0;
  for (llvm::Function &function : *module)
    if (function.getName().starts_with("gather_lanes")) {
      ++functions;
      calls += function.getNumUses();
    }
  std::string assembly = emitAssembly(*module, *machine);
  EXPECT_EQ(llvm::StringRef(assembly).count("callq\tgather_lanes"), calls) << assembly;
  return {functions, calls};
}

TEST(OptimizeTest, ManyAccessesByLanesAreCallsOfOneFunction) {
  using Counts = std::pair<size_t, size_t>;
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    EXPECT_EQ(countOutlined(64, cpu), Counts(0, 0)) << "1024 lanes are written out";
    // With a mask and without.
    EXPECT_EQ(countOutlined(66, cpu), Counts(2, 66));
  }
}
#endif

} // namespace
