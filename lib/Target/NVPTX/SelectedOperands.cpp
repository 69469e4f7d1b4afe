// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works around a miscompilation of ptxas (seen in 13.0 and 13.5), which packs two operations on
// 16-bit floats into one instruction. Take x0 + (c ? y : -x1) and x2 + y. ptxas may compute the
// select in y's register before the second operation has read y. LLVM creates such selects from c ?
// x0 + y : x0 - x1. This pass turns them into selects of results again. It writes these in
// assembly, since code generation would undo it otherwise.

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

/// True if an operand of the select has another use.
static bool isShared(const SelectInst &choice) {
  auto isRead = [](const Value *arm) { return !isa<Constant>(arm) && !arm->hasOneUse(); };
  return isRead(choice.getTrueValue()) || isRead(choice.getFalseValue());
}

/// A select that no later pass changes.
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
