// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// The function as a text, after the pass.
std::string pack(const std::string &text) {
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("k");
  packCarriedWords(function);
  EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  std::string result;
  llvm::raw_string_ostream(result) << function;
  return result;
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// A loop that carries two halves of a word, which each iteration loads. `use` is in the loop.
std::string makeLoop(const std::string &use) {
  return R"(
define ptx_kernel void @k(ptr %p, i32 %first) {
entry:
  %low = trunc i32 %first to i16
  %a0 = bitcast i16 %low to half
  %shifted = lshr i32 %first, 16
  %high = trunc i32 %shifted to i16
  %b0 = bitcast i16 %high to half
  br label %loop
loop:
  %a = phi half [ %a0, %entry ], [ %a1, %loop ]
  %b = phi half [ %b0, %entry ], [ %b1, %loop ]
  %u = insertelement <2 x half> poison, half %a, i64 0
  %v = insertelement <2 x half> %u, half %b, i64 1
  store <2 x half> %v, ptr %p
  %x = load volatile <2 x half>, ptr %p
  %a1 = extractelement <2 x half> %x, i64 0
  %b1 = extractelement <2 x half> %x, i64 1
)" + use +
         R"(
  %more = icmp eq i32 %first, 0
  br i1 %more, label %loop, label %end
end:
  ret void
}
)";
}

TEST(CarriedWords, ALoopCarriesTheWordOfItsElements) {
  std::string packed = pack(makeLoop(""));
  EXPECT_FALSE(contains(packed, "phi half")) << packed;
  // Both words exist: they are not made of their elements again.
  EXPECT_TRUE(contains(packed, "phi i32 [ %first, %entry ]")) << packed;
  EXPECT_FALSE(contains(packed, "insertelement")) << packed;
  EXPECT_FALSE(contains(packed, "extractelement")) << packed;
  EXPECT_FALSE(contains(packed, "trunc")) << packed;
}

TEST(CarriedWords, OtherElementsAreMadeIntoAWordBeforeTheLoop) {
  std::string text = makeLoop("");
  std::string first = "%a0 = bitcast i16 %low to half";
  text.replace(text.find(first), first.size(), "%a0 = sitofp i32 %first to half");
  std::string packed = pack(text);
  EXPECT_FALSE(contains(packed, "phi half")) << packed;
  size_t loop = packed.find("\nloop:");
  EXPECT_TRUE(contains(packed.substr(0, loop), "insertelement")) << packed;
  EXPECT_FALSE(contains(packed.substr(loop), "insertelement")) << packed;
}

TEST(CarriedWords, ElementsWithOtherUsesStay) {
  std::string packed = pack(makeLoop("  store half %a, ptr %p"));
  EXPECT_TRUE(contains(packed, "phi half")) << packed;
  EXPECT_FALSE(contains(packed, "phi i32")) << packed;
}

TEST(CarriedWords, BytesAndSwitches) {
  // Both edges of the switch carry the same elements, the second of which is a constant.
  std::string packed = pack(R"(
define ptx_kernel <4 x i8> @k(i32 %w, i8 %y) {
entry:
  switch i32 %w, label %other [ i32 0, label %join
                                i32 1, label %join ]
other:
  br label %join
join:
  %a = phi i8 [ %y, %entry ], [ %y, %entry ], [ 1, %other ]
  %b = phi i8 [ 7, %entry ], [ 7, %entry ], [ 2, %other ]
  %c = phi i8 [ %y, %entry ], [ %y, %entry ], [ 3, %other ]
  %d = phi i8 [ %y, %entry ], [ %y, %entry ], [ 4, %other ]
  %0 = insertelement <4 x i8> poison, i8 %a, i64 0
  %1 = insertelement <4 x i8> %0, i8 %b, i64 1
  %2 = insertelement <4 x i8> %1, i8 %c, i64 2
  %3 = insertelement <4 x i8> %2, i8 %d, i64 3
  ret <4 x i8> %3
}
)");
  EXPECT_FALSE(contains(packed, "phi i8")) << packed;
  EXPECT_TRUE(contains(packed, "[ 67305985, %other ]")) << packed;
}

} // namespace
