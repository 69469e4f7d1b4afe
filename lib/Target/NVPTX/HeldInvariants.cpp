// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over programs or tiles surrounds loops of dots, whose accumulators take most registers.
// Code motion takes all that does not change out of it, such as the mask of a tile on the diagonal,
// which is the same for each program. Such values hold their registers over the loops of dots, to
// save an instruction a program. Here they go back to the block that uses them:
//
//     %p = icmp ult %row, %column                  loop:
//     %m = select %p, -1.0e6, 0.0                    ... dots ...
//     loop:                                 =>       %p = icmp ult %row, %column
//       ... dots ...                                 %m = select %p, -1.0e6, 0.0
//       fma %x, %scale, %m                           fma %x, %scale, %m
//
// Values move as a set, since one may be an operand of another. They move only if the loop then
// holds many fewer: what they are computed from has to live as long as the loop. A predicate holds
// what it compares, since a thread has few registers for predicates.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "WarpgroupDot.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace tessera;

/// Fewer registers are not worth the instructions.
static constexpr int64_t kMinFreedRegisters = 16;
/// Instructions that a freed register may cost in each iteration.
static constexpr int64_t kMaxInstructionsPerRegister = 4;

/// True if an instruction takes about a cycle, and computes the same wherever it is.
static bool isCheap(const Instruction &op) {
  return isa<ICmpInst, SelectInst, CastInst>(op) ||
         (isa<BinaryOperator>(op) && op.getType()->isIntegerTy() && !op.isIntDivRem());
}

/// The registers of a value. Predicates have their own.
static int64_t countRegisters(const Value &value) {
  unsigned bits = value.getType()->getScalarSizeInBits();
  return bits == 1 ? 0 : bits > 32 ? 2 : 1;
}

namespace {

/// The values that one block of a loop uses, of those computed in front of the loop.
class HeldValues {
public:
  HeldValues(const Loop &loop, BasicBlock *user) : loop(loop), user(user) {}

  /// To be called in reverse order of the instructions.
  void addIfHeld(Instruction &op) {
    bool isHeld = isCheap(op) && !op.use_empty() && all_of(op.users(), [&](User *other) {
                    auto *at = cast<Instruction>(other);
                    return values.contains(at) || (at->getParent() == user && !isa<PHINode>(at));
                  });
    if (isHeld)
      values.insert(&op);
  }
  bool isWorthMoving() const;
  void move();

private:
  bool isUsedInside(const Value *value) const {
    return any_of(value->users(), [&](const User *other) {
      auto *at = dyn_cast<Instruction>(other);
      return at && loop.contains(at);
    });
  }
  /// True if the loop holds a value. The code generator repeats comparisons where their results are
  /// used, and so holds their operands.
  bool isHeldOver(const Value *value) const {
    return isUsedInside(value) || any_of(value->users(), [&](const User *other) {
             return isa<ICmpInst>(other) && isUsedInside(other);
           });
  }

  const Loop &loop;
  BasicBlock *user;
  SetVector<Instruction *> values; ///< the last one first
};

} // namespace

bool HeldValues::isWorthMoving() const {
  int64_t freed = 0;
  SmallPtrSet<const Value *, 16> sources;
  for (const Instruction *value : values) {
    if (isHeldOver(value))
      freed += countRegisters(*value);
    for (const Value *operand : value->operands()) {
      auto *source = dyn_cast<Instruction>(operand);
      bool isLonger = source && !values.contains(source) && !isHeldOver(source);
      if (isLonger && sources.insert(source).second)
        freed -= countRegisters(*source);
    }
  }
  return freed >= kMinFreedRegisters &&
         int64_t(values.size()) <= kMaxInstructionsPerRegister * freed;
}

void HeldValues::move() {
  for (Instruction *value : values) {
    Instruction *first = nullptr;
    for (User *other : value->users()) {
      auto *at = cast<Instruction>(other);
      if (!first || at->comesBefore(first))
        first = at;
    }
    value->moveBefore(first->getIterator());
  }
}

void tessera::recomputeHeldInvariants(LoopInfo &loops) {
  for (Loop *loop : loops.getLoopsInPreorder()) {
    BasicBlock *before = loop->getLoopPreheader();
    if (!before || loop->isInnermost() || !any_of(loop->blocks(), hasWarpgroupDot))
      continue;
    for (BasicBlock *block : loop->blocks()) {
      // Blocks of inner loops would compute them again and again.
      if (loops.getLoopFor(block) != loop)
        continue;
      HeldValues held(*loop, block);
      for (Instruction &op : reverse(*before))
        held.addIfHeld(op);
      if (held.isWorthMoving())
        held.move();
    }
  }
}
