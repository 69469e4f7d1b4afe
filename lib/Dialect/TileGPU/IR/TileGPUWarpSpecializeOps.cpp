// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr unsigned kLanes = 1 << kLaneBits;

bool tessera::tilegpu::isInPartition(Operation *op) {
  for (; op; op = op->getParentOp()) {
    if (isa_and_nonnull<OneThreadOp>(op->getParentOp()))
      return true;
    if (auto parent = dyn_cast_or_null<WarpSpecializeOp>(op->getParentOp()))
      return op->getParentRegion() == &parent.getPartition();
  }
  return false;
}

std::optional<unsigned> tessera::tilegpu::getNumLaunchWarps(FunctionOpInterface function) {
  std::optional<unsigned> warps = getNumWarps(function);
  if (!warps || function.isExternal())
    return warps;
  for (auto op : function.getFunctionBody().front().getOps<WarpSpecializeOp>())
    *warps += op.getWarps();
  return warps;
}

void WarpSpecializeOp::getSuccessorRegions(RegionBranchPoint point,
                                           SmallVectorImpl<RegionSuccessor> &regions) {
  if (!point.isParent()) {
    regions.emplace_back(getOperation(), getOperation()->getResults());
    return;
  }
  regions.emplace_back(&getDefaultRegion());
  regions.emplace_back(&getPartition());
}

unsigned WarpSpecializeOp::getEntryRegisters() {
  unsigned threads = (getNumWarps(*this).value_or(1) + getWarps()) * kLanes;
  if (auto programs = (*this)->getParentOp()->getAttrOfType<IntegerAttr>(kOccupancyAttr))
    threads *= programs.getInt();
  return GPUMachine::getRegisters(threads);
}

/// (S5).
static LogicalResult verifyRegisters(WarpSpecializeOp op, unsigned warps) {
  if (op.getDefaultRegisters().has_value() != op.getPartitionRegisters().has_value())
    return op.emitOpError("has the number of registers of one region only");
  if (!op.getDefaultRegisters())
    return success();
  for (unsigned count : {warps, op.getWarps()})
    if (count % kWarpsOfWarpgroup != 0)
      return op.emitOpError("gives registers to ") << count << " warps, not to groups of 4";
  unsigned own = *op.getDefaultRegisters(), other = *op.getPartitionRegisters();
  for (unsigned registers : {own, other})
    if (registers < GPUMachine::kMinTransferredRegisters ||
        registers > GPUMachine::kMaxTransferredRegisters ||
        registers % GPUMachine::kRegisterStep != 0)
      return op.emitOpError("gives ")
             << registers << " registers to a thread; wanted is a multiple of 8 from 24 to 256";
  unsigned threads = warps * kLanes, otherThreads = op.getWarps() * kLanes;
  unsigned wanted = own * threads + other * otherThreads,
           there = op.getEntryRegisters() * (threads + otherThreads);
  if (wanted > there)
    return op.emitOpError("assigns ")
           << wanted << " registers, but its threads begin with " << there;
  return success();
}

LogicalResult WarpSpecializeOp::verify() {
  auto function = dyn_cast<tile::FuncOp>((*this)->getParentOp());
  Operation *next = (*this)->getNextNode();
  if (!function || !function.isKernel() || !isa_and_nonnull<tile::ReturnOp>(next))
    return emitOpError("is not the last op of a kernel before tile.return");
  for (Operation &before : (*this)->getBlock()->getOperations()) {
    if (&before == *this)
      break;
    auto alloc = dyn_cast<LocalAllocOp>(before);
    if (isa<MBarrierInitOp, BarrierOp>(before) || (alloc && !alloc.getSource()) ||
        isMemoryEffectFree(&before))
      continue;
    if (!hasSingleEffect<MemoryEffects::Read>(&before)) {
      InFlightDiagnostic error =
          emitOpError("has a write before it, which the warps of both regions would repeat");
      error.attachNote(before.getLoc()) << "here";
      return error;
    }
  }
  unsigned warps = getNumWarps(*this).value_or(1), most = GPUMachine::kMaxWarps;
  if ((getWarps() != 1 && getWarps() % kWarpsOfWarpgroup != 0) || getWarps() == 0 ||
      warps + getWarps() > most)
    return emitOpError("has a partition of ") << getWarps() << " warps beside " << warps
                                              << "; wanted is 1 or a multiple of 4, 32 in all";
  return verifyRegisters(*this, warps);
}

/// (S2): what one thread can do without tiles.
static bool isForOneThread(Operation *op) {
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isTile) || llvm::any_of(op->getResultTypes(), isTile))
    return false;
  if (op->hasTrait<ForOneThread>())
    return true;
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op))
    return !isa<CallOpInterface>(op);
  return hasSingleEffect<MemoryEffects::Read>(op);
}

/// (S2), (O1).
static LogicalResult verifyForOneThread(Operation *op, Region &region, StringRef what) {
  Operation *wrong = nullptr;
  region.walk([&](Operation *inner) {
    if (isForOneThread(inner))
      return WalkResult::advance();
    wrong = inner;
    return WalkResult::interrupt();
  });
  if (!wrong)
    return success();
  InFlightDiagnostic error = op->emitOpError("has ") << what << " that is not for one thread";
  error.attachNote(wrong->getLoc()) << "here";
  return error;
}

LogicalResult WarpSpecializeOp::verifyRegions() {
  return verifyForOneThread(*this, getPartition(), "a partition with an op");
}

LogicalResult OneThreadOp::verifyRegions() {
  if (isInPartition(*this))
    return emitOpError("is in code that one thread runs");
  return verifyForOneThread(*this, getBody(), "an op");
}

LogicalResult tessera::tilegpu::verifyWarpgroups(Operation *op) {
  constexpr unsigned kMaxGroups = ScheduleSizes::kMaxSeparateWarpgroups;
  unsigned warps = getNumWarps(op).value_or(1);
  if (!op->getParentOfType<WarpSpecializeOp>() || isInPartition(op))
    return op->emitOpError("is not in the default region of tilegpu.warp_specialize");
  if (warps % kWarpsOfWarpgroup != 0 || warps < 2 * kWarpsOfWarpgroup ||
      warps > kMaxGroups * kWarpsOfWarpgroup)
    return op->emitOpError("is in a program of ")
           << warps << " warps; wanted are 2 to " << kMaxGroups << " groups of four";
  return success();
}

LogicalResult PingPongWaitOp::verify() { return verifyWarpgroups(*this); }

LogicalResult PingPongPassOp::verify() { return verifyWarpgroups(*this); }
