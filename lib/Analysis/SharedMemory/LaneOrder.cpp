// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/LaneOrder.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/Order/RegionFlow.h"
#include "tessera/Analysis/SharedMemory/Replication.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryHazards.h"
#include "llvm/ADT/PointerIntPair.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Threads of an access
//===----------------------------------------------------------------------===//

namespace {

/// The lanes of an access, and the threads that do it.
struct Lanes {
  /// A tile with one element a lane, or a scalar.
  Type type;
  /// True if one of the threads that have an element acts for all.
  bool byRepresentatives = false;
};

} // namespace

/// The lanes of what threads do to global memory; none for what does nothing to it, or is done
/// by TMA.
static std::optional<Lanes> getLanes(Operation *op) {
  if (auto access = dyn_cast<tile::AccessOpInterface>(op)) {
    // All lanes with the element may load it, and a copy has a place for each of them.
    auto load = dyn_cast<tile::LoadOp>(op);
    bool byAll = load ? !load.getIsVolatile() : isa<tilegpu::AsyncCopyOp>(op);
    return Lanes{access.getPtr().getType(), !byAll};
  }
  // Foreign code is run for each copy.
  if (op->hasTrait<tile::ForeignCode>() && !isMemoryEffectFree(op))
    return Lanes{op->getResultTypes().front(), false};
  return std::nullopt;
}

/// True if two shapes may have lanes in common.
static bool haveCommonLanes(Type a, Type b) {
  ArrayRef<int64_t> left = tile::getShape(a), right = tile::getShape(b);
  return left.size() == right.size() && llvm::all_of(llvm::zip(left, right), [](auto extents) {
           auto [one, other] = extents;
           return one == other || one == 1 || other == 1;
         });
}

/// True if each element is in the same threads in both layouts.
static bool haveSameThreads(Type a, Type b) {
  tilegpu::LayoutAttr left = tilegpu::getLayoutAttr(a), right = tilegpu::getLayoutAttr(b);
  if (!left || !right || tile::getShape(a) != tile::getShape(b))
    return !left && !right && tile::getShape(a) == tile::getShape(b);
  auto getRegisters = [](const LinearLayout &layout) {
    SmallVector<uint64_t> columns(layout.columns(HwDim::Reg));
    llvm::sort(columns);
    llvm::erase(columns, 0);
    return columns;
  };
  const LinearLayout &one = left.getLayout(), &other = right.getLayout();
  return one.columns(HwDim::Lane) == other.columns(HwDim::Lane) &&
         one.columns(HwDim::Warp) == other.columns(HwDim::Warp) &&
         one.columns(HwDim::Block) == other.columns(HwDim::Block) &&
         getRegisters(one) == getRegisters(other);
}

/// True if for each lane one thread does both.
static bool areDoneByOneThread(Operation *earlier, const Lanes &a, const Lanes &b) {
  if (!haveSameThreads(a.type, b.type))
    return false;
  bool byRepresentatives = a.byRepresentatives && b.byRepresentatives;
  return byRepresentatives || Replication::of(a.type, earlier).countCopies() == 1;
}

//===----------------------------------------------------------------------===//
// The flow
//===----------------------------------------------------------------------===//

/// The outermost loop around both.
static Operation *findCommonLoop(Operation *a, Operation *b) {
  Operation *common = nullptr;
  for (Operation *op = a->getParentOp(); op; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op) && op->isAncestor(b))
      common = op;
  return common;
}

LaneOrder::Pending LaneOrder::describe(Operation *op) const {
  std::optional<Lanes> lanes = isa<CallOpInterface>(op) ? std::nullopt : getLanes(op);
  Kind kind = nullptr;
  if (lanes)
    kind = llvm::PointerIntPair<const void *, 1, bool>(lanes->type.getAsOpaquePointer(),
                                                       lanes->byRepresentatives)
               .getOpaqueValue();
  // A copy only reads global memory.
  bool isCopy = isa<tilegpu::AsyncCopyOp>(op);
  bool mayWrite = !isCopy && (!isa<tile::LoadOp>(op) || mayWriteMemory(op));
  return {kind, mayWrite, op, isCopy};
}

bool LaneOrder::mayDifferInThreads(const Pending &earlier, const Pending &later) {
  // Functions may access anything, for any lane.
  if (!earlier.kind || !later.kind)
    return true;
  auto [known, isNew] = differInThreads.try_emplace({earlier.kind, later.kind});
  if (isNew) {
    Lanes first = *getLanes(earlier.op), second = *getLanes(later.op);
    known->second =
        haveCommonLanes(first.type, second.type) && !areDoneByOneThread(earlier.op, first, second);
  }
  return known->second;
}

bool LaneOrder::needsBarrier(const PendingSet &pending, const Pending &later) {
  for (auto access = pending.begin(); access != pending.end();) {
    // Reads pass reads, and what is true of one of a kind is true of all.
    if ((!access->mayWrite && !later.mayWrite) || !mayDifferInThreads(*access, later)) {
      access = pending.upper_bound(access->getLastOfItsKind());
      continue;
    }
    Operation *loop = findCommonLoop(access->op, later.op);
    if (!access->isInFlight && !order.mayPassAccesses(later.op, access->op, loop).isIndependent())
      return true;
    ++access;
  }
  return false;
}

/// True if a function that is called does anything to global memory, itself or by others.
static bool usesMemory(CallOpInterface call) {
  auto callee = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
  if (!callee || callee.isExternal())
    return true;
  return llvm::any_of(getMemoryAccesses(callee), [](const OpAccess &access) {
    return !access.resource || isa<SideEffects::DefaultResource>(access.resource);
  });
}

void LaneOrder::visitOp(Operation *op, PendingSet &pending) {
  auto meet = [&] {
    for (auto access = pending.begin(); access != pending.end();)
      access = access->isInFlight ? std::next(access) : pending.erase(access);
  };
  auto barrier = dyn_cast<tilegpu::BarrierOp>(op);
  if (isa<tile::BarrierOp, tilegpu::ClusterSumOp>(op) ||
      (barrier && !barrier.getOfGroup() && !hasClusters))
    return meet();
  if (auto wait = dyn_cast<tilegpu::AsyncWaitOp>(op)) {
    // Which have landed is not counted: any may have, the newest may not.
    PendingSet landed;
    for (Pending access : pending) {
      if (access.isInFlight && wait.getPending() != 0)
        landed.insert(access);
      access.isInFlight = false;
      landed.insert(access);
    }
    pending = std::move(landed);
    return;
  }
  if (tilegpu::isInPartition(op))
    return;
  auto call = dyn_cast<CallOpInterface>(op);
  bool isAccess = call ? usesMemory(call) : getLanes(op).has_value();
  if (isAccess) {
    if (!barriers.contains(op) && needsBarrier(pending, describe(op)))
      barriers.insert(op);
    if (barriers.contains(op))
      meet();
  }
  // An access that is delivered by shared memory is done before warps meet for that.
  // Blocks of a cluster meet there only if they exchange something, which is not looked at.
  if (meetsInside(op) && !hasClusters)
    return meet();
  if (isAccess)
    pending.insert(describe(op));
}

LaneOrder::LaneOrder(FunctionOpInterface function)
    : hasClusters(tilegpu::getNumBlocks(function) > 1) {
  if (function.isExternal())
    return;
  RegionFlow<PendingSet> flow([&](Operation *op, PendingSet &pending) { visitOp(op, pending); });
  flow.visit(function.getFunctionBody().front(), {});
}
