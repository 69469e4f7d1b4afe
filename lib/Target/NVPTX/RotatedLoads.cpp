// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that loads several iterations ahead carries the loaded values from each iteration to the
// next:
//
//     loop:                                    loop:
//       %a = phi [..], [%b, %loop]               %a = phi [..], [%y, %third]
//       %b = phi [..], [%x, %loop]               %b = phi [..], [%z, %third]
//       %x = load ...                            %x = load ...
//       use %a                            =>     use %a
//       br %more, %loop, %end                    br %more, %second, %end
//                                              second:
//                                                %y = load ...
//                                                use %b
//                                                ...
//
// In machine code, a carried value is a move, and a move waits for the load. So each load has one
// iteration's time, no matter how far ahead it is. If the loop is unrolled once more than it loads
// ahead, each value stays in the register that its load has written, and nothing moves.
//
// A value that is the same in all lanes is moved to a uniform register, which waits, too. So its
// address gets a zero that ptxas takes for a number of the lane.
//
// All copies keep the loop's exit. They have no remainder, which barriers would not permit.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "LaneValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;
using namespace tessera;

/// Loads further ahead are those of a list that was unrolled before.
static constexpr unsigned kMaxIterationsAhead = 4;
/// Larger loops do not stay in the instruction cache.
static constexpr unsigned kMaxInstructions = 3000;

static bool isGlobalLoad(const Value *value) {
  constexpr unsigned kGlobal = 1;
  if (const auto *load = dyn_cast<LoadInst>(value))
    return load->getPointerAddressSpace() == kGlobal;
  const auto *call = dyn_cast<CallInst>(value);
  const auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && assembly->getAsmString().contains("ld.global");
}

/// The load of the loop that a value is, or is a part of; null if there is none.
static Instruction *findLoad(Value *value, const Loop &loop) {
  while (auto *op = dyn_cast<Instruction>(value)) {
    if (!loop.contains(op))
      return nullptr;
    if (isGlobalLoad(op))
      return op;
    if (!isa<CastInst, ExtractValueInst, ExtractElementInst>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  return nullptr;
}

namespace {

/// A load of a loop, and the number of iterations by which it is ahead of its use.
struct EarlyLoad {
  Instruction *load;
  unsigned ahead;
};

} // namespace

static SmallVector<EarlyLoad> findEarlyLoads(const Loop &loop) {
  SmallVector<EarlyLoad> found;
  for (PHINode &phi : loop.getHeader()->phis()) {
    unsigned ahead = 0;
    Value *value = &phi;
    // Two values may be exchanged for ever.
    while (auto *carried = dyn_cast<PHINode>(value)) {
      if (carried->getParent() != loop.getHeader() || ahead > kMaxIterationsAhead)
        break;
      value = carried->getIncomingValueForBlock(loop.getLoopLatch());
      ++ahead;
    }
    if (Instruction *load = findLoad(value, loop))
      found.push_back({load, ahead});
  }
  return found;
}

static unsigned countInstructions(const Loop &loop) {
  unsigned count = 0;
  for (const BasicBlock *block : loop.blocks())
    count += block->size();
  return count;
}

/// The number of copies of a loop; 1 if it stays as it is.
static unsigned countCopies(const Loop &loop, ArrayRef<EarlyLoad> early) {
  unsigned ahead = 0;
  for (const EarlyLoad &load : early)
    ahead = std::max(ahead, load.ahead);
  unsigned copies = ahead + 1;
  if (ahead < 2 || ahead > kMaxIterationsAhead ||
      countInstructions(loop) * copies > kMaxInstructions)
    return 1;
  return copies;
}

/// A zero that ptxas takes for a number of the lane.
static Value *makeZeroOfLane(Function &function) {
  IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  constexpr unsigned kNoLaneBelowItself = 31;
  Value *below = builder.CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_lanemask_lt,
                                         ArrayRef<Type *>(), ArrayRef<Value *>());
  return builder.CreateZExt(builder.CreateLShr(below, kNoLaneBelowItself), builder.getInt64Ty());
}

/// Adds `zero` to the addresses of a load that are the same in all lanes.
static void hideUniformity(Instruction &load, LaneValues &lanes, function_ref<Value *()> getZero) {
  for (Use &operand : load.operands())
    if (operand->getType()->isPointerTy() && !isa<InlineAsm>(operand) &&
        all_equal(lanes.get(operand))) {
      IRBuilder<> builder(&load);
      operand = builder.CreateGEP(builder.getInt8Ty(), operand, getZero());
    }
}

void tessera::unrollRotatedLoads(Function &function, FunctionAnalysisManager &analyses) {
  LoopInfo &loops = analyses.getResult<LoopAnalysis>(function);
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto &assumptions = analyses.getResult<AssumptionAnalysis>(function);
  OptimizationRemarkEmitter remarks(&function);
  LaneValues lanes(function.getDataLayout());
  Value *zero = nullptr;
  for (Loop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || !loop->getLoopLatch() || !loop->getExitingBlock())
      continue;
    SmallVector<EarlyLoad> early = findEarlyLoads(*loop);
    unsigned copies = countCopies(*loop, early);
    if (copies == 1)
      continue;
    for (const EarlyLoad &load : early)
      hideUniformity(*load.load, lanes, [&] {
        if (!zero)
          zero = makeZeroOfLane(function);
        return zero;
      });
    simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, /*MSSAU=*/nullptr,
                 /*PreserveLCSSA=*/false);
    formLCSSARecursively(*loop, dominators, &loops, &evolution);
    UnrollLoopOptions options{};
    options.Count = copies;
    options.Force = true;
    UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions,
               &analyses.getResult<TargetIRAnalysis>(function), &remarks, /*PreserveLCSSA=*/true);
  }
}
