// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds wgmma in LLVM IR, where it is inline assembly.

#ifndef TESSERA_LIB_TARGET_NVPTX_WARPGROUPDOT_H
#define TESSERA_LIB_TARGET_NVPTX_WARPGROUPDOT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

namespace tessera {

inline bool isWarpgroupDot(const llvm::Instruction &instruction) {
  const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const auto *assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && assembly->getAsmString().contains("wgmma.mma_async");
}

inline bool hasWarpgroupDot(const llvm::BasicBlock *block) {
  return llvm::any_of(*block, isWarpgroupDot);
}

} // namespace tessera

#endif // TESSERA_LIB_TARGET_NVPTX_WARPGROUPDOT_H
