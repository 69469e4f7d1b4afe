// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is loaded under masks, and its results are stored under the same masks. A thread has seven
// predicate registers. If the masks are more, ptxas saves predicates by order: it uses a loaded
// value before it starts the next load, so that the loads wait for each other. Here, stores take
// their masks from the bits of a register:
//
//     %p = icmp slt %row, %rows               %p = icmp slt %row, %rows
//     call asm "@$1 ld.global ...", %p        %bits = or (zext %p), (shl (zext %q), 1), ...
//     ...                                =>   call asm "@$1 ld.global ...", %p
//     call asm "@$0 st.global ...", %p        ...
//                                             %held = icmp ne (and %bits, 1), 0
//                                             call asm "@$0 st.global ...", %held
//
// Masks that a loop takes from before it stay. LLVM would compute their bits before the loop, too,
// and hold a register for each.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace tessera;

/// A thread has one predicate more, which loops need for themselves.
static constexpr size_t kMaxHeldPredicates = 6;
static constexpr size_t kMasksPerRegister = 32;

namespace {

/// The uses of a mask.
struct MaskUses {
  bool isOfLoad = false, isOfOtherLoop = false;
  SmallVector<Use *> stores;
};

/// Masks of one block, in the bits of a register.
class MaskWord {
public:
  MaskWord(DominatorTree &dominators) : dominators(dominators) {}

  void add(Instruction *mask, const MaskUses &uses);
  bool isFull() const { return masks.size() == kMasksPerRegister; }
  void pack();

private:
  DominatorTree &dominators;
  Instruction *last = nullptr;
  SmallVector<std::pair<Instruction *, SmallVector<Use *>>> masks;
};

} // namespace

void MaskWord::add(Instruction *mask, const MaskUses &uses) {
  if (!last || last->comesBefore(mask))
    last = mask;
  masks.emplace_back(mask, uses.stores);
}

void MaskWord::pack() {
  IRBuilder<> builder(last->getNextNode());
  Type *type = builder.getInt32Ty();
  Value *bits = builder.getInt32(0);
  for (auto [i, mask] : enumerate(masks))
    bits = builder.CreateOr(bits, builder.CreateShl(builder.CreateZExt(mask.first, type), i));
  // LLVM would replace a bit by the mask again.
  InlineAsm *keep = InlineAsm::get(FunctionType::get(type, {type}, /*isVarArg=*/false),
                                   "mov.b32 $0, $1;", "=r,r", /*hasSideEffects=*/false);
  CallInst *word = builder.CreateCall(keep, {bits});
  for (auto [i, mask] : enumerate(masks))
    for (Use *store : mask.second) {
      auto *at = cast<Instruction>(store->getUser());
      if (!dominators.dominates(word, at))
        continue;
      builder.SetInsertPoint(at);
      Value *bit = builder.CreateAnd(word, builder.getInt32(1u << i));
      store->set(builder.CreateICmpNE(bit, builder.getInt32(0)));
    }
}

void tessera::packHeldMasks(Function &function, LoopInfo &loops, DominatorTree &dominators) {
  MapVector<Instruction *, MaskUses> uses;
  for (Instruction &op : instructions(function)) {
    auto *call = dyn_cast<CallInst>(&op);
    auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
    if (!assembly)
      continue;
    bool isLoad = assembly->getAsmString().contains("ld.global");
    bool isStore = assembly->getAsmString().contains("st.global");
    for (Use &operand : call->args())
      if (auto *mask = dyn_cast<Instruction>(operand);
          mask && isLoad != isStore && mask->getType()->isIntegerTy(1) && !isa<PHINode>(mask)) {
        MaskUses &ofMask = uses[mask];
        ofMask.isOfLoad |= isLoad;
        ofMask.isOfOtherLoop |=
            loops.getLoopFor(mask->getParent()) != loops.getLoopFor(call->getParent());
        if (isStore)
          ofMask.stores.push_back(&operand);
      }
  }
  uses.remove_if([](auto &entry) {
    const MaskUses &ofMask = entry.second;
    return !ofMask.isOfLoad || ofMask.isOfOtherLoop || ofMask.stores.empty();
  });
  if (uses.size() < kMaxHeldPredicates)
    return;
  SmallVector<MaskWord> words;
  DenseMap<BasicBlock *, size_t> wordOf;
  for (auto &[mask, ofMask] : uses) {
    auto [place, isNew] = wordOf.try_emplace(mask->getParent(), words.size());
    if (isNew || words[place->second].isFull()) {
      place->second = words.size();
      words.emplace_back(dominators);
    }
    words[place->second].add(mask, ofMask);
  }
  for (MaskWord &word : words)
    word.pack();
}
