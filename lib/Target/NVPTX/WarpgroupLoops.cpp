// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules for loops of wgmma, whose results are many registers.
//
// ptxas must not unroll short loops. Release 13.5 loses instructions of the copies. A loop of two
// to four iterations, in a kernel of several blocks a program, had one wgmma of nothing in their
// place. It stored the results of the iteration before (sm_90a; seed 20263350 of the fuzzer).
//
// A loop's sums start from zeros that LLVM takes for unknown values. If the loop may have no
// iterations, its results are joined with these zeros. LLVM would make constants a second time for
// the join. It would also move conversions of the results in front of the join, since it can
// convert constants. There two elements are not converted by one instruction, and ptxas takes
// longer for the joins.
//
// At the end of an iteration, sums may be complete. Threads then read them beside the next dots. If
// some threads branch in between, ptxas does not see that they are complete (release 13.5). It then
// waits behind each dot of the loop (C7518). A wait at the start of the iteration costs nothing.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "WarpgroupDot.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;
using namespace tessera;

/// ptxas unrolled loops of up to four iterations. It leaves longer ones as they are.
static constexpr unsigned kMaxTrips = 16;

void tessera::keepWarpgroupLoops(LoopInfo &loops, ScalarEvolution &evolution) {
  for (Loop *loop : loops.getLoopsInPreorder()) {
    if (!any_of(loop->blocks(), hasWarpgroupDot))
      continue;
    unsigned trips = evolution.getSmallConstantMaxTripCount(loop);
    if (trips != 0 && trips <= kMaxTrips)
      loop->setLoopAlreadyUnrolled();
  }
}

/// Fewer zeros are not worth a text of assembly.
static constexpr size_t kMinZeros = 16;

static bool isZero(const Value *value) {
  auto *constant = dyn_cast<Constant>(value);
  return constant && constant->isNullValue();
}

namespace {

/// The sums of a loop that start as zeros, and the places that need the same zeros.
class StartingZeros {
public:
  StartingZeros(Loop &loop, BasicBlock *before);

  size_t size() const { return types.size(); }
  /// If `phi` joins one of the sums with zeros, adds these.
  void addJoin(PHINode &phi);
  bool hasJoins() const { return places.size() > types.size(); }
  /// The block in which the zeros are made; null if one of the places is never reached.
  BasicBlock *findBlock(DominatorTree &dominators) const;
  void makeIn(BasicBlock *block);

private:
  struct Place {
    PHINode *phi;
    unsigned incoming;
    unsigned sum;
  };
  Value *behind(Value *value);
  bool passesOn(CallInst *call);

  SmallVector<Place> places;
  SmallVector<Type *> types;
  DenseMap<Value *, unsigned> sumOf; ///< by its value at the end of an iteration, or a join of that
  DenseMap<CallInst *, bool> passing;
};

} // namespace

/// True if an assembly that waits for dots has each of its results in the register of the operand
/// at the same place.
bool StartingZeros::passesOn(CallInst *call) {
  auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
  auto [known, isNew] = passing.try_emplace(call, false);
  if (!assembly || !isNew)
    return known->second;
  std::string tied;
  for (unsigned i = 0; i != call->arg_size(); ++i)
    tied += "," + std::to_string(i);
  auto *results = dyn_cast<StructType>(call->getType());
  known->second = assembly->getAsmString().starts_with("wgmma.wait_group") && results &&
                  results->getNumElements() == call->arg_size() &&
                  assembly->getConstraintString().ends_with(tied);
  return known->second;
}

/// The value behind joins of a single value and behind waits.
Value *StartingZeros::behind(Value *value) {
  while (true) {
    auto *phi = dyn_cast<PHINode>(value);
    auto *part = dyn_cast<ExtractValueInst>(value);
    auto *call = part ? dyn_cast<CallInst>(part->getAggregateOperand()) : nullptr;
    if (phi && phi->getNumIncomingValues() == 1)
      value = phi->getIncomingValue(0);
    else if (call && part->getNumIndices() == 1 && passesOn(call))
      value = call->getArgOperand(part->getIndices().front());
    else
      return value;
  }
}

/// Finds floats, and integers that a wgmma reads: others are counters.
StartingZeros::StartingZeros(Loop &loop, BasicBlock *before) {
  BasicBlock *latch = loop.getLoopLatch();
  for (PHINode &phi : loop.getHeader()->phis()) {
    bool isSum = phi.getType()->isFloatTy() ||
                 (phi.getType()->isIntegerTy(32) && any_of(phi.users(), [](const User *user) {
                    return isWarpgroupDot(*cast<Instruction>(user));
                  }));
    if (!latch || !isSum || !isZero(phi.getIncomingValueForBlock(before)))
      continue;
    unsigned sum = types.size();
    types.push_back(phi.getType());
    places.push_back({&phi, unsigned(phi.getBasicBlockIndex(before)), sum});
    sumOf.try_emplace(behind(phi.getIncomingValueForBlock(latch)), sum);
  }
}

void StartingZeros::addJoin(PHINode &phi) {
  std::optional<unsigned> sum;
  SmallVector<unsigned> zeros;
  for (auto [i, value] : enumerate(phi.incoming_values())) {
    if (isZero(value)) {
      zeros.push_back(i);
      continue;
    }
    auto known = sumOf.find(behind(value));
    if (known == sumOf.end() || (sum && *sum != known->second))
      return;
    sum = known->second;
  }
  if (!sum || zeros.empty() || phi.getType() != types[*sum])
    return;
  sumOf.try_emplace(&phi, *sum);
  for (unsigned incoming : zeros)
    places.push_back({&phi, incoming, *sum});
}

BasicBlock *StartingZeros::findBlock(DominatorTree &dominators) const {
  BasicBlock *block = nullptr;
  for (const Place &place : places) {
    BasicBlock *from = place.phi->getIncomingBlock(place.incoming);
    if (!dominators.isReachableFromEntry(from))
      return nullptr;
    block = block ? dominators.findNearestCommonDominator(block, from) : from;
  }
  return block;
}

void StartingZeros::makeIn(BasicBlock *block) {
  std::string text, constraints;
  for (auto [i, type] : enumerate(types)) {
    text += "mov.b32 $" + std::to_string(i) + ", 0;\n";
    constraints += i ? "," : "";
    constraints += type->isFloatTy() ? "=f" : "=r";
  }
  IRBuilder<> builder(block->getTerminator());
  auto *result = StructType::get(builder.getContext(), types);
  // Without a side effect they would be moved out of a loop around this one.
  CallInst *made = builder.CreateCall(InlineAsm::get(FunctionType::get(result, /*isVarArg=*/false),
                                                     text, constraints, /*hasSideEffects=*/true));
  SmallVector<Value *> zeros;
  for (unsigned i = 0; i != types.size(); ++i)
    zeros.push_back(builder.CreateExtractValue(made, i));
  for (const Place &place : places)
    place.phi->setIncomingValue(place.incoming, zeros[place.sum]);
}

void tessera::hideStartingZeros(Function &function, LoopInfo &loops, DominatorTree &dominators) {
  for (Loop *loop : loops.getLoopsInPreorder()) {
    BasicBlock *before = loop->getLoopPreheader();
    if (!before || none_of(loop->blocks(), hasWarpgroupDot))
      continue;
    StartingZeros zeros(*loop, before);
    if (zeros.size() < kMinZeros)
      continue;
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
      if (loops.getLoopFor(block) == loops.getLoopFor(before) && !loops.isLoopHeader(block))
        for (PHINode &phi : block->phis())
          zeros.addJoin(phi);
    // Elsewhere they would be held through other loops.
    BasicBlock *block = zeros.findBlock(dominators);
    if (block && zeros.hasJoins() && loops.getLoopFor(block) == loops.getLoopFor(before))
      zeros.makeIn(block);
  }
}

static StringRef getAssembly(const Instruction &op) {
  auto *call = dyn_cast<CallInst>(&op);
  auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly ? assembly->getAsmString() : StringRef();
}

static bool isWait(const Instruction &op) {
  return getAssembly(op).starts_with("wgmma.wait_group");
}

/// True for dots, and for fences and waits, through which sums pass.
static bool isOfWarpgroupDots(const Instruction &op) { return getAssembly(op).contains("wgmma."); }

/// True if the latch waits for all dots.
static bool endsComplete(const BasicBlock &latch) {
  for (const Instruction &op : reverse(latch))
    if (isOfWarpgroupDots(op))
      return isWait(op) && getAssembly(op).rtrim("; ").ends_with(" 0");
  return false;
}

/// True if threads read a sum of the iteration before, behind a dot and before a wait.
static bool readsSumsBesideDots(BasicBlock &header) {
  bool isBesideDot = false;
  for (const Instruction &op : header) {
    if (isWait(op))
      return false;
    if (isWarpgroupDot(op)) {
      isBesideDot = true;
      continue;
    }
    bool isOfSum = any_of(op.operands(), [&](const Value *value) {
      auto *phi = dyn_cast<PHINode>(value);
      return phi && phi->getParent() == &header && any_of(phi->users(), [](const User *user) {
               return isOfWarpgroupDots(*cast<Instruction>(user));
             });
    });
    if (isBesideDot && isOfSum && !isOfWarpgroupDots(op))
      return true;
  }
  return false;
}

void tessera::waitAtStartOfWarpgroupLoops(LoopInfo &loops) {
  for (Loop *loop : loops.getLoopsInPreorder()) {
    BasicBlock *header = loop->getHeader(), *latch = loop->getLoopLatch();
    if (!latch || !endsComplete(*latch) || !readsSumsBesideDots(*header))
      continue;
    IRBuilder<> builder(&*header->getFirstNonPHIIt());
    InlineAsm *wait = InlineAsm::get(FunctionType::get(builder.getVoidTy(), /*isVarArg=*/false),
                                     "wgmma.wait_group.sync.aligned 0;", "",
                                     /*hasSideEffects=*/true);
    builder.CreateCall(wait)->setConvergent();
  }
}
