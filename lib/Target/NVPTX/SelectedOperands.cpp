// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ptxas (13.0 and 13.5 were seen to) packs two operations on 16-bit floats into one
// instruction. Where an operand of one is a choice, as in x0 + (c ? y : -x1), and y is an operand
// of the other, x2 + y, it may compute the choice in y's register, before the other operation has
// read it. LLVM makes such choices of c ? x0 + y : x0 - x1. Here they are made to be of results
// again, as assembly, since code generation would do the same once more.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace tessera;

static bool isPacked(const Instruction &op) {
  if (!op.getType()->is16bitFPTy())
    return false;
  if (auto *call = dyn_cast<IntrinsicInst>(&op))
    return call->getIntrinsicID() == Intrinsic::fma;
  return op.getOpcode() == Instruction::FAdd || op.getOpcode() == Instruction::FSub ||
         op.getOpcode() == Instruction::FMul;
}

/// True if one of the values that are chosen from has another reader.
static bool isShared(const SelectInst &choice) {
  auto isRead = [](const Value *arm) { return !isa<Constant>(arm) && !arm->hasOneUse(); };
  return isRead(choice.getTrueValue()) || isRead(choice.getFalseValue());
}

/// A choice that nothing looks into.
static Value *createChoice(IRBuilder<> &builder, Value *condition, Value *ifTrue, Value *ifFalse) {
  Type *bits = builder.getInt16Ty();
  auto *type = FunctionType::get(bits, {bits, bits, builder.getInt1Ty()}, /*isVarArg=*/false);
  InlineAsm *choice = InlineAsm::get(type, "selp.b16 $0, $1, $2, $3;", "=h,h,h,b",
                                     /*hasSideEffects=*/false);
  Value *chosen = builder.CreateCall(choice, {builder.CreateBitCast(ifTrue, bits),
                                              builder.CreateBitCast(ifFalse, bits), condition});
  return builder.CreateBitCast(chosen, ifTrue->getType());
}

void tessera::chooseNarrowResults(Function &function) {
  SmallVector<Instruction *> work;
  for (Instruction &op : instructions(function))
    if (isPacked(op))
      work.push_back(&op);
  while (!work.empty()) {
    Instruction *op = work.pop_back_val();
    auto *operand = llvm::find_if(op->operands(), [](const Use &use) {
      auto *choice = dyn_cast<SelectInst>(use);
      return choice && isShared(*choice);
    });
    if (operand == op->op_end())
      continue;
    auto *choice = cast<SelectInst>(*operand);
    unsigned place = operand->getOperandNo();
    IRBuilder<> builder(op);
    auto apply = [&](Value *arm) {
      Instruction *result = op->clone();
      result->setOperand(place, arm);
      builder.Insert(result, op->getName());
      work.push_back(result); // a choice may be of choices
      return result;
    };
    Instruction *ifTrue = apply(choice->getTrueValue());
    Instruction *ifFalse = apply(choice->getFalseValue());
    op->replaceAllUsesWith(createChoice(builder, choice->getCondition(), ifTrue, ifFalse));
    op->eraseFromParent();
    if (choice->use_empty())
      choice->eraseFromParent();
  }
}
