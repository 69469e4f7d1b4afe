// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop carries fragments of a tile whose elements are narrower than a register, and each element
// is a value of its own. An MMA takes them as words. ptxas then moves each word in parts, with two
// or four instructions. Here, the loop carries the word instead:
//
//     loop:                                          loop:
//       %a = phi half [ %a0, %entry ], ...             %word = phi i32 [ %word0, %entry ], ...
//       %b = phi half [ %b0, %entry ], ...    =>       %v = bitcast i32 %word to <2 x half>
//       %u = insertelement poison, %a, 0
//       %v = insertelement %u, %b, 1

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/TargetFolder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace tessera;

static constexpr unsigned kWordBits = 32;

/// The elements of a word that this instruction completes. Empty if it completes none.
static SmallVector<Value *, 4> findElements(InsertElementInst &last) {
  auto *type = dyn_cast<FixedVectorType>(last.getType());
  if (!type || type->getPrimitiveSizeInBits() != kWordBits || type->getNumElements() == 1)
    return {};
  SmallVector<Value *, 4> elements(type->getNumElements());
  Value *vector = &last;
  while (auto *insert = dyn_cast<InsertElementInst>(vector)) {
    auto *index = dyn_cast<ConstantInt>(insert->getOperand(2));
    if (!index || index->getValue().uge(elements.size()))
      return {};
    Value *&element = elements[index->getZExtValue()];
    if (!element)
      element = insert->getOperand(1);
    vector = insert->getOperand(0);
  }
  return is_contained(elements, nullptr) ? SmallVector<Value *, 4>() : elements;
}

/// The word of 32 bits that has these elements already. Null if there is none.
static Value *findWord(ArrayRef<Value *> elements, IRBuilderBase &builder) {
  using namespace PatternMatch;
  Type *wordType = builder.getInt32Ty();
  Value *whole = nullptr;
  unsigned bits = elements.front()->getType()->getPrimitiveSizeInBits();
  for (auto [index, element] : enumerate(elements)) {
    Value *source = nullptr, *part = element;
    if (auto *cast = dyn_cast<BitCastInst>(part))
      part = cast->getOperand(0);
    bool isPart = match(element, m_ExtractElt(m_Value(source), m_SpecificInt(index))) ||
                  (index == 0 && match(part, m_Trunc(m_Value(source)))) ||
                  match(part, m_Trunc(m_LShr(m_Value(source), m_SpecificInt(index * bits))));
    if (!isPart)
      return nullptr;
    if (source->getType()->getPrimitiveSizeInBits() != kWordBits || (whole && source != whole))
      return nullptr;
    whole = source;
  }
  return builder.CreateBitCast(whole, wordType);
}

/// Computes a word of elements at the end of a block.
static Value *makeWord(ArrayRef<Value *> elements, FixedVectorType *type, BasicBlock *block) {
  IRBuilder<TargetFolder> builder(block, block->getTerminator()->getIterator(),
                                  TargetFolder(block->getDataLayout()));
  if (Value *word = findWord(elements, builder))
    return word;
  Value *vector = PoisonValue::get(type);
  for (auto [index, element] : enumerate(elements))
    vector = builder.CreateInsertElement(vector, element, index);
  return builder.CreateBitCast(vector, builder.getInt32Ty());
}

/// Replaces carried elements, and the vector that is made of them, by a carried word.
static void carryWord(ArrayRef<Value *> elements, InsertElementInst &last) {
  auto *type = cast<FixedVectorType>(last.getType());
  auto *first = cast<PHINode>(elements.front());
  IRBuilder<> builder(first);
  PHINode *word = builder.CreatePHI(builder.getInt32Ty(), first->getNumIncomingValues());
  for (BasicBlock *block : first->blocks()) {
    // A block with two edges to this one has one value for both.
    if (int known = word->getBasicBlockIndex(block); known >= 0) {
      word->addIncoming(word->getIncomingValue(known), block);
      continue;
    }
    SmallVector<Value *, 4> incoming;
    for (Value *element : elements)
      incoming.push_back(cast<PHINode>(element)->getIncomingValueForBlock(block));
    word->addIncoming(makeWord(incoming, type, block), block);
  }
  builder.SetInsertPoint(&last);
  last.replaceAllUsesWith(builder.CreateBitCast(word, type));
  RecursivelyDeleteTriviallyDeadInstructions(&last);
}

void tessera::packCarriedWords(Function &function) {
  SmallVector<WeakTrackingVH> inserts;
  for (Instruction &op : instructions(function))
    if (isa<InsertElementInst>(op))
      inserts.push_back(&op);
  for (WeakTrackingVH &handle : inserts) {
    auto *last = dyn_cast_or_null<InsertElementInst>(handle);
    if (!last)
      continue;
    SmallVector<Value *, 4> elements = findElements(*last);
    // Elements with other uses would be taken from the word again.
    auto isCarried = [&](Value *element) {
      auto *phi = dyn_cast<PHINode>(element);
      return phi && phi->hasOneUse() &&
             phi->getParent() == cast<PHINode>(elements.front())->getParent();
    };
    if (!elements.empty() && isa<PHINode>(elements.front()) && all_of(elements, isCarried))
      carryWord(elements, *last);
  }
}
