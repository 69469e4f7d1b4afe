// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// Loads and stores under so many masks, in two blocks. One more store comes before the last mask.
std::string makeCopies(unsigned masks, bool hasLoads) {
  std::string first, loads, stores;
  for (unsigned i = 0; i < masks; ++i) {
    std::string n = std::to_string(i);
    if (i + 1 == masks)
      first += "  call void asm sideeffect \"@$0 st.global.b32 [$1], 1;\", \"b,l\"(i1 %p0, ptr "
               "addrspace(1) %a)\n";
    first += "  %p" + n + " = icmp slt i32 %row, " + n + "\n";
    if (hasLoads)
      loads += "  %x" + n +
               " = call i32 asm sideeffect \"@$1 ld.global.b32 $0, [$2];\", "
               "\"=r,b,l\"(i1 %p" +
               n + ", ptr addrspace(1) %a)\n";
    stores += "  call void asm sideeffect \"@$0 st.global.b32 [$1], 0;\", \"b,l\"(i1 %p" + n +
              ", ptr addrspace(1) %a)\n";
  }
  return "define ptx_kernel void @k(ptr addrspace(1) %a, i32 %row, i1 %c) {\n" + first + loads +
         "  br i1 %c, label %use, label %end\nuse:\n" + stores +
         "  br label %end\nend:\n  ret void\n}\n";
}

/// By store, in order: the number of the mask's bit, or -1 for the mask itself. Checks that a bit
/// is that of the store's mask.
std::vector<int> findBits(const std::string &text, unsigned &words) {
  using namespace llvm::PatternMatch;
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("k");
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  packHeldMasks(function, loops, dominators);
  EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  std::vector<int> bits;
  words = 0;
  for (llvm::Instruction &op : llvm::instructions(function)) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(&op);
    if (!call)
      continue;
    llvm::StringRef assembly =
        llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString();
    words += assembly.contains("mov.b32");
    if (!assembly.contains("st.global"))
      continue;
    uint64_t bit = 0;
    bool isBit = match(
        call->getArgOperand(0),
        m_SpecificICmp(llvm::CmpInst::ICMP_NE, m_And(m_Value(), m_ConstantInt(bit)), m_Zero()));
    bits.push_back(isBit ? static_cast<int>(llvm::Log2_64(bit)) : -1);
  }
  return bits;
}

TEST(HeldMasks, StoresTakeManyMasksFromBits) {
  unsigned words;
  // The first store comes before all masks are known.
  EXPECT_EQ(findBits(makeCopies(7, /*hasLoads=*/true), words),
            std::vector<int>({-1, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(words, 1u);
  std::vector<int> bits = findBits(makeCopies(34, /*hasLoads=*/true), words);
  EXPECT_EQ(words, 2u);
  EXPECT_EQ(bits[32], 31);
  EXPECT_EQ(bits[33], 0);
}

TEST(HeldMasks, MasksFromBeforeALoopStay) {
  std::string text = makeCopies(9, /*hasLoads=*/true);
  std::string end = "  br label %end\nend:";
  text.replace(text.find(end), end.size(), "  br i1 %c, label %use, label %end\nend:");
  unsigned words;
  EXPECT_EQ(findBits(text, words), std::vector<int>(10, -1));
  EXPECT_EQ(words, 0u);
}

TEST(HeldMasks, FewMasksAndThoseOfStoresStay) {
  unsigned words;
  EXPECT_EQ(findBits(makeCopies(5, /*hasLoads=*/true), words), std::vector<int>(6, -1));
  EXPECT_EQ(findBits(makeCopies(9, /*hasLoads=*/false), words), std::vector<int>(10, -1));
}

} // namespace
