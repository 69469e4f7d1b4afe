// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WarpSpecialize.h"

#include "Fragments/Fragment.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

/// On the branch: the warps that take its first side.
static constexpr llvm::StringLiteral kDefaultWarpsAttr =
    tilegpu::TileGPUDialect::DefaultWarpsAttrHelper::getNameStr();
/// On the branch of a warp that begins with the election of its thread.
static constexpr llvm::StringLiteral kElectsAttr =
    tilegpu::TileGPUDialect::ElectsAttrHelper::getNameStr();
/// Barrier 0 is that of all warps. From the first one of ping-pong on, each warpgroup has two: one
/// to wait for the previous warpgroup, and one of its own warps.
static constexpr int32_t kDefaultBarrier = 1, kFirstPingPongBarrier = 2, kFirstGroupBarrier = 8;
static constexpr unsigned kLanes = 1 << tilegpu::kLaneBits;
static constexpr unsigned kWarpgroupBits = 2;
static_assert(1 << kWarpgroupBits == tilegpu::kWarpsOfWarpgroup);

/// Moves what is in a region to `to`, in front of its end.
static void moveBody(Region &region, Block *to) {
  Block &body = region.front();
  body.getTerminator()->erase();
  to->getOperations().splice(std::prev(to->end()), body.getOperations());
}

static void setRegisters(ThreadBuilder &thread, unsigned entry, std::optional<unsigned> registers) {
  if (!registers || *registers == entry)
    return;
  thread.getHooks().getWarpgroup().emitSetRegisters(thread, *registers,
                                                    /*areMore=*/*registers > entry);
}

/// A barrier at which a warpgroup waits, and which the group before it comes to.
static void emitPingPongBarrier(ThreadBuilder &thread, Value barrier, bool waits) {
  Value threads = thread.i32(2 * kLanes << kWarpgroupBits);
  if (waits)
    thread.getHooks().emitNamedBarrier(thread, barrier, threads);
  else
    thread.getHooks().emitNamedArrive(thread, barrier, threads);
}

/// Ping-pong by named barriers. The last warpgroup lets the first one begin. The first one waits
/// for the last one at the end, so that every barrier completes.
static void expandPingPong(Block *block, Value warp, unsigned warps, const TargetHooks &hooks) {
  SmallVector<Operation *> ops;
  block->walk([&](Operation *op) {
    if (isa<tilegpu::PingPongWaitOp, tilegpu::PingPongPassOp>(op))
      ops.push_back(op);
  });
  if (ops.empty())
    return;
  int32_t last = (warps >> kWarpgroupBits) - 1;
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  ThreadBuilder thread(builder, ops.front()->getLoc(), hooks);
  Value group = thread.lshr(warp, kWarpgroupBits);
  Value isLast = thread.equal(group, last), isFirst = thread.equal(group, 0);
  Value own = thread.add(group, kFirstPingPongBarrier);
  Value next =
      thread.create<LLVM::SelectOp>(isLast, thread.i32(kFirstPingPongBarrier), thread.add(own, 1));
  auto emitIf = [&](Value condition, Value barrier, bool waits) {
    auto branch = thread.create<scf::IfOp>(condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitPingPongBarrier(thread, barrier, waits);
  };
  emitIf(isLast, next, /*waits=*/false);
  for (Operation *op : ops) {
    builder.setInsertionPoint(op);
    bool waits = isa<tilegpu::PingPongWaitOp>(op);
    emitPingPongBarrier(thread, waits ? own : next, waits);
    op->erase();
  }
  builder.setInsertionPoint(block->getTerminator());
  emitIf(isFirst, own, /*waits=*/true);
}

Value tessera::emitGroup(ThreadBuilder &thread) {
  return thread.lshr(emitWarpId(thread), kWarpgroupBits);
}

void tessera::emitGroupBarrier(ThreadBuilder &thread) {
  Value number = thread.add(emitGroup(thread), kFirstGroupBarrier);
  thread.getHooks().emitNamedBarrier(thread, number, thread.i32(kLanes << kWarpgroupBits));
}

/// The code of a partition, for a thread of its first warp.
static void emitPartition(ThreadBuilder &thread, Region &partition, Value isFirstWarp) {
  OpBuilder &builder = thread.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  auto first = thread.create<scf::IfOp>(isFirstWarp, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(first.thenBlock());
  Value isElected = thread.getHooks().emitElect(thread);
  auto elected = thread.create<scf::IfOp>(isElected, /*withElseRegion=*/false);
  moveBody(partition, elected.thenBlock());
}

static void expand(tilegpu::WarpSpecializeOp op, const TargetHooks &hooks) {
  unsigned warps = *tilegpu::getNumWarps(op), entry = op.getEntryRegisters();
  OpBuilder builder(op);
  ThreadBuilder thread(builder, op.getLoc(), hooks);
  op->getParentOp()->setAttr(kLaunchWarpsAttr,
                             builder.getI32IntegerAttr(warps + op.countPartitionWarps()));
  // The code before accesses shared memory only.
  hooks.emitWaitForStream(thread);
  // From here on, all warps may use the mbarriers.
  hooks.getTensorMap().emitMBarrierInitFence(thread);
  // No thread depends on writes of other blocks.
  if (op.getInCluster()) {
    hooks.getCluster().emitClusterArrive(thread, /*isRelaxed=*/true);
    hooks.getCluster().emitClusterWait(thread);
  } else {
    emitBarrier(thread);
  }

  // The same number in all lanes, which a branch on it is known by to be the warp's.
  Value warp = emitShuffle(thread, emitWarpId(thread), thread.i32(0));
  Value isDefault = thread.compare(LLVM::ICmpPredicate::ult, warp, warps);
  auto branch = thread.create<scf::IfOp>(isDefault, /*withElseRegion=*/true);
  branch->setAttr(kDefaultWarpsAttr, builder.getI32IntegerAttr(warps));

  builder.setInsertionPointToStart(branch.thenBlock());
  setRegisters(thread, entry, op.getDefaultRegisters());
  moveBody(op.getDefaultRegion(), branch.thenBlock());
  expandPingPong(branch.thenBlock(), warp, warps, hooks);
  if (op.getInCluster()) {
    // Warps of the partitions that have ended have come, too.
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
    emitClusterBarrier(thread);
  }

  builder.setInsertionPointToStart(branch.elseBlock());
  for (auto [index, partition] : llvm::enumerate(op.getPartitions())) {
    unsigned first = warps, count = op.getWarps()[index];
    warps += count;
    scf::IfOp others;
    if (index + 1 != op.getPartitions().size()) {
      Value isOfThis = thread.compare(LLVM::ICmpPredicate::ult, warp, warps);
      others = thread.create<scf::IfOp>(isOfThis, /*withElseRegion=*/true);
      builder.setInsertionPointToStart(others.thenBlock());
    }
    std::optional<ArrayRef<int32_t>> registers = op.getPartitionRegisters();
    setRegisters(thread, entry, registers ? std::optional((*registers)[index]) : std::nullopt);
    emitPartition(thread, partition, thread.equal(warp, first));
    if (others)
      builder.setInsertionPointToStart(others.elseBlock());
  }
  op.erase();
}

/// A branch of the first warp, which elects a thread. All its lanes stay together: where one
/// went alone, ptxas would keep nothing in registers of the warp.
static void expand(tilegpu::OneThreadOp op, const TargetHooks &hooks) {
  OpBuilder builder(op->getContext());
  Operation *function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function->getRegion(0).front());
  ThreadBuilder thread(builder, op.getLoc(), hooks);
  Value warp = emitShuffle(thread, emitWarpId(thread), thread.i32(0));
  Value isFirst = thread.equal(warp, 0);
  builder.setInsertionPoint(op);
  auto branch = thread.create<scf::IfOp>(thread.both(isFirst, op.getCondition()),
                                         /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  branch->setAttr(kElectsAttr, builder.getUnitAttr());
  hooks.emitElect(thread);
  Block *to = branch.thenBlock();
  to->getOperations().splice(std::prev(to->end()), op.getBody().front().getOperations());
  op.erase();
}

/// Puts mbarriers that are initialised next to each other into one branch of the first thread.
/// Where each has a predicate, ptxas makes a branch and a fence of each.
static void gatherInits(ModuleOp module, const TargetHooks &hooks) {
  SmallVector<SmallVector<tilegpu::MBarrierInitOp>> groups;
  module.walk([&](Block *block) {
    bool isNext = false;
    for (Operation &op : *block) {
      if (auto init = dyn_cast<tilegpu::MBarrierInitOp>(op)) {
        if (!isNext)
          groups.emplace_back();
        groups.back().push_back(init);
        isNext = true;
        continue;
      }
      auto buffer = dyn_cast<tilegpu::LocalAllocOp>(op);
      isNext &= buffer ? !buffer.getSource() : isMemoryEffectFree(&op) && op.getNumRegions() == 0;
    }
  });
  for (ArrayRef<tilegpu::MBarrierInitOp> group : groups) {
    OpBuilder builder(group.back());
    ThreadBuilder thread(builder, tilegpu::MBarrierInitOp(group.back()).getLoc(), hooks);
    auto branch = thread.create<scf::IfOp>(thread.equal(emitThreadId(thread), 0),
                                           /*withElseRegion=*/false);
    for (tilegpu::MBarrierInitOp init : group)
      init->moveBefore(branch.thenBlock()->getTerminator());
  }
}

void tessera::expandWarpSpecialize(ModuleOp module, const TargetHooks &hooks) {
  gatherInits(module, hooks);
  SmallVector<tilegpu::OneThreadOp> alone;
  module.walk([&](tilegpu::OneThreadOp op) { alone.push_back(op); });
  llvm::for_each(alone, [&](tilegpu::OneThreadOp op) { expand(op, hooks); });
  SmallVector<tilegpu::WarpSpecializeOp> ops;
  module.walk([&](tilegpu::WarpSpecializeOp op) { ops.push_back(op); });
  llvm::for_each(ops, [&](tilegpu::WarpSpecializeOp op) { expand(op, hooks); });
}

bool tessera::isRunByOneThread(Operation *op) {
  for (; op; op = op->getParentOp()) {
    auto branch = dyn_cast_or_null<scf::IfOp>(op->getParentOp());
    if (branch && branch->hasAttr(kDefaultWarpsAttr))
      return op->getBlock() == branch.elseBlock();
  }
  return false;
}

Value tessera::getElected(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch->hasAttr(kElectsAttr))
      return branch.thenBlock()->front().getResult(0);
  return {};
}

/// Replaces the barriers of the program within an op by others.
static void replaceBarriers(Operation *root, const TargetHooks &hooks,
                            llvm::function_ref<void(ThreadBuilder &)> emit) {
  SmallVector<Operation *> barriers;
  root->walk([&](Operation *op) {
    if (hooks.isBarrier(op))
      barriers.push_back(op);
  });
  for (Operation *barrier : barriers) {
    OpBuilder builder(barrier);
    ThreadBuilder thread(builder, barrier->getLoc(), hooks);
    emit(thread);
    barrier->erase();
  }
}

void tessera::nameBarriers(ModuleOp module, const TargetHooks &hooks) {
  bool hasPartitions = false;
  module.walk([&](scf::IfOp branch) {
    branch->removeAttr(kElectsAttr);
    auto warps = branch->getAttrOfType<IntegerAttr>(kDefaultWarpsAttr);
    if (!warps)
      return;
    hasPartitions = true;
    branch->removeAttr(kDefaultWarpsAttr);
    for (Operation &op : llvm::make_early_inc_range(*branch.thenBlock()))
      replaceBarriers(&op, hooks, [&](ThreadBuilder &thread) {
        hooks.emitNamedBarrier(thread, thread.i32(kDefaultBarrier),
                               thread.i32(warps.getInt() * kLanes));
      });
  });
  // Lanes of one warp need not wait for others, nor does ptxas emit an instruction where they run
  // together. Functions do not know whose warps call them.
  if (!hasPartitions && tilegpu::getNumWarps(module) == 1)
    replaceBarriers(module, hooks, [&](ThreadBuilder &thread) { hooks.emitWarpBarrier(thread); });
}
