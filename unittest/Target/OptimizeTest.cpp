// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

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
#endif

} // namespace
