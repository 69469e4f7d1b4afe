// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileGPUWarpSpecializeOps.h"

#include "tessera/Machine/ScheduleBudget.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr unsigned kLanes = 1 << kLaneBits;

bool tessera::tilegpu::isInPartition(Operation *op) {
  for (; op; op = op->getParentOp()) {
    if (isa_and_nonnull<OneThreadOp>(op->getParentOp()))
      return true;
    if (auto parent = dyn_cast_or_null<WarpSpecializeOp>(op->getParentOp()))
      return op->getParentRegion() != &parent.getDefaultRegion();
  }
  return false;
}

std::optional<unsigned> tessera::tilegpu::getNumLaunchWarps(FunctionOpInterface function) {
  std::optional<unsigned> warps = getNumWarps(function);
  if (!warps || function.isExternal())
    return warps;
  for (auto op : function.getFunctionBody().front().getOps<WarpSpecializeOp>())
    *warps += op.countPartitionWarps();
  return warps;
}

void WarpSpecializeOp::getSuccessorRegions(RegionBranchPoint point,
                                           SmallVectorImpl<RegionSuccessor> &regions) {
  if (!point.isParent()) {
    regions.emplace_back(getOperation(), getOperation()->getResults());
    return;
  }
  for (Region &region : getOperation()->getRegions())
    regions.emplace_back(&region);
}

unsigned WarpSpecializeOp::countPartitionWarps() {
  return std::accumulate(getWarps().begin(), getWarps().end(), 0u);
}

unsigned WarpSpecializeOp::getEntryRegisters() {
  unsigned threads = (getNumWarps(*this).value_or(1) + countPartitionWarps()) * kLanes;
  if (auto programs = (*this)->getParentOp()->getAttrOfType<IntegerAttr>(kOccupancyAttr))
    threads *= programs.getInt();
  return GPUMachine::getRegisters(threads);
}

ParseResult
tessera::tilegpu::parsePartitions(OpAsmParser &parser, DenseI32ArrayAttr &warps,
                                  DenseI32ArrayAttr &registers,
                                  SmallVectorImpl<std::unique_ptr<Region>> &partitions) {
  SmallVector<int32_t> allWarps, allRegisters;
  auto parseNumber = [&](SmallVector<int32_t> &numbers) -> ParseResult {
    return failure(parser.parseLParen() || parser.parseInteger(numbers.emplace_back()) ||
                   parser.parseRParen());
  };
  if (parser.parseKeyword("partition"))
    return failure();
  do {
    if (parser.parseKeyword("warps") || parseNumber(allWarps))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("registers")) && parseNumber(allRegisters))
      return failure();
    Region &region = *partitions.emplace_back(std::make_unique<Region>());
    if (parser.parseRegion(region))
      return failure();
    WarpSpecializeOp::ensureTerminator(region, parser.getBuilder(),
                                       parser.getEncodedSourceLoc(parser.getNameLoc()));
  } while (succeeded(parser.parseOptionalKeyword("partition")));
  warps = parser.getBuilder().getDenseI32ArrayAttr(allWarps);
  if (!allRegisters.empty())
    registers = parser.getBuilder().getDenseI32ArrayAttr(allRegisters);
  return success();
}

void tessera::tilegpu::printPartitions(OpAsmPrinter &printer, WarpSpecializeOp,
                                       DenseI32ArrayAttr warps, DenseI32ArrayAttr registers,
                                       MutableArrayRef<Region> partitions) {
  for (auto [index, region] : llvm::enumerate(partitions)) {
    printer << (index == 0 ? "partition warps(" : " partition warps(");
    // Also of an op that is refused, where numbers may be missing.
    printer << (index < size_t(warps.size()) ? warps[index] : 0) << ") ";
    if (registers && index < size_t(registers.size()))
      printer << "registers(" << registers[index] << ") ";
    printer.printRegion(region, /*printEntryBlockArgs=*/true, /*printBlockTerminators=*/false);
  }
}

/// (S5).
static LogicalResult verifyRegisters(WarpSpecializeOp op, unsigned warps) {
  std::optional<ArrayRef<int32_t>> others = op.getPartitionRegisters();
  if (op.getDefaultRegisters().has_value() != others.has_value() ||
      (others && others->size() != op.getPartitions().size()))
    return op.emitOpError("has the number of registers of some regions only");
  if (!others)
    return success();
  unsigned wanted = 0;
  auto check = [&](unsigned count, unsigned registers) -> LogicalResult {
    if (count % kWarpsOfWarpgroup != 0)
      return op.emitOpError("gives registers to ") << count << " warps, not to groups of 4";
    if (registers < GPUMachine::kMinTransferredRegisters ||
        registers > GPUMachine::kMaxTransferredRegisters ||
        registers % GPUMachine::kRegisterStep != 0)
      return op.emitOpError("gives ")
             << registers << " registers to a thread; wanted is a multiple of 8 from 24 to 256";
    wanted += registers * count * kLanes;
    return success();
  };
  if (failed(check(warps, *op.getDefaultRegisters())))
    return failure();
  for (auto [count, registers] : llvm::zip_equal(op.getWarps(), *others))
    if (failed(check(count, registers)))
      return failure();
  unsigned there = op.getEntryRegisters() * (warps + op.countPartitionWarps()) * kLanes;
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
          emitOpError("has a write before it, which the warps of all regions would repeat");
      error.attachNote(before.getLoc()) << "here";
      return error;
    }
  }
  if (getPartitions().empty() || getWarps().size() != getPartitions().size())
    return emitOpError("has ") << getPartitions().size() << " partitions and " << getWarps().size()
                               << " numbers of warps; wanted is one for each, and at least one";
  unsigned warps = getNumWarps(*this).value_or(1), most = GPUMachine::kMaxWarps, all = warps;
  for (int32_t count : getWarps()) {
    if (count < 1 || (count != 1 && count % kWarpsOfWarpgroup != 0) || all + count > most)
      return emitOpError("has a partition of ")
             << count << " warps beside " << all << "; wanted is 1 or a multiple of 4, 32 in all";
    all += count;
  }
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
  for (Region &partition : getPartitions())
    if (failed(verifyForOneThread(*this, partition, "a partition with an op")))
      return failure();
  return success();
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
