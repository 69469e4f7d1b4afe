// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes the liveness of SSA values one by one: from each use back to the definition, over the
// blocks between. The cost is proportional to the blocks over which values live.

#include "tessera/Target/NVPTX/RegisterPressure.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <array>
#include <vector>

using namespace llvm;

/// The size in half registers, since two 16-bit values share a register.
static int64_t getHalfWords(Type *type) {
  if (type->isPointerTy())
    return type->getPointerAddressSpace() == 3 ? 2 : 4;
  if (auto *vector = dyn_cast<FixedVectorType>(type))
    return vector->getNumElements() * getHalfWords(vector->getElementType());
  if (!type->isIntegerTy() && !type->isFloatingPointTy())
    return 0; // of a struct, its members are
  unsigned bits = type->getPrimitiveSizeInBits();
  return bits == 1 ? 0 : (bits + 15) / 16;
}

/// True if no other instruction can move across this one, or at least no load.
static bool isFixed(const Instruction &op) {
  auto *call = dyn_cast<CallBase>(&op);
  return isa<StoreInst>(op) || (call && call->mayWriteToMemory());
}

/// True if a value is a conversion of another one, which one instruction can recompute.
static bool isForm(const Instruction &op) {
  return isa<FPExtInst, SExtInst, ZExtInst, BitCastInst>(op);
}

/// The uses of a value and of its conversions.
static SmallVector<const Use *> getUses(const Instruction &op) {
  SmallVector<const Use *> uses;
  SmallVector<const Instruction *> work{&op};
  while (!work.empty())
    for (const Use &use : work.pop_back_val()->uses()) {
      auto *user = cast<Instruction>(use.getUser());
      if (isForm(*user))
        work.push_back(user);
      else
        uses.push_back(&use);
    }
  return uses;
}

namespace {

class Liveness {
public:
  explicit Liveness(const Function &function) {
    for (const BasicBlock &block : function) {
      int64_t number = 0;
      for (const Instruction &op : block) {
        numbers[&op] = number++;
        if (isFixed(op))
          fixed[&block].push_back(number - 1);
      }
    }
  }

  /// Adds a definition with all of its uses.
  void add(const Instruction &op) {
    int64_t size = getHalfWords(op.getType());
    if (size == 0 || op.use_empty())
      return;
    const BasicBlock *own = op.getParent();
    DenseMap<const BasicBlock *, int64_t> lastUse; // where the value dies, or past the end
    SmallVector<const BasicBlock *> work;
    SmallPtrSet<const BasicBlock *, 8> entered;
    auto useAt = [&](const BasicBlock *block, int64_t at) {
      auto [entry, isNew] = lastUse.try_emplace(block, at);
      entry->second = std::max(entry->second, at);
      if (block != own && entered.insert(block).second)
        work.push_back(block);
    };
    for (const Use *use : getUses(op)) {
      auto *user = cast<Instruction>(use->getUser());
      if (auto *phi = dyn_cast<PHINode>(user))
        useAt(phi->getIncomingBlock(*use), kEnd);
      else
        useAt(user->getParent(), numbers[user]);
    }
    while (!work.empty())
      for (const BasicBlock *before : predecessors(work.pop_back_val()))
        useAt(before, kEnd);
    for (auto [block, last] : lastUse) {
      bool isOwn = block == own;
      int64_t from = isOwn && !isa<PHINode>(op) ? numbers[&op] : -1;
      auto &[atBegin, atEnd] = atBlocks[block];
      atBegin += from < 0 ? size : 0;
      atEnd += last == kEnd ? size : 0;
      // The value is live at each fixed instruction between its definition and its last use.
      ArrayRef<int64_t> places = fixed[block];
      auto begin = std::upper_bound(places.begin(), places.end(), from);
      auto end = std::upper_bound(begin, places.end(), last);
      if (begin == end)
        continue;
      std::vector<int64_t> &changes = atFixed[block];
      changes.resize(places.size() + 1);
      changes[begin - places.begin()] += size;
      changes[end - places.begin()] -= size;
    }
  }

  int64_t getMost() const {
    int64_t most = 0;
    for (const auto &[block, sizes] : atBlocks)
      most = std::max({most, sizes[0], sizes[1]});
    for (const auto &[block, changes] : atFixed) {
      int64_t held = 0;
      for (int64_t change : changes)
        most = std::max(most, held += change);
    }
    return most;
  }

private:
  static constexpr int64_t kEnd = INT64_MAX;

  DenseMap<const Instruction *, int64_t> numbers;
  DenseMap<const BasicBlock *, SmallVector<int64_t>> fixed;
  DenseMap<const BasicBlock *, std::array<int64_t, 2>> atBlocks; ///< at the beginning, the end
  DenseMap<const BasicBlock *, std::vector<int64_t>> atFixed;
};

} // namespace

/// True if an instruction chooses a value by control flow or by a condition.
static bool isChoice(const Instruction &op) { return isa<PHINode, SelectInst>(op); }

/// True if a value is loaded, or is a result of a call. Tensor cores are called as inline assembly,
/// which has a struct of results.
static bool isLoadedOrCalled(const Instruction &op) {
  return isa<LoadInst, CallBase, ExtractValueInst>(op);
}

/// True if the value occupies a register. Values computed from indices do not count.
static bool isHeld(const Instruction &op) {
  return !isForm(op) && (isChoice(op) || isLoadedOrCalled(op) || op.getType()->isFPOrFPVectorTy());
}

int64_t tessera::countLiveRegisters(const Function &function) {
  Liveness liveness(function);
  for (const BasicBlock &block : function)
    for (const Instruction &op : block)
      if (isHeld(op))
        liveness.add(op);
  return (liveness.getMost() + 1) / 2;
}
