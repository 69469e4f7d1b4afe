// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works around dots that ptxas removes (seen in 13.5, sm_90a). If nothing uses a wgmma's results,
// ptxas puts an empty instruction in its place, so that its group still counts. On an H200, a wait
// for an earlier group then returned before that group had ended. So a function with such a dot
// waits for all groups wherever it waits. tile-remove-dead-carries removes most of these dots
// before; this is for those that only LLVM finds.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace tessera;

/// The text of a call of inline assembly; empty for other instructions.
static StringRef getAssembly(const Instruction &op) {
  auto *call = dyn_cast<CallInst>(&op);
  auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly ? assembly->getAsmString() : "";
}

/// True if an instruction passes results of dots on, and does not use them itself.
static bool passesOn(const Instruction &op) {
  return isa<ExtractValueInst, InsertValueInst, PHINode, SelectInst, BitCastInst>(op) ||
         getAssembly(op).starts_with("wgmma.");
}

void tessera::waitForAllIfDotsAreDead(Function &function) {
  SmallPtrSet<const Instruction *, 32> live;
  SmallVector<const Instruction *> work;
  auto addOperands = [&](const Instruction &op) {
    for (const Value *operand : op.operand_values())
      if (auto *source = dyn_cast<Instruction>(operand);
          source && passesOn(*source) && live.insert(source).second)
        work.push_back(source);
  };
  for (const Instruction &op : instructions(function))
    if (!passesOn(op))
      addOperands(op);
  while (!work.empty())
    addOperands(*work.pop_back_val());

  if (all_of(instructions(function), [&](const Instruction &op) {
        return !getAssembly(op).starts_with("wgmma.mma_async") || live.contains(&op);
      }))
    return;
  constexpr StringLiteral wait = "wgmma.wait_group.sync.aligned ";
  for (Instruction &op : instructions(function)) {
    if (!getAssembly(op).starts_with(wait))
      continue;
    auto &call = cast<CallInst>(op);
    auto *assembly = cast<InlineAsm>(call.getCalledOperand());
    call.setCalledOperand(InlineAsm::get(assembly->getFunctionType(), (wait + "0;").str(),
                                         assembly->getConstraintString(),
                                         assembly->hasSideEffects()));
  }
}
