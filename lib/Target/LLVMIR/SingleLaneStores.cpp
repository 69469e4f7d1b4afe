// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masked stores of which a constant mask leaves one lane.
//
// The x86 code generator of LLVM 22 makes a masked store of truncated integers one that
// truncates, where the machine has it (AVX-512); then one with a single lane on a store of that
// element, for which it takes the element from before the truncation, in all its width: it
// writes past the place that the lane has. What is a store of one element before it comes there
// is stored as it should be, by the same instructions.

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
    // A lane that may be either is off.
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
