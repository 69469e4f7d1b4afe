// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converts two floats to a register of two 16-bit floats by one instruction.
//
// Code generation does so where it sees both conversions and the register. It works on one block at
// a time, and the register is often made in a later block, such as one of several that store a part
// of a tile. Lowering also takes the halves for integers of 16 bits there. So this pass makes the
// register next to the conversions.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace tessera;

/// The conversion of a float of 32 bits that makes `half`, perhaps as an integer, for one user.
static FPTruncInst *findConversion(Value *half) {
  if (auto *bits = dyn_cast<BitCastInst>(half); bits && bits->hasOneUse())
    half = bits->getOperand(0);
  auto *conversion = dyn_cast<FPTruncInst>(half);
  bool isWanted = conversion && conversion->hasOneUse() && conversion->getType()->is16bitFPTy() &&
                  conversion->getOperand(0)->getType()->isFloatTy();
  return isWanted ? conversion : nullptr;
}

void tessera::packConversions(Function &function) {
  SmallVector<Instruction *> replaced;
  for (Instruction &op : instructions(function)) {
    Value *low = nullptr, *high = nullptr;
    auto *type = dyn_cast<FixedVectorType>(op.getType());
    if (!type || type->getNumElements() != 2 ||
        !match(&op, m_InsertElt(m_OneUse(m_InsertElt(m_Undef(), m_Value(low), m_Zero())),
                                m_Value(high), m_One())))
      continue;
    FPTruncInst *first = findConversion(low), *second = findConversion(high);
    if (!first || !second || first == second || first->getType() != second->getType() ||
        first->getParent() != second->getParent())
      continue;
    FPTruncInst *last = first->comesBefore(second) ? second : first;
    IRBuilder<> builder(last->getNextNode());
    builder.SetCurrentDebugLocation(last->getDebugLoc());
    Value *pair = PoisonValue::get(FixedVectorType::get(first->getType(), 2));
    pair = builder.CreateInsertElement(pair, first, uint64_t(0));
    pair = builder.CreateInsertElement(pair, second, uint64_t(1));
    op.replaceAllUsesWith(builder.CreateBitCast(pair, type));
    replaced.push_back(&op);
  }
  for (Instruction *op : replaced) {
    auto *inner = cast<Instruction>(op->getOperand(0));
    op->eraseFromParent();
    inner->eraseFromParent();
  }
}
