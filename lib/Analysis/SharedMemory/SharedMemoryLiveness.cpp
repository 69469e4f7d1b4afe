// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/SharedMemoryLiveness.h"
#include "tessera/Machine/ScheduleBudget.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;

void SharedMemoryLiveness::number(Operation *op) {
  unsigned begin = next++;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        number(&inner);
  numbers[op] = {begin, op->getNumRegions() ? next++ : begin};
}

/// True if the regions of an op may run again.
static bool isLoop(Operation *op) {
  if (isa<LoopLikeOpInterface>(op))
    return true;
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  return branch && branch.hasLoop();
}

/// Extends the lifetime of a buffer to an op that needs it, and around each loop that comes back to
/// that op without making the buffer anew. An op in a partition may run at any time of the default
/// region.
void SharedMemoryLiveness::include(SharedMemoryInterval &interval, Operation *op,
                                   Operation *alloc) const {
  auto extend = [&](Operation *needed) {
    auto [begin, end] = numbers.lookup(needed);
    interval.begin = std::min(interval.begin, begin);
    interval.end = std::max(interval.end, end);
  };
  extend(op);
  for (Operation *parent = op->getParentOp(); parent && !isa<FunctionOpInterface>(parent);
       parent = parent->getParentOp())
    if (!parent->isProperAncestor(alloc) &&
        (isLoop(parent) || (isa<tilegpu::WarpSpecializeOp>(parent) && tilegpu::isInPartition(op))))
      extend(parent);
}

/// Extends the lifetime of a buffer to the end of its function, and around loops that make it anew.
void SharedMemoryLiveness::extendToEnd(SharedMemoryInterval &interval, Operation *alloc) const {
  Operation *parent = alloc->getParentOp();
  for (; !isa<FunctionOpInterface>(parent); parent = parent->getParentOp())
    if (isLoop(parent))
      interval.begin = std::min(interval.begin, numbers.lookup(parent).first);
  interval.end = numbers.lookup(parent).second;
}

/// The rest of a first branch that has ended the buffer, if nothing behind the branches needs
/// it.
void SharedMemoryLiveness::addHole(SharedMemoryInterval &interval, Operation *dealloc) const {
  auto branch = dyn_cast<scf::IfOp>(dealloc->getParentOp());
  if (!branch || dealloc->getBlock() != branch.thenBlock())
    return;
  auto [begin, end] = numbers.lookup(branch);
  if (interval.begin <= begin && interval.end < end)
    interval.holes.push_back({numbers.lookup(dealloc).second + 1,
                              numbers.lookup(branch.thenBlock()->getTerminator()).second});
}

/// True if an op is in the default region of a `tilegpu.warp_specialize`, in branches at most.
static bool isInDefaultRegion(Operation *op) {
  Operation *parent = op->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  return isa<tilegpu::WarpSpecializeOp>(parent) && !tilegpu::isInPartition(op);
}

/// True if a buffer holds mbarriers.
static bool holdsBarriers(Operation *alloc) {
  return llvm::any_of(alloc->getUsers(), llvm::IsaPred<tilegpu::MBarrierInitOp>);
}

SharedMemoryInterval SharedMemoryLiveness::getLifetime(Operation *alloc,
                                                       const SharedMemoryAlias &alias) const {
  unsigned at = numbers.lookup(alloc).first;
  int64_t bytes = cast<tilegpu::LocalAllocOp>(alloc).getType().getNumBytes();
  SharedMemoryInterval interval{alloc, bytes, at, at};
  // Where the default region ends a buffer, the partition no longer uses it, either.
  bool isEnded = llvm::any_of(alloc->getUsers(), [](Operation *user) {
    return isa<tilegpu::LocalDeallocOp>(user) && isInDefaultRegion(user);
  });
  for (Value name : alias.getNames(alloc)) {
    for (Operation *user : name.getUsers())
      if (!isEnded || !tilegpu::isInPartition(user))
        include(interval, user, alloc);
    // A buffer that comes in through a loop's argument is from another round of it.
    if (auto argument = dyn_cast<BlockArgument>(name)) {
      Operation *loop = argument.getOwner()->getParentOp();
      include(interval, loop, alloc);
    }
  }
  if (holdsBarriers(alloc)) {
    extendToEnd(interval, alloc);
    return interval;
  }
  for (Operation *user : alloc->getUsers())
    if (isa<tilegpu::LocalDeallocOp>(user))
      addHole(interval, user);
  return interval;
}

SharedMemoryLiveness::SharedMemoryLiveness(FunctionOpInterface function,
                                           const SharedMemoryAlias &alias,
                                           function_ref<int64_t(CallOpInterface)> frameBytes) {
  number(function);
  std::optional<size_t> last;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    unsigned at = numbers.lookup(op).first;
    if (isa<tilegpu::LocalAllocOp>(op)) {
      intervals.push_back(getLifetime(op, alias));
      return;
    }
    if (auto scratch = dyn_cast<tilegpu::ScratchOpInterface>(op))
      if (int64_t bytes = scratch.getScratchBytes()) {
        if (last)
          intervals[*last].end = std::max(intervals[*last].end, at);
        last.reset();
        if (bytes <= SharedMemoryBudget::kMaxSeparateScratch)
          last = intervals.size();
        intervals.push_back({op, bytes, at, at});
      }
    if (auto call = dyn_cast<CallOpInterface>(op))
      if (int64_t bytes = frameBytes(call))
        intervals.push_back({op, bytes, at, at, /*isFrame=*/true});
  });
}
