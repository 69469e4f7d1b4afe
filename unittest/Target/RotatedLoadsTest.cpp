// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// A loop that uses in each iteration what was loaded so many iterations before. The address
/// depends on the thread's number or not.
std::string loopAhead(unsigned ahead, bool isOfThread, const std::string &body = "") {
  std::string carried, before;
  for (unsigned i = 0; i < ahead; ++i) {
    std::string n = std::to_string(i);
    std::string next = i + 1 == ahead ? "%x" : "%v" + std::to_string(i + 1);
    before += "  %s" + n + " = load float, ptr addrspace(1) %p\n";
    carried += "  %v" + n + " = phi float [ %s" + n + ", %entry ], [ " + next + ", %loop ]\n";
  }
  std::string used = ahead == 0 ? "%x" : "%v0";
  return "define ptx_kernel void @k(ptr addrspace(1) %p, i32 %n) {\nentry:\n"
         "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" +
         before + "  br label %loop\nloop:\n  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n" +
         carried + "  %at = add i32 %i, " + (isOfThread ? "%t" : "7") +
         "\n  %q = getelementptr float, ptr addrspace(1) %p, i32 %at\n"
         "  %x = load float, ptr addrspace(1) %q\n" +
         body + "  call void asm sideeffect \"// $0\", \"f\"(float " + used +
         ") #0\n  %next = add i32 %i, 1\n  %more = icmp slt i32 %next, %n\n"
         "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n"
         "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\nattributes #0 = { convergent }\n";
}

struct Unrolled {
  unsigned copies = 0; ///< of the loop
  unsigned moves = 0;  ///< values that the loop carries from one that it carries
  unsigned hidden = 0; ///< loads from addresses with a zero of the lane
};

Unrolled unroll(const std::string &text) {
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  auto machine = NVPTXTarget::get("sm_90a").createTargetMachine();
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  llvm::PassBuilder builder(machine.get());
  llvm::FunctionAnalysisManager analyses;
  builder.registerFunctionAnalyses(analyses);
  llvm::Function &function = *module->getFunction("k");
  unrollRotatedLoads(function, analyses);
  EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  Unrolled result;
  for (llvm::Instruction &op : llvm::instructions(function)) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(&op);
    result.copies += call && call->isInlineAsm();
    result.hidden +=
        call && call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_lanemask_lt;
    if (auto *phi = llvm::dyn_cast<llvm::PHINode>(&op); phi && phi->getNumIncomingValues() == 2)
      for (llvm::Value *value : phi->incoming_values()) {
        auto *from = llvm::dyn_cast<llvm::PHINode>(value);
        result.moves += from && from->getParent() == phi->getParent();
      }
  }
  return result;
}

TEST(RotatedLoads, LoopsAreUnrolledUntilNoLoadedValueMoves) {
  for (unsigned ahead : {2, 3, 4}) {
    Unrolled result = unroll(loopAhead(ahead, /*isOfThread=*/true));
    EXPECT_EQ(result.copies, ahead + 1);
    EXPECT_EQ(result.moves, 0u) << ahead;
    EXPECT_EQ(result.hidden, 0u);
  }
  // If all lanes load one value, ptxas must not know.
  EXPECT_EQ(unroll(loopAhead(3, /*isOfThread=*/false)).hidden, 1u);
}

TEST(RotatedLoads, OtherLoopsStay) {
  // An iteration ahead is one iteration's time with a move, too.
  for (unsigned ahead : {0, 1, 5}) {
    Unrolled result = unroll(loopAhead(ahead, /*isOfThread=*/false));
    EXPECT_EQ(result.copies, 1u) << ahead;
    EXPECT_EQ(result.hidden, 0u) << ahead;
  }
  std::string computed = loopAhead(2, /*isOfThread=*/true);
  computed.replace(computed.find("load float, ptr addrspace(1) %q"),
                   std::string("load float, ptr addrspace(1) %q").size(), "sitofp i32 %i to float");
  EXPECT_EQ(unroll(computed).copies, 1u);
  std::string large;
  for (unsigned i = 0; i < 1100; ++i)
    large += "  %l" + std::to_string(i) + " = fadd float %x, 1.0\n";
  EXPECT_EQ(unroll(loopAhead(2, /*isOfThread=*/true, large)).copies, 1u);
}

} // namespace
