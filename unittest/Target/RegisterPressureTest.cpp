// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/RegisterPressure.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace {

int64_t count(const std::string &text) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module = parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  return module ? tessera::countLiveRegisters(*module->getFunction("k")) : -1;
}

/// Loads and stores `count` numbers: all loads first, or one after the other.
std::string copy(int count, bool allFirst) {
  std::string text = "define void @k(ptr addrspace(1) %p) {\n", stores;
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    text += "%a" + n + " = getelementptr float, ptr addrspace(1) %p, i64 " + n + "\n%x" + n +
            " = load float, ptr addrspace(1) %a" + n + "\n";
    std::string store = "store float %x" + n + ", ptr addrspace(1) %a" + n + "\n";
    (allFirst ? stores : text) += store;
  }
  return text + stores + "ret void\n}\n";
}

TEST(RegisterPressure, countsWhatIsHeldOverStores) {
  EXPECT_EQ(count(copy(300, /*allFirst=*/true)), 300);
  EXPECT_EQ(count(copy(300, /*allFirst=*/false)), 1);
}

TEST(RegisterPressure, countsWhatALoopCarries) {
  // Two sums, an index that is no float but a phi, and what is added behind the loop.
  EXPECT_EQ(count(R"(
define void @k(ptr addrspace(1) %p, i32 %n) {
entry:
  %late = load double, ptr addrspace(1) %p
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %s = phi float [0.0, %entry], [%s1, %loop]
  %t = phi float [0.0, %entry], [%t1, %loop]
  %s1 = fadd float %s, 1.0
  %t1 = fadd float %t, 2.0
  %next = add i32 %i, 1
  %c = icmp slt i32 %next, %n
  br i1 %c, label %loop, label %end
end:
  %u = fadd float %s1, %t1
  %w = fpext float %u to double
  %v = fadd double %w, %late
  store double %v, ptr addrspace(1) %p
  ret void
}
)"),
            5);
}

TEST(RegisterPressure, countsWhatIsExtendedAsItWasLoaded) {
  // Over the store, two halves and not two floats.
  EXPECT_EQ(count(R"(
define void @k(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load half, ptr addrspace(1) %p
  %y = load half, ptr addrspace(1) %q
  %u = fpext half %x to float
  %v = fpext half %y to float
  %s = fadd float %u, %v
  store float %s, ptr addrspace(1) %q
  %t = fmul float %u, %v
  store float %t, ptr addrspace(1) %p
  ret void
}
)"),
            2);
}

TEST(RegisterPressure, packsHalves) {
  EXPECT_EQ(count(R"(
define void @k(ptr addrspace(1) %p, i1 %c) {
entry:
  %x = load <4 x half>, ptr addrspace(1) %p
  br i1 %c, label %then, label %end
then:
  store <4 x half> %x, ptr addrspace(1) %p
  br label %end
end:
  ret void
}
)"),
            2);
}

TEST(RegisterPressure, isZeroForNothing) {
  EXPECT_EQ(count("define void @k() {\nret void\n}\n"), 0);
}

} // namespace
