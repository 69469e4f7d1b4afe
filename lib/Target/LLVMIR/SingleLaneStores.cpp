// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces masked stores whose constant mask has one lane on.
//
// The x86 code generator of LLVM 22 turns a masked store of truncated integers into a truncating
// store, if the machine has one (AVX-512). If the mask has a single lane on, it then makes a plain
// store of that element. But it takes the element from before the truncation, in its full width,
// and writes past the lane's memory. If this pass makes the plain store before, the code generator
// uses the same instructions and stores the truncated element.

#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using namespace tessera;

/// The only lane that a mask has on; none if there are more or fewer, or it is no constant.
static std::optional<unsigned> getOnlyLane(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    Constant *element = constant->getAggregateElement(lane);
    if (!element)
      return std::nullopt;
    // An undefined lane counts as off.
    if (isa<UndefValue>(element) || element->isNullValue())
      continue;
    if (only)
      return std::nullopt;
    only = lane;
  }
  return only;
}

void tessera::storeSingleLanes(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *masked = dyn_cast<IntrinsicInst>(&instruction);
      if (!masked || masked->getIntrinsicID() != Intrinsic::masked_store)
        continue;
      Value *vector = masked->getArgOperand(0), *pointer = masked->getArgOperand(1);
      std::optional<unsigned> lane = getOnlyLane(masked->getArgOperand(2));
      if (!lane)
        continue;
      IRBuilder<> builder(masked);
      Value *element = builder.CreateExtractElement(vector, uint64_t(*lane));
      Value *place = builder.CreateConstGEP1_64(element->getType(), pointer, *lane);
      uint64_t offset = *lane * module.getDataLayout().getTypeStoreSize(element->getType());
      Align alignment = commonAlignment(masked->getParamAlign(1).valueOrOne(), offset);
      builder.CreateAlignedStore(element, place, alignment);
      masked->eraseFromParent();
    }
}
