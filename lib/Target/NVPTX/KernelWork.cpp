// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/KernelWork.h"

#include "InstructionWork.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"

#include <algorithm>
#include <utility>

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace tessera;

using Op = SkeletonValue::Op;

namespace {

//===----------------------------------------------------------------------===//
// The integer program
//===----------------------------------------------------------------------===//

/// The constant address of a word of shared memory.
std::optional<int64_t> findWord(const Value &address) {
  if (address.getType()->getPointerAddressSpace() != kSharedSpace)
    return std::nullopt;
  const Value *base = &address;
  int64_t offset = 0;
  while (auto *part = dyn_cast<GEPOperator>(base)) {
    APInt more(64, 0);
    static const DataLayout layout;
    if (!part->hasAllConstantIndices() || !part->accumulateConstantOffset(layout, more))
      return std::nullopt;
    offset += more.getSExtValue();
    base = part->getPointerOperand();
  }
  return isa<GlobalVariable>(base) ? std::optional<int64_t>(offset) : std::nullopt;
}

class SkeletonBuilder {
public:
  SkeletonBuilder(const Function &function, KernelSkeleton &skeleton)
      : function(function), skeleton(skeleton), lanes(function.getDataLayout()) {
    for (const BasicBlock &block : function) {
      numbers[&block] = skeleton.blocks.size();
      skeleton.blocks.emplace_back();
      for (const Instruction &op : block)
        if (auto *store = dyn_cast<StoreInst>(&op))
          if (std::optional<int64_t> address = findWord(*store->getPointerOperand()))
            stores[*address].push_back(store);
    }
  }

  void build();
  SkeletonBlock &get(const BasicBlock &block) { return skeleton.blocks[numbers.lookup(&block)]; }
  /// Comparisons in an access's mask, each false for all lanes if it is for the first one.
  ArrayRef<int> getMasks(const Instruction &access) const {
    auto found = masks.find(&access);
    return found == masks.end() ? ArrayRef<int>() : ArrayRef(found->second);
  }

private:
  void addMasks(const Instruction &access);
  bool isFalseForAll(const ICmpInst &comparison);
  int add(const Value *value);
  bool addWord(const LoadInst &load, SkeletonValue &value);
  int addLeaf(Op op, int64_t number, unsigned bits = 32);
  void setOperands(const Instruction &op, SkeletonValue &value);
  void setPlaceInCluster(Intrinsic::ID id, SkeletonValue &value);
  void setGuess(const BasicBlock &block, const LoopInfo &loops);
  void setGuardedLoop(const BasicBlock &block, const LoopInfo &loops);

  const Function &function;
  KernelSkeleton &skeleton;
  DenseMap<const BasicBlock *, int> numbers;
  DenseMap<const Value *, int> values;
  std::map<int64_t, SmallVector<const StoreInst *>> stores; ///< to words of shared memory
  LaneValues lanes;
  DenseMap<const Instruction *, std::vector<int>> masks; ///< of accesses to global memory
};

int SkeletonBuilder::addLeaf(Op op, int64_t number, unsigned bits) {
  skeleton.values.push_back({op, bits, number, {-1, -1, -1}});
  int place = skeleton.values.size() - 1;
  skeleton.blocks[0].values.push_back(place);
  return place;
}

static Op getOp(unsigned opcode) {
  switch (opcode) {
  case Instruction::Add:
    return Op::Add;
  case Instruction::Sub:
    return Op::Sub;
  case Instruction::Mul:
    return Op::Mul;
  case Instruction::SDiv:
    return Op::SDiv;
  case Instruction::UDiv:
    return Op::UDiv;
  case Instruction::SRem:
    return Op::SRem;
  case Instruction::URem:
    return Op::URem;
  case Instruction::Shl:
    return Op::Shl;
  case Instruction::LShr:
    return Op::LShr;
  case Instruction::AShr:
    return Op::AShr;
  case Instruction::And:
    return Op::And;
  case Instruction::Or:
    return Op::Or;
  case Instruction::Xor:
    return Op::Xor;
  case Instruction::ZExt:
    return Op::ZExt;
  case Instruction::SExt:
    return Op::SExt;
  case Instruction::Trunc:
    return Op::Trunc;
  case Instruction::Select:
    return Op::Select;
  default:
    return Op::Unknown;
  }
}

static Op getOp(CmpInst::Predicate predicate) {
  switch (predicate) {
  case CmpInst::ICMP_EQ:
    return Op::Eq;
  case CmpInst::ICMP_NE:
    return Op::Ne;
  case CmpInst::ICMP_SLT:
    return Op::SLt;
  case CmpInst::ICMP_SLE:
    return Op::SLe;
  case CmpInst::ICMP_SGT:
    return Op::SGt;
  case CmpInst::ICMP_SGE:
    return Op::SGe;
  case CmpInst::ICMP_ULT:
    return Op::ULt;
  case CmpInst::ICMP_ULE:
    return Op::ULe;
  case CmpInst::ICMP_UGT:
    return Op::UGt;
  case CmpInst::ICMP_UGE:
    return Op::UGe;
  default:
    return Op::Unknown;
  }
}

static Op getOperation(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::smin:
    return Op::SMin;
  case Intrinsic::smax:
    return Op::SMax;
  case Intrinsic::umin:
    return Op::UMin;
  case Intrinsic::umax:
    return Op::UMax;
  case Intrinsic::usub_sat:
    return Op::USubSat;
  case Intrinsic::abs:
    return Op::Abs;
  case Intrinsic::ctlz:
    return Op::LeadingZeros;
  case Intrinsic::cttz:
    return Op::TrailingZeros;
  case Intrinsic::ctpop:
    return Op::Ones;
  default:
    return Op::Unknown;
  }
}

/// A special register, and its axis.
static std::pair<Op, int> getRegister(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return {Op::ProgramId, 0};
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    return {Op::ProgramId, 1};
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    return {Op::ProgramId, 2};
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    return {Op::NumPrograms, 0};
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    return {Op::NumPrograms, 1};
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_z:
    return {Op::NumPrograms, 2};
  case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return {Op::ThreadId, 0};
  case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    return {Op::NumThreads, 0};
  default:
    return {Op::Unknown, 0};
  }
}

/// Blocks of a cluster are adjacent along the first axis.
void SkeletonBuilder::setPlaceInCluster(Intrinsic::ID id, SkeletonValue &value) {
  unsigned size = 1;
  Attribute attribute = function.getFnAttribute("nvvm.cluster_dim");
  if (attribute.isValid())
    attribute.getValueAsString().split(',').first.getAsInteger(10, size);
  auto set = [&](Op op, Op of) {
    value.op = op;
    value.operands = {addLeaf(of, 0), addLeaf(Op::Constant, std::max(size, 1u)), -1};
  };
  if (id == Intrinsic::nvvm_read_ptx_sreg_clusterid_x)
    set(Op::UDiv, Op::ProgramId);
  else if (id == Intrinsic::nvvm_read_ptx_sreg_nclusterid_x)
    set(Op::UDiv, Op::NumPrograms);
  else if (id == Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank)
    set(Op::URem, Op::ProgramId);
}

void SkeletonBuilder::setOperands(const Instruction &op, SkeletonValue &value) {
  auto addOperands = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      value.operands[i] = add(op.getOperand(i));
  };
  if (auto *comparison = dyn_cast<ICmpInst>(&op)) {
    Type *type = comparison->getOperand(0)->getType();
    if (!type->isIntegerTy() || type->getIntegerBitWidth() > 64)
      return;
    value.op = getOp(comparison->getPredicate());
    value.number = type->getIntegerBitWidth();
    addOperands(2);
    return;
  }
  if (auto *call = dyn_cast<CallInst>(&op)) {
    if (call->isInlineAsm())
      return;
    Intrinsic::ID id = call->getIntrinsicID();
    if (Op kind = getOperation(id); kind != Op::Unknown) {
      value.op = kind;
      for (unsigned i = 0; i < 2; ++i)
        value.operands[i] = add(call->getArgOperand(std::min(i, call->arg_size() - 1)));
    } else if (id == Intrinsic::nvvm_shfl_sync_idx_i32) {
      // The walk is by the first lane, from which uniform values come.
      value.op = Op::Or;
      value.operands[0] = value.operands[1] = add(call->getArgOperand(1));
    } else if (auto [read, axis] = getRegister(id); read != Op::Unknown) {
      value.op = read;
      value.number = axis;
    } else {
      setPlaceInCluster(id, value);
    }
    return;
  }
  if (auto *load = dyn_cast<LoadInst>(&op)) {
    addWord(*load, value);
    return;
  }
  if (isa<FreezeInst>(op)) {
    value.op = Op::Or;
    value.operands[0] = value.operands[1] = add(op.getOperand(0));
    return;
  }
  if (auto *part = dyn_cast<ExtractValueInst>(&op)) {
    auto *call = dyn_cast<CallInst>(part->getAggregateOperand());
    if (call && call->getIntrinsicID() == Intrinsic::nvvm_elect_sync &&
        op.getType()->isIntegerTy(1)) {
      value.op = Op::Constant;
      value.number = 1;
    }
    return;
  }
  Op kind = getOp(op.getOpcode());
  if (kind == Op::Unknown)
    return;
  if (kind == Op::ZExt || kind == Op::SExt || kind == Op::Trunc) {
    Type *from = op.getOperand(0)->getType();
    if (!from->isIntegerTy() || from->getIntegerBitWidth() > 64)
      return;
    value.number = from->getIntegerBitWidth();
  }
  value.op = kind;
  addOperands(kind == Op::Select                                          ? 3
              : kind == Op::ZExt || kind == Op::SExt || kind == Op::Trunc ? 1
                                                                          : 2);
}

bool SkeletonBuilder::addWord(const LoadInst &load, SkeletonValue &value) {
  std::optional<int64_t> address = findWord(*load.getPointerOperand());
  if (!address)
    return false;
  auto found = stores.find(*address);
  if (found == stores.end())
    return false;
  value.op = Op::Word;
  value.number = *address;
  // For the first load of the word.
  for (const StoreInst *store : std::exchange(found->second, {})) {
    const Value *stored = store->getValueOperand();
    if (stored->getType() != load.getType())
      continue;
    int place = add(stored);
    get(*store->getParent()).words.push_back({*address, place});
  }
  return true;
}

int SkeletonBuilder::add(const Value *value) {
  if (auto found = values.find(value); found != values.end())
    return found->second;
  Type *type = value->getType();
  if (!type->isIntegerTy() || type->getIntegerBitWidth() > 64)
    return values[value] = addLeaf(Op::Unknown, 0);
  unsigned bits = type->getIntegerBitWidth();
  if (auto *constant = dyn_cast<ConstantInt>(value))
    return values[value] = addLeaf(Op::Constant, constant->getSExtValue(), bits);
  if (auto *argument = dyn_cast<Argument>(value))
    return values[value] = addLeaf(Op::Argument, argument->getArgNo(), bits);
  auto *op = dyn_cast<Instruction>(value);
  if (!op)
    return values[value] = addLeaf(Op::Unknown, 0, bits);
  int place = skeleton.values.size();
  skeleton.values.push_back({isa<PHINode>(op) ? Op::Phi : Op::Unknown, bits, 0, {-1, -1, -1}});
  values[value] = place;
  if (auto *phi = dyn_cast<PHINode>(op)) {
    std::vector<std::pair<int, int>> incoming;
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
      incoming.push_back({numbers.lookup(phi->getIncomingBlock(i)), add(phi->getIncomingValue(i))});
    get(*op->getParent()).phis.push_back({place, std::move(incoming)});
    return place;
  }
  SkeletonValue made = skeleton.values[place];
  setOperands(*op, made);
  skeleton.values[place] = made;
  return place;
}

/// The constant that each iteration adds to a phi of a loop's header; 0 if there is none.
static int64_t getStep(const PHINode &phi, const Loop &loop) {
  const BasicBlock *latch = loop.getLoopLatch();
  auto *sum = latch ? dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(latch)) : nullptr;
  if (!sum || sum->getOpcode() != Instruction::Add || sum->getOperand(0) != &phi)
    return 0;
  auto *step = dyn_cast<ConstantInt>(sum->getOperand(1));
  return step ? step->getSExtValue() : 0;
}

/// True if a value is computed from another one in a few operations.
static bool isComputedFrom(const Value *value, const Value *other, unsigned operations = 4) {
  if (value == other)
    return true;
  auto *op = dyn_cast<Instruction>(value);
  return op && operations > 0 && isa<BinaryOperator, CastInst, FreezeInst, MinMaxIntrinsic>(op) &&
         any_of(op->operands(),
                [&](const Use &use) { return isComputedFrom(use, other, operations - 1); });
}

/// True if a loop ends where another one begins, whose steps are a fraction of its own.
static bool leavesRemainder(const Loop &loop, const Value *begin, int64_t step) {
  bool hasLongSteps = any_of(loop.getHeader()->phis(), [&](const PHINode &phi) {
    int64_t own = getStep(phi, loop);
    return own >= 2 * step && own % step == 0;
  });
  SmallVector<BasicBlock *> exiting;
  loop.getExitingBlocks(exiting);
  return hasLongSteps && any_of(exiting, [&](const BasicBlock *block) {
           auto *branch = dyn_cast<BranchInst>(block->getTerminator());
           auto *end = branch ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
           return end && any_of(end->operands(), [&](const Use &bound) {
                    return loop.isLoopInvariant(bound) && isComputedFrom(bound, begin);
                  });
         });
}

/// True for the loop behind one with several iterations in one, for the last few iterations.
static bool isRemainder(const Loop &loop, const LoopInfo &loops) {
  const BasicBlock *before = loop.getLoopPredecessor();
  if (!before)
    return false;
  return any_of(loop.getHeader()->phis(), [&](const PHINode &phi) {
    int64_t step = getStep(phi, loop);
    const Value *begin = phi.getIncomingValueForBlock(before);
    return step > 0 && !isa<Constant>(begin) &&
           any_of(loops.getLoopsInPreorder(), [&](const Loop *other) {
             return !other->contains(&loop) && !loop.contains(other) &&
                    leavesRemainder(*other, begin, step);
           });
  });
}

void SkeletonBuilder::setGuess(const BasicBlock &block, const LoopInfo &loops) {
  const Instruction *end = block.getTerminator();
  if (end->getNumSuccessors() < 2)
    return;
  SkeletonBlock &own = get(block);
  if (const Loop *loop = loops.getLoopFor(&block)) {
    bool stays0 = loop->contains(end->getSuccessor(0)),
         stays1 = loop->contains(end->getSuccessor(1));
    if (stays0 != stays1) {
      own.guess = stays0 ? 0 : 1;
      own.loop =
          isRemainder(*loop, loops) ? SkeletonBlock::Loop::Remainder : SkeletonBlock::Loop::Guessed;
      // A loop that asks memory until it has changed.
      for (const Instruction &op : block)
        if (op.isAtomic() || op.isVolatile())
          own.loop = SkeletonBlock::Loop::None, own.guess = stays0 ? 1 : 0;
      return;
    }
  }
  auto *branch = dyn_cast<BranchInst>(end);
  // A loaded number is rarely the one that it is compared with: an ignored label, a missing page.
  if (auto *comparison = branch ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
      comparison && comparison->isEquality()) {
    own.guess = comparison->getPredicate() == CmpInst::ICMP_EQ ? 1 : 0;
    return;
  }
  // A successor that only this branch leads to is the body of an `if`. The rare case of a
  // comparison of floats is one. Any other body runs, unless it returns at once.
  const BasicBlock *first = end->getSuccessor(0), *second = end->getSuccessor(1);
  bool isFirstBody = first->getSinglePredecessor(), isSecondBody = second->getSinglePredecessor();
  if (branch && isa<FCmpInst>(branch->getCondition()))
    own.guess = isFirstBody && !isSecondBody ? 1 : 0;
  else if (isa<ReturnInst>(first->front()))
    own.guess = 1;
  else if (branch && !isa<ReturnInst>(second->front()))
    own.guess = isSecondBody && !isFirstBody ? 1 : 0;
  setGuardedLoop(block, loops);
}

/// Notes the loop that the guessed successor of a block leads to at once. The block belongs to a
/// loop over segments. A program with a segment of its own has an iteration at least, with masks.
void SkeletonBuilder::setGuardedLoop(const BasicBlock &block, const LoopInfo &loops) {
  constexpr unsigned kMaxBlocks = 3; // in front of the loop
  if (!loops.getLoopFor(&block))
    return;
  SkeletonBlock &own = get(block);
  const BasicBlock *next = block.getTerminator()->getSuccessor(own.guess);
  for (unsigned i = 0; i < kMaxBlocks && next; ++i, next = next->getSingleSuccessor()) {
    const Loop *loop = loops.getLoopFor(next);
    if (!loop || loop->getHeader() != next || loop->contains(&block))
      continue;
    if (const BasicBlock *latch = loop->getLoopLatch(); latch && loop->isLoopExiting(latch))
      own.guarded = numbers.lookup(latch);
    return;
  }
}

/// The mask of a predicated access, or of a copy that moves nothing where it is masked off.
static const Value *findMask(const Instruction &op) {
  auto *call = dyn_cast<CallInst>(&op);
  if (!call)
    return nullptr;
  if (!call->isInlineAsm()) {
    const Function *callee = call->getCalledFunction();
    constexpr unsigned kBytes = 2; // of the operands of a copy
    if (!callee || !callee->getName().starts_with("llvm.nvvm.cp.async.c") ||
        call->arg_size() <= kBytes)
      return nullptr;
    auto *bytes = dyn_cast<SelectInst>(call->getArgOperand(kBytes));
    auto *none = bytes ? dyn_cast<ConstantInt>(bytes->getFalseValue()) : nullptr;
    return none && none->isZero() ? bytes->getCondition() : nullptr;
  }
  auto *assembly = cast<InlineAsm>(call->getCalledOperand());
  StringRef text = assembly->getAsmString();
  unsigned operand = 0;
  if (!text.consume_front("@$") || text.consumeInteger(10, operand))
    return nullptr;
  for (const InlineAsm::ConstraintInfo &info : assembly->ParseConstraints())
    if (info.Type == InlineAsm::isOutput && operand-- == 0)
      return nullptr;
  return operand < call->arg_size() ? call->getArgOperand(operand) : nullptr;
}

/// Adds the comparisons of which a mask is the conjunction.
static void addComparisons(const Value *mask, SmallVectorImpl<const ICmpInst *> &comparisons,
                           unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 6;
  if (auto *comparison = dyn_cast<ICmpInst>(mask))
    return comparisons.push_back(comparison);
  auto *op = dyn_cast<Instruction>(mask);
  if (!op || depth == kMaxDepth)
    return;
  const Value *first, *second;
  if (match(op, m_LogicalAnd(m_Value(first), m_Value(second)))) {
    addComparisons(first, comparisons, depth + 1);
    addComparisons(second, comparisons, depth + 1);
  } else if (auto *freeze = dyn_cast<FreezeInst>(op)) {
    addComparisons(freeze->getOperand(0), comparisons, depth + 1);
  }
}

/// True if a comparison is false for all lanes of a warp if it is for the first one. Either the
/// first lane has the least number below a bound that all have, or all lanes compare the same.
bool SkeletonBuilder::isFalseForAll(const ICmpInst &comparison) {
  const Lanes left = lanes.get(comparison.getOperand(0));
  const Lanes right = lanes.get(comparison.getOperand(1));
  bool isUnsigned = comparison.isUnsigned();
  auto isLeast = [&](const Lanes &numbers, bool isLeast) {
    return all_of(numbers, [&](int64_t number) {
      if (isUnsigned)
        return isLeast ? uint64_t(numbers[0]) <= uint64_t(number)
                       : uint64_t(numbers[0]) >= uint64_t(number);
      return isLeast ? numbers[0] <= number : numbers[0] >= number;
    });
  };
  auto isUniform = [](const Lanes &numbers) { return all_equal(numbers); };
  if (isUniform(left) && isUniform(right))
    return true;
  switch (comparison.getPredicate()) {
  case CmpInst::ICMP_SLT:
  case CmpInst::ICMP_SLE:
  case CmpInst::ICMP_ULT:
  case CmpInst::ICMP_ULE:
    return isLeast(left, true) && isLeast(right, false);
  case CmpInst::ICMP_SGT:
  case CmpInst::ICMP_SGE:
  case CmpInst::ICMP_UGT:
  case CmpInst::ICMP_UGE:
    return isLeast(left, false) && isLeast(right, true);
  default:
    return false;
  }
}

void SkeletonBuilder::addMasks(const Instruction &access) {
  const Value *mask = findMask(access);
  if (!mask)
    return;
  SmallVector<const ICmpInst *> comparisons;
  addComparisons(mask, comparisons);
  for (const ICmpInst *comparison : comparisons)
    if (isFalseForAll(*comparison))
      masks[&access].push_back(add(comparison));
}

void SkeletonBuilder::build() {
  DominatorTree dominators(const_cast<Function &>(function));
  LoopInfo loops(dominators);
  for (const BasicBlock &block : function) {
    const Instruction *end = block.getTerminator();
    for (unsigned i = 0; i < end->getNumSuccessors(); ++i)
      get(block).successors.push_back(numbers.lookup(end->getSuccessor(i)));
    if (auto *branch = dyn_cast<BranchInst>(end); branch && branch->isConditional())
      get(block).condition = add(branch->getCondition());
    if (auto *choice = dyn_cast<SwitchInst>(end)) {
      get(block).condition = add(choice->getCondition());
      for (auto each : choice->cases())
        get(block).cases.push_back(each.getCaseValue()->getSExtValue());
    }
    setGuess(block, loops);
  }
  for (const BasicBlock &block : function)
    for (const Instruction &op : block)
      addMasks(op);
  // In the order of the instructions, which follows that of dependences.
  for (const BasicBlock &block : function)
    for (const Instruction &op : block)
      if (auto found = values.find(&op); found != values.end() && !isa<PHINode>(op))
        get(block).values.push_back(found->second);
}

//===----------------------------------------------------------------------===//
// Latencies
//===----------------------------------------------------------------------===//

/// Loads, and what hands them on to other blocks.
class PendingValues {
public:
  explicit PendingValues(const Function &function) {
    for (const BasicBlock *block : ReversePostOrderTraversal<const Function *>(&function))
      for (const Instruction &op : *block)
        if (isPending(op))
          pending.insert(&op);
  }
  bool contains(const Value *value) const { return pending.contains(value); }

  static bool isLoad(const Instruction &op) {
    auto *load = dyn_cast<LoadInst>(&op);
    return load && load->getPointerAddressSpace() == kGlobalSpace;
  }
  /// True if an instruction only hands a value on.
  static bool forwards(const Instruction &op) {
    return isa<PHINode, BitCastInst, ExtractElementInst, ExtractValueInst, InsertElementInst,
               InsertValueInst>(op);
  }

private:
  bool isPending(const Instruction &op) const {
    if (isLoad(op))
      return true;
    if (!forwards(op))
      return false;
    // A phi may take a value of a block behind, which this order has not seen.
    return any_of(op.operands(), [&](const Use &use) {
      auto *from = dyn_cast<Instruction>(use);
      return from && (pending.contains(from) || isLoad(*from));
    });
  }
  DenseSet<const Value *> pending;
};

/// The cycles in which a warp's instructions issue, each in the first free ones from when it is
/// ready.
class IssueSlots {
public:
  /// Takes `count` cycles from `ready` on; returns the last one.
  double take(double ready, double count) {
    left += count; // fractions add up
    double at = ready;
    for (; left >= 1; left -= 1) {
      size_t slot = find(static_cast<size_t>(at));
      next[slot] = slot + 1;
      at = static_cast<double>(slot);
    }
    return at;
  }

private:
  size_t find(size_t slot) {
    while (next.size() <= slot + 1)
      next.push_back(next.size());
    size_t free = slot;
    while (next[free] != free) {
      free = next[free];
      while (next.size() <= free + 1)
        next.push_back(next.size());
    }
    while (next[slot] != free && slot != free)
      slot = std::exchange(next[slot], free);
    return free;
  }
  std::vector<size_t> next; ///< the next free one, or one before it
  double left = 0;
};

/// The cycles that a warp's scheduler is busy with an instruction.
double getIssueCycles(const ResourceUse &use, const GPUMachine &machine, int64_t integerRate) {
  constexpr double kSchedulers = GPUMachine::kWarpsOfWarpgroup;
  auto cycles = [&](Resource resource, int64_t lanes) {
    return use[resource] * GPUMachine::kWarpSize * kSchedulers / double(lanes);
  };
  return std::max({use[Resource::Issue], cycles(Resource::Integers, integerRate),
                   cycles(Resource::Floats, machine.f32Rate),
                   cycles(Resource::Functions, machine.functionRate)});
}

/// How many warps of a scheduler execute a block at the same time. Warps of a loop in which all
/// meet at a barrier do, and those of a kernel without roles of warps. Where warps wait for each
/// other's copies alone, one computes while another one's dots are under way.
class WarpShares {
public:
  explicit WarpShares(const Function &function)
      : dominators(const_cast<Function &>(function)), loops(dominators) {
    Attribute attribute = function.getFnAttribute("nvvm.reqntid");
    unsigned number = 0;
    if (attribute.isValid() &&
        !attribute.getValueAsString().split(',').first.getAsInteger(10, number))
      all = std::max(1.0, double(number) / (GPUMachine::kWarpSize * GPUMachine::kWarpsOfWarpgroup));
    for (const BasicBlock &block : function) {
      bool meets = false;
      for (const Instruction &op : block) {
        auto *call = dyn_cast<CallInst>(&op);
        if (!call)
          continue;
        meets |= call->getIntrinsicID() == Intrinsic::nvvm_barrier_cta_sync_aligned_all;
        if (call->isInlineAsm())
          hasRoles |=
              cast<InlineAsm>(call->getCalledOperand())->getAsmString().contains("try_wait");
      }
      for (const Loop *loop = loops.getLoopFor(&block); meets && loop; loop = loop->getParentLoop())
        meeting.insert(loop);
    }
  }

  bool usesMbarriers() const { return hasRoles; }

  double get(const BasicBlock &block) const {
    const Loop *loop = loops.getLoopFor(&block);
    return !hasRoles || (loop && meeting.contains(loop)) ? all : 1;
  }

private:
  DominatorTree dominators;
  LoopInfo loops;
  DenseSet<const Loop *> meeting;
  double all = 1; ///< of the block's warps
  bool hasRoles = false;
};

/// The axes that a value depends on through data, as in ArrayRead. Programs that differ only along
/// other axes read the same addresses.
class AddressAxes {
public:
  explicit AddressAxes(const Function &function) {
    ReversePostOrderTraversal<const Function *> order(&function);
    bool changes = true;
    while (changes) {
      changes = false;
      for (const BasicBlock *block : order)
        for (const Instruction &op : *block) {
          unsigned found = find(op), &known = axes[&op];
          changes |= found != known;
          known = found;
        }
    }
  }

  /// Those of an access's addresses.
  unsigned getOfOperands(const Instruction &op) const {
    unsigned found = 0;
    for (const Use &use : op.operands())
      if (isa<Instruction>(use))
        found |= axes.lookup(use);
    return found;
  }

private:
  /// The axes of a place in another order of the programs. Programs are numbered along the first
  /// two axes, and the quotient of such a number and of the programs along the first axis is a
  /// place along the second one. The remainder is a place along the first. None for anything else.
  std::optional<unsigned> findPlace(const Instruction &op) const {
    constexpr unsigned kFirst = 1, kSecond = 2;
    const Value *number, *extent;
    bool isQuotient = match(&op, m_UDiv(m_Value(number), m_Value(extent)));
    if (!isQuotient && !match(&op, m_URem(m_Value(number), m_Value(extent))) &&
        !match(&op, m_Sub(m_Value(number), m_c_Mul(m_UDiv(m_Deferred(number), m_Value(extent)),
                                                   m_Deferred(extent)))))
      return std::nullopt;
    auto *call = dyn_cast<IntrinsicInst>(extent);
    if (!call || call->getIntrinsicID() != Intrinsic::nvvm_read_ptx_sreg_nctaid_x ||
        axes.lookup(number) != (kFirst | kSecond))
      return std::nullopt;
    return isQuotient ? kSecond : kFirst;
  }

  unsigned find(const Instruction &op) const {
    if (std::optional<unsigned> place = findPlace(op))
      return *place;
    // Another warp may have stored there what depends on any of them.
    auto *load = dyn_cast<LoadInst>(&op);
    if (load && load->getPointerAddressSpace() != kGlobalSpace)
      return ArrayRead::kAll;
    auto *call = dyn_cast<CallInst>(&op);
    switch (call && !call->isInlineAsm() ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    case Intrinsic::nvvm_read_ptx_sreg_clusterid_x:
    case Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank:
      return 1;
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
      return 2;
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
      return 4;
    case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    case Intrinsic::nvvm_read_ptx_sreg_laneid:
      return ArrayRead::kThreads;
    default:
      // An atomic's result differs from program to program.
      return op.isAtomic() ? ArrayRead::kAll : getOfOperands(op);
    }
  }

  DenseMap<const Value *, unsigned> axes;
};

/// True if an instruction of a block needs a load's value there, perhaps through instructions that
/// hand it on.
bool isAwaited(const Instruction &load) {
  SmallVector<const Instruction *> work{&load};
  while (!work.empty())
    for (const User *user : work.pop_back_val()->users()) {
      auto *other = cast<Instruction>(user);
      if (other->getParent() != load.getParent() || isa<PHINode>(other))
        continue;
      if (!PendingValues::forwards(*other))
        return true;
      work.push_back(other);
    }
  return false;
}

/// Adds an access to those of a block that have the same mask.
void addMasked(const InstructionWork &work, ArrayRef<int> masks, SkeletonBlock &block) {
  auto found = find_if(block.masked,
                       [&](const MaskedAccess &each) { return ArrayRef(each.masks) == masks; });
  if (found == block.masked.end()) {
    block.masked.emplace_back();
    block.masked.back().masks = masks;
    found = std::prev(block.masked.end());
  }
  for (Resource resource :
       {Resource::Global, Resource::Requests, Resource::Read, Resource::Written, Resource::Atomics})
    found->use[resource] += work.use[resource];
  auto &bytes = found->traffic[work.base];
  bytes.first += work.use[Resource::Read];
  bytes.second += work.use[Resource::Written];
}

/// Sums up the work of a block, and lets a warp execute it beside `share` - 1 others of its
/// scheduler that do the same.
void sumUp(const BasicBlock &block, WorkOfInstructions &works, const SkeletonBuilder &builder,
           const PendingValues &pending, const AddressAxes &axes, const GPUMachine &machine,
           double share, SkeletonBlock &result) {
  int64_t integerRate = LaunchRates::get(machine).integerRate;
  DenseMap<const Value *, double> ready;
  IssueSlots slots;
  double floor = 0, longest = 0;
  works.beginBlock();
  for (const Instruction &op : block) {
    InstructionWork work = works.get(op);
    result.work.add(work.use);
    double read = work.use[Resource::Read], written = work.use[Resource::Written];
    if (read > 0 || written > 0) {
      auto &bytes = result.traffic[work.base];
      bytes.first += read;
      bytes.second += written;
      // Many programs may add to one number.
      if (work.stored > 0 && work.use[Resource::Atomics] == 0)
        result.stored[work.base] += work.stored;
    }
    if (ArrayRef<int> masks = builder.getMasks(op);
        !masks.empty() && work.use[Resource::Global] > 0)
      addMasked(work, masks, result);
    if (work.distinct > 0) {
      unsigned of = axes.getOfOperands(op);
      bool isShared = !(of & ArrayRead::kThreads);
      result.reads[work.base].add({isShared ? 0 : work.distinct, isShared ? work.distinct : 0, of});
    }
    if (isa<PHINode>(op))
      continue;
    double begin = 0;
    for (const Use &use : op.operands()) {
      auto *from = dyn_cast<Instruction>(use);
      if (!from)
        continue;
      if (from->getParent() == &block && !isa<PHINode>(from))
        begin = std::max(begin, ready.lookup(from));
      else if (pending.contains(from) && !PendingValues::forwards(op))
        result.waitsForPending = true;
    }
    if (op.mayHaveSideEffects() || op.mayReadFromMemory())
      begin = std::max(begin, floor);
    if (work.isBarrier)
      begin = std::max(begin, longest);
    double issued = slots.take(begin, share * getIssueCycles(work.use, machine, integerRate));
    double end = issued + work.latency * (work.use[Resource::Tensor] > 0 ? share : 1);
    if (work.isBarrier)
      floor = end;
    ready[&op] = end;
    if (work.isGlobalLoad && !isAwaited(op))
      result.pending = std::max(result.pending, end);
    else
      longest = std::max(longest, end);
  }
  result.latency = longest;
}

} // namespace

KernelSkeleton tessera::countWork(const Function &function, const GPUMachine &machine,
                                  function_ref<int64_t(unsigned)> getBoxBytes) {
  KernelSkeleton skeleton;
  SkeletonBuilder builder(function, skeleton);
  builder.build();
  WorkOfInstructions works(function, machine, getBoxBytes);
  PendingValues pending(function);
  AddressAxes axes(function);
  WarpShares shares(function);
  skeleton.usesMbarriers = shares.usesMbarriers();
  for (const BasicBlock &block : function)
    sumUp(block, works, builder, pending, axes, machine, shares.get(block), builder.get(block));
  return skeleton;
}
