// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Transport.h"

#include "Channels.h"
#include "DotOrder.h"
#include "EarlyLoads.h"
#include "Facts/LoopSlice.h"
#include "Facts/Multicast.h"
#include "LoadsAhead.h"
#include "Memory/OwnBuffer.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

SmallVector<tile::LoadOp> TransportPlan::getLoads() const {
  SmallVector<tile::LoadOp> loads =
      llvm::map_to_vector(copies, [](const PlannedCopy &copy) { return copy.load; });
  llvm::append_range(loads, llvm::make_first_range(refused));
  return loads;
}

std::unique_ptr<Transport> Transport::make(TransportKind kind, tile::FuncOp function,
                                           bool assumeApart, AccessAnalysis &analysis,
                                           MemoryOrder &order) {
  switch (kind) {
  case TransportKind::Boxes:
    return std::make_unique<BoxTransport>(function, analysis, order);
  case TransportKind::AsyncCopies:
    return std::make_unique<AsyncTransport>(analysis, order, assumeApart);
  case TransportKind::Rows:
    return std::make_unique<RowTransport>(analysis, order);
  }
  llvm_unreachable("unknown transport");
}

TransportPlan Transport::plan(scf::ForOp loop) {
  TransportPlan plan;
  for (tile::LoadOp load : getLoads(loop)) {
    std::string why;
    if (std::optional<PlannedCopy> copy = getCopy(loop, load, why)) {
      plan.copies.push_back(std::move(*copy));
      continue;
    }
    if (mayLeave(loop, load)) {
      plan.left.emplace_back(load, std::move(why));
      continue;
    }
    plan.refused.emplace_back(load, std::move(why));
    if (needsAll())
      break;
  }
  return plan;
}

/// The loads of tiles of a loop's body, of which all or those that reach a dot.
static SmallVector<tile::LoadOp> getTileLoads(scf::ForOp loop, bool ofDots) {
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) &&
        (!ofDots || reachesDot(load.getResult(), loop.getBody())))
      loads.push_back(load);
  return loads;
}

/// Why threads cannot copy the tile of a load in an earlier iteration, which fills up with zeros.
static std::string whyNotCopiedByThreads(scf::ForOp loop, tile::LoadOp load) {
  if (!canLoadAhead(load))
    return "it is volatile, or its cache modifier forbids a copy";
  if (load.getOther() && !isZero(load.getOther()))
    return "its `other` is not 0";
  // Its address and its mask have to be known in that iteration.
  LoopSlice address(loop);
  for (Value operand : {load.getPtr(), load.getMask()})
    if (operand)
      if (std::string why = address.add(operand); !why.empty())
        return why;
  return "";
}

static std::string whyNotContiguous(int64_t bytes) {
  return "no " + std::to_string(bytes) +
         " bytes of it are known to be contiguous, aligned and under one mask";
}

//===----------------------------------------------------------------------===//
// By TMA
//===----------------------------------------------------------------------===//

std::optional<TransportObstacle> BoxTransport::findObstacle(scf::ForOp loop) {
  Operation *inner = nullptr;
  loop.getBody()->walk([&](AsyncDotOp dot) {
    if (dot->getBlock() != loop.getBody() || dot.isInFlight())
      inner = dot;
  });
  if (inner)
    return TransportObstacle{"a dot is in a branch or loop within it", {{inner, "here"}}};
  // Blocks that exchange tiles in a loop would wait for its producer.
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
    if (getNumBlocks(kernel) > 1 && !dot.isOfBlock())
      return TransportObstacle{"each block of a cluster has a part of an operand", {{dot, "here"}}};
  if (getNumParts(kernel) > 1 && isUneven(loop))
    return TransportObstacle{"blocks of a cluster have different numbers of iterations", {}};
  return std::nullopt;
}

/// A row takes few registers. If a dot uses it as it is, a buffer holds it.
bool BoxTransport::mayLeave(scf::ForOp loop, tile::LoadOp load) const {
  return tile::getShape(load.getType()).size() == 1 && isLoadableAhead(loop, load) &&
         llvm::none_of(load->getUsers(), llvm::IsaPred<LocalAllocOp>);
}

SmallVector<tile::LoadOp> BoxTransport::getLoads(scf::ForOp loop) const {
  return getTileLoads(loop, /*ofDots=*/true);
}

/// Rows as TMA writes them, for a tile that threads read into registers.
static MemDescType getFragmentType(tile::LoadOp load, AccessAnalysis &analysis) {
  auto type = cast<RankedTensorType>(load.getType());
  unsigned fast = getAccessPattern(load, analysis).getFastDim(type.getShape());
  int64_t bits = 8 * getElementBytes(type.getElementType());
  LayoutAttr memory =
      LayoutAttr::get(load.getContext(), operandMemory(type.getShape(), fast, bits));
  return MemDescType::get(load.getContext(), type.getShape(), type.getElementType(), memory);
}

std::optional<PlannedCopy> BoxTransport::getCopy(scf::ForOp loop, tile::LoadOp load,
                                                 std::string &why) {
  auto refuse = [&](StringRef reason) {
    why = reason;
    return std::nullopt;
  };
  PlannedCopy copy;
  copy.load = load;
  auto type = cast<RankedTensorType>(load.getType());
  for (Operation *user : load->getUsers()) {
    auto buffer = dyn_cast<LocalAllocOp>(user);
    // Threads read it from the ring, beside a dot or without one.
    if (!buffer && type.getRank() <= 2 && !user->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!buffer || user->getBlock() != loop.getBody())
      return refuse("it is used in another way than by a dot or by threads");
    if (!copy.buffers.empty() && copy.buffers.front().getType() != buffer.getType())
      return refuse("dots use its tile in two layouts");
    copy.buffers.push_back(buffer);
  }
  for (LocalAllocOp buffer : copy.buffers)
    for (Operation *use : getUses(buffer))
      if (!isa<AsyncDotOp, LocalDeallocOp>(use))
        return refuse("a dot that is not asynchronous uses its tile");
  copy.tile = !copy.buffers.empty() ? copy.buffers.front().getType()
              : type.getRank() == 1 ? getRowType(type.getShape(), type.getElementType())
                                    : getFragmentType(load, analysis);
  std::optional<BoxAccess> box =
      getBoxToCopy(scf::ForOp(loop).getRegion(), load, copy.tile, analysis, why);
  if (!box)
    return std::nullopt;
  copy.box = std::move(*box);
  unsigned parts = getNumParts(kernel);
  copy.isMulticast = parts > 1 && !dependsOnBlock(load.getPtr()) &&
                     !(load.getMask() && dependsOnBlock(load.getMask())) &&
                     getRowsOfShares(copy.tile, parts);
  return copy;
}

bool BoxTransport::isInPlace(ArrayRef<PlannedCopy> copies) {
  return llvm::any_of(copies, [](const PlannedCopy &copy) { return copy.box.isFoundByKernel(); });
}

std::string tessera::tilegpu::whyNotCopiedAhead(scf::ForOp loop) {
  if (getSmallStep(loop))
    return "";
  APInt step;
  bool isConstant = matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive();
  return isConstant ? "its step is not a small constant" : "its step is not a constant";
}

/// The first iteration's loads are where the program reaches the loop; those of later ones are
/// early.
std::optional<TransportObstacle> BoxTransport::findObstacleInPlace(scf::ForOp loop) const {
  if (getClusterSize(kernel) > 1)
    return TransportObstacle{"its arrays are found in memory, in a cluster", {}};
  if (std::string why = whyNotCopiedAhead(loop); !why.empty())
    return TransportObstacle{"its arrays are found in memory, and " + why, {}};
  if (Operation *op = findObstacleInLoop(loop, order))
    return TransportObstacle{"it may store to the tiles that it loads, or orders memory",
                             {{op, "here"}}};
  return std::nullopt;
}

/// Copies pass everything that is done to memory before the loop.
std::optional<TransportObstacle> BoxTransport::findObstacleBefore(scf::ForOp loop,
                                                                  const TransportPlan &plan,
                                                                  LaunchConditions &conditions) {
  std::optional<EarlyLoadObstacle> found =
      tilegpu::findObstacle(kernel, plan.getLoads(), order, analysis, conditions);
  if (!found)
    return std::nullopt;
  if (!found->load)
    return TransportObstacle{"an op before it orders memory", {{found->op, "here"}}};
  return TransportObstacle{"the same program may have stored the tiles that it loads",
                           {{found->op, "stored here"}, {found->load, "loaded here"}}};
}

std::optional<TransportObstacle> BoxTransport::findObstacle(scf::ForOp loop,
                                                            const TransportPlan &plan,
                                                            LaunchConditions &conditions) {
  if (auto found = isInPlace(plan.copies) ? findObstacleInPlace(loop)
                                          : findObstacleBefore(loop, plan, conditions))
    return found;
  if (!plan.refused.empty())
    return std::nullopt;
  if (llvm::all_of(plan.copies, [](const PlannedCopy &copy) { return copy.isRow(); }))
    return TransportObstacle{"no dot uses a tile that it loads", {}};
  // The dot releases each slot, and so must not be erased.
  llvm::DenseSet<Operation *> live = getLiveOps(loop, getReplacedBy(plan.copies));
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
    if (!live.contains(dot))
      return TransportObstacle{"no op uses the result of a dot", {{dot, "here"}}};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// By cp.async
//===----------------------------------------------------------------------===//

/// True if a loop is a recurrence: it carries a tile that is larger than the rows that it loads,
/// reduces it without a dot, and stores. An iteration waits for the one before, and so would its
/// loads. Larger rows take longer, and other programs of the SM hide their latency.
static bool isRecurrence(scf::ForOp loop) {
  int64_t bytes = 0, mostElements = 0;
  bool stores = false, reduces = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isDot = tilegpu::isDot(&op);
    if (isDot || (op.getNumRegions() != 0 && !isa<tile::ReduceOp>(op)))
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (auto type = dyn_cast<RankedTensorType>(load.getType())) {
        bytes += getTileBytes(type);
        mostElements = std::max(mostElements, type.getNumElements());
      }
    stores |= isa<tile::StoreOp>(op);
    reduces |= isa<tile::ReduceOp>(op);
  }
  bool carriesState = llvm::any_of(loop.getRegionIterArgs(), [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isFloat() && type.getNumElements() > mostElements;
  });
  return carriesState && stores && reduces && bytes <= ScheduleSizes::kMaxBytesOfRecurrence;
}

unsigned AsyncTransport::getStages(scf::ForOp loop, unsigned asked) const {
  bool isMore = assumeApart && !loop->hasAttr(kStagesAttr) && isRecurrence(loop);
  return isMore ? std::max(asked, ScheduleSizes::kStagesOfRecurrence) : asked;
}

SmallVector<tile::LoadOp> AsyncTransport::getLoads(scf::ForOp loop) const {
  bool ofAll = loop->hasAttr(kStagesAttr) || (assumeApart && isRecurrence(loop));
  return getTileLoads(loop, /*ofDots=*/!ofAll);
}

/// A slot for the tile: that of a dot if it goes to one as it is, else rows as they come
/// from memory.
std::optional<MemDescType> AsyncTransport::getSlotType(tile::LoadOp load) const {
  for (Operation *user : load->getUsers())
    if (auto buffer = dyn_cast<LocalAllocOp>(user))
      if (getCopyBytes(load, buffer.getType(), analysis) >= GPUMachine::kMinAsyncCopyBytes)
        return buffer.getType();
  auto type = cast<RankedTensorType>(load.getType());
  AccessPattern pattern = getAccessPattern(load, analysis);
  unsigned fast = pattern.getFastDim(type.getShape());
  LinearLayout memory(type.getShape());
  int64_t bits = 8 * getElementBytes(type.getElementType());
  if (type.getRank() == 2) {
    memory = fragmentMemory(type.getShape(), fast, bits);
  } else {
    for (bool isFast : {true, false})
      for (unsigned bit = 0; bit < memory.elementBits(); ++bit)
        if ((memory.dimMask(fast) >> bit & 1) == isFast)
          memory.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  }
  auto slot = MemDescType::get(load.getContext(), type.getShape(), type.getElementType(),
                               LayoutAttr::get(load.getContext(), memory));
  if (getCopyBytes(load, slot, analysis) >= GPUMachine::kMinAsyncCopyBytes)
    return slot;
  return std::nullopt;
}

std::optional<PlannedCopy> AsyncTransport::getCopy(scf::ForOp loop, tile::LoadOp load,
                                                   std::string &why) {
  if (why = whyNotCopiedByThreads(loop, load); !why.empty())
    return std::nullopt;
  std::optional<MemDescType> slot = getSlotType(load);
  if (!slot) {
    why = whyNotContiguous(GPUMachine::kMinAsyncCopyBytes);
    return std::nullopt;
  }
  PlannedCopy copy;
  copy.load = load;
  copy.tile = *slot;
  for (Operation *user : load->getUsers())
    if (isSlotOfRing(user, load, *slot))
      copy.buffers.push_back(cast<LocalAllocOp>(user));
  return copy;
}

/// The conditions for these loads of later iterations to be early.
static std::optional<TransportObstacle>
findObstacleByLaunch(scf::ForOp loop, ArrayRef<tile::LoadOp> loads, MemoryOrder &order,
                     AccessAnalysis &analysis, LaunchConditions &conditions) {
  Operation *obstacle = nullptr;
  std::optional<LaunchConditions> found =
      findConditionsInLoop(loop, loads, order, analysis, obstacle);
  if (!found)
    return TransportObstacle{"it writes to memory, or orders accesses to it", {{obstacle, "here"}}};
  conditions = std::move(*found);
  return std::nullopt;
}

static bool hasAny(const LaunchConditions &conditions) {
  return !conditions.notNegative.empty() || !conditions.programBounds.empty() ||
         conditions.mostPrograms != 0 || !conditions.apart.empty();
}

/// Other loads of the loop stay behind the stores before them.
std::optional<TransportObstacle> AsyncTransport::findObstacle(scf::ForOp loop,
                                                              const TransportPlan &plan,
                                                              LaunchConditions &conditions) {
  if (Operation *obstacle = findObstacleInLoop(loop, order)) {
    SmallVector<tile::LoadOp> copied =
        llvm::map_to_vector(plan.copies, [](const PlannedCopy &copy) { return copy.load; });
    if (auto found =
            findObstacleByLaunch(loop, getEarlyLoads(loop, copied), order, analysis, conditions))
      return found;
    bool mayAsk = assumeApart && loop->getParentOfType<tile::FuncOp>().isKernel();
    if (hasAny(conditions) && !mayAsk)
      return TransportObstacle{"it writes to memory, or orders accesses to it",
                               {{obstacle, "here"}}};
  }
  if (!getSmallStep(loop))
    return TransportObstacle{"its step is not a small constant", {}};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<tile::LoadOp> RowTransport::getLoads(scf::ForOp loop) const {
  if (!llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::ReduceOp>))
    return {};
  return getTileLoads(loop, /*ofDots=*/false);
}

std::optional<PlannedCopy> RowTransport::getCopy(scf::ForOp loop, tile::LoadOp load,
                                                 std::string &why) {
  if (why = whyNotCopiedByThreads(loop, load); !why.empty())
    return std::nullopt;
  PlannedCopy copy;
  copy.load = load;
  copy.tile = getOwnBuffer(load.getType());
  if (copy.tile && getCopyBytes(load, copy.tile, analysis) >= GPUMachine::kMaxAccessBytes)
    return copy;
  why = whyNotContiguous(GPUMachine::kMaxAccessBytes);
  return std::nullopt;
}

/// Any step is possible one iteration ahead.
std::optional<TransportObstacle> RowTransport::findObstacle(scf::ForOp loop,
                                                            const TransportPlan &plan,
                                                            LaunchConditions &conditions) {
  return findObstacleByLaunch(loop, getEarlyLoads(loop, plan.getLoads()), order, analysis,
                              conditions);
}
