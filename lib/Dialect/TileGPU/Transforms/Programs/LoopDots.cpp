// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopDots.h"

#include "PersistentKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// True if a use is an operand of a dot that is not the accumulator.
static bool isOperand(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<DotOpInterface>(user))
    return use.getOperandNumber() != 2;
  return isa<tile::DotScaledOp>(user);
}

bool tessera::tilegpu::reachesDot(Value tile, Block *block) {
  SmallVector<Value> work{tile};
  llvm::SmallDenseSet<Operation *, 16> seen;
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      if (isOperand(use))
        return true;
      Operation *user = use.getOwner();
      // Parts of an operand go to slots of the ring that the dot reads.
      if (auto store = dyn_cast<LocalStoreOp>(user))
        if (auto slot = store.getBuffer().getDefiningOp<MemDescIndexOp>();
            slot && use.get() == store.getValue() && seen.insert(store).second)
          work.push_back(slot.getRing());
      if (user->getBlock() != block || user->getNumResults() != 1 ||
          !(isMemoryEffectFree(user) || isa<LocalAllocOp, LocalLoadOp>(user)) ||
          isa<tile::ReduceOp, DotOpInterface>(user) || !seen.insert(user).second)
        continue;
      work.push_back(user->getResult(0));
    }
  return false;
}

NodeRole tessera::tilegpu::getNodeRole(Operation *op) {
  if (isDot(op))
    return NodeRole::MMA;
  return isa<tile::StoreOp, TMAStoreOp>(op) ? NodeRole::Store : NodeRole::Vector;
}

void tessera::tilegpu::setOrder(Operation *op, int order) {
  for (; op && !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
    if (!node)
      op->setAttr(kNodeAttr, NodeAttr::get(op->getContext(), getNodeRole(op), /*stage=*/0, order));
    if (!node || node.getRole() != NodeRole::Copy)
      return;
  }
}

bool tessera::tilegpu::isZero(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  if (auto elements = dyn_cast<DenseElementsAttr>(constant)) {
    if (!elements.isSplat())
      return false;
    constant = elements.getSplatValue<Attribute>();
  }
  if (auto number = dyn_cast<FloatAttr>(constant))
    return number.getValue().isPosZero();
  auto number = dyn_cast<IntegerAttr>(constant);
  return number && number.getValue().isZero();
}

Value tessera::tilegpu::skipTrans(Value buffer) {
  while (auto trans = buffer.getDefiningOp<MemDescTransOp>())
    buffer = trans.getBuffer();
  return buffer;
}

SmallVector<Operation *> tessera::tilegpu::getUses(LocalAllocOp buffer) {
  SmallVector<Operation *> uses;
  SmallVector<Value> names{buffer.getResult()};
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (auto trans = dyn_cast<MemDescTransOp>(user))
        names.push_back(trans.getResult());
      else
        uses.push_back(user);
    }
  return uses;
}

std::string tessera::tilegpu::whyNotAsync(scf::ForOp loop, AsyncDotOp dot,
                                          const ReplacedOps &replaced) {
  if (dot.isInFlight())
    return "is asynchronous already";
  if (std::string why = dot.asAsync().whyNotInFlight(); !why.empty())
    return why;
  for (Value operand : {Value(dot.getA()), Value(dot.getB())}) {
    Operation *buffer =
        isa<MemDescType>(operand.getType()) ? skipTrans(operand).getDefiningOp() : nullptr;
    if (buffer && loop->isAncestor(buffer) && !replaced.contains(buffer))
      return "is asynchronous, and reads a buffer that every iteration writes";
  }
  return "";
}

bool tessera::tilegpu::canBeAsync(scf::ForOp loop, AsyncDotOp dot, const ReplacedOps &replaced) {
  return whyNotAsync(loop, dot, replaced).empty();
}

Operation *tessera::tilegpu::findNextOperand(scf::ForOp loop, AsyncDotOp dot) {
  auto carried = dyn_cast<BlockArgument>(dot.getA());
  if (!carried || carried.getOwner() != loop.getBody())
    return nullptr;
  Operation *op = loop.getYieldedValues()[carried.getArgNumber() - 1].getDefiningOp();
  return op && op->getBlock() == loop.getBody() ? op : nullptr;
}

/// True if a dot of copied tiles adds to what the loop carries, which nothing else uses.
static bool mayGoOn(scf::ForOp loop, AsyncDotOp dot, const ReplacedOps &replaced) {
  if (dot->getBlock() != loop.getBody() || !isa<MemDescType>(dot.getA().getType()) ||
      !canBeAsync(loop, dot, replaced))
    return false;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  auto carried = dyn_cast<BlockArgument>(dot.getAcc());
  return carried && carried.getOwner() == loop.getBody() && carried.hasOneUse() &&
         dot.getResult().hasOneUse() && *dot.getResult().getUsers().begin() == yield &&
         yield.getOperand(carried.getArgNumber() - 1) == dot.getResult();
}

SmallVector<AsyncDotOp> tessera::tilegpu::findAsyncDots(scf::ForOp loop,
                                                        const ReplacedOps &replaced) {
  SmallVector<AsyncDotOp> dots;
  loop.getBody()->walk([&](AsyncDotOp dot) { dots.push_back(dot); });
  if (!llvm::all_of(dots, [&](AsyncDotOp dot) { return mayGoOn(loop, dot, replaced); }))
    dots.clear();
  return dots;
}

int64_t tessera::tilegpu::getRegisters(Type type, unsigned warps) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return 1;
  int64_t bytes = getTileBytes(tile);
  return llvm::divideCeil(bytes, GPUMachine::kRegisterBytes * GPUMachine::kWarpSize * warps);
}

AsyncDotOp tessera::tilegpu::findSkewedDot(scf::ForOp loop, const ReplacedOps &replaced) {
  SmallVector<AsyncDotOp> dots;
  loop.getBody()->walk([&](AsyncDotOp dot) { dots.push_back(dot); });
  if (dots.size() != 2 || dots[0]->getBlock() != loop.getBody() ||
      dots[1]->getBlock() != loop.getBody() || dots[1].isInFlight() ||
      !canBeAsync(loop, dots[0], replaced))
    return {};
  AsyncDotOp dot = dots.front();
  auto buffer = skipTrans(dot.getB()).getDefiningOp<LocalAllocOp>();
  if (!loop.isDefinedOutsideOfLoop(dot.getA()) || !loop.isDefinedOutsideOfLoop(dot.getAcc()) ||
      !buffer || !replaced.contains(buffer))
    return {};
  return dot;
}

AsyncDotOp tessera::tilegpu::findLateDot(scf::ForOp loop, const ReplacedOps &replaced) {
  // The first one needs nothing that the loop carries.
  AsyncDotOp early = findSkewedDot(loop, replaced);
  if (!early)
    return {};
  AsyncDotOp late;
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
    if (dot != early)
      late = dot;
  auto buffer = skipTrans(late.getB()).getDefiningOp<LocalAllocOp>();
  Operation *operand = late.getA().getDefiningOp(), *terminator = loop.getBody()->getTerminator();
  if (!buffer || !canBeAsync(loop, late, replaced) || !replaced.contains(buffer) ||
      !isa<RankedTensorType>(late.getA().getType()) || !operand ||
      operand->getBlock() != loop.getBody() || !early->isBeforeInBlock(operand) ||
      !late.getResult().hasOneUse() || *late.getResult().getUsers().begin() != terminator)
    return {};
  unsigned index = late.getResult().getUses().begin()->getOperandNumber();
  bool isBefore = llvm::any_of(loop.getRegionIterArg(index).getUsers(), [&](Operation *user) {
    Operation *around = loop.getBody()->findAncestorOpInBlock(*user);
    return !around || around->isBeforeInBlock(early) || around == terminator;
  });
  return isBefore ? AsyncDotOp() : late;
}

int64_t tessera::tilegpu::getArithmeticCycles(Operation *op, const GPUMachine &machine) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || isa<arith::ConstantOp>(op))
    return 0;
  auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!tile)
    return 0;
  bool isFunction = isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp>(op);
  return tile.getNumElements() / (isFunction ? machine.functionRate : machine.issueRate);
}

IterationWork tessera::tilegpu::getIterationWork(scf::ForOp loop, const GPUMachine &machine) {
  IterationWork work;
  // Integers and pointers are indices, which another thread computes.
  auto isFloatTile = [](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && isa<FloatType>(tile.getElementType());
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto dot = dyn_cast<DotOpInterface>(op)) {
      work.dots += dot.getCycles(machine);
    } else if (isa<tile::ReduceOp>(op) && isFloatTile(op.getOperand(0).getType())) {
      auto tile = cast<RankedTensorType>(op.getOperand(0).getType());
      work.arithmetic += tile.getNumElements() / machine.issueRate;
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (auto tile = dyn_cast<RankedTensorType>(load.getType())) {
        // If a tile is for all blocks of a cluster, each reads its share from the second-level
        // cache.
        auto node = load->getAttrOfType<NodeAttr>(kNodeAttr);
        work.loadedBytes +=
            getTileBytes(tile) / (node && node.getMulticast() ? getNumParts(loop) : 1);
      }
    } else if (op.getNumResults() > 0 && isFloatTile(op.getResult(0).getType())) {
      work.arithmetic += getArithmeticCycles(&op, machine);
    }
  }
  return work;
}

void tessera::tilegpu::proposeSchedule(scf::ForOp loop, ArrayRef<ChannelAttr> channels,
                                       bool isPingPong, const IterationOverlap &overlap,
                                       const GPUMachine &machine) {
  IterationWork work = getIterationWork(loop, machine);
  ScheduleCost cost = ScheduleCost::get(work, overlap, machine);
  loop->setAttr(kScheduleAttr,
                ScheduleAttr::get(loop.getContext(), channels, isPingPong, cost.cycles));
  emitRemark(loop, RemarkKind::LoopScheduled)
      << "an iteration is expected to take " << named("cycles", cost.cycles)
      << " cycles of an SM, bound by " << named("bound", describe(cost.bound)) << ": "
      << named("dots", work.dots) << " of dots, " << named("arithmetic", work.arithmetic)
      << " of arithmetic, " << named("copies", cost.copies) << " of copies, "
      << named("programs", overlap.programs) << " programs at once";
}

int64_t tessera::tilegpu::getTimelySlots(scf::ForOp loop, const GPUMachine &machine) {
  int64_t latency =
      getNumParts(loop) > 1 ? machine.getMulticastLatency() : machine.getBusyMemoryLatency();
  // A slot is read, and one more by the dot in flight.
  int64_t cycles = std::max<int64_t>(getIterationWork(loop, machine).dots, 1);
  return std::min<int64_t>(kMaxTimelySlots, llvm::divideCeil(latency, cycles) + 2);
}

/// The outermost loop of a program that both are in; null if there is none.
static Operation *findCommonLoop(Operation *a, Operation *b) {
  Operation *common = nullptr;
  for (Operation *op = a->getParentOp(); op && !isa<tile::FuncOp>(op); op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op) && !op->hasAttr(kOverProgramsAttr) && op->isAncestor(b))
      common = op;
  return common;
}

std::optional<Operation *> tessera::tilegpu::findWayBefore(Operation *earlier, Operation *later) {
  if (Operation *loop = findCommonLoop(earlier, later))
    return loop;
  for (Operation *op = later; op && !isa<tile::FuncOp>(op); op = op->getParentOp())
    if (Operation *beside = op->getBlock()->findAncestorOpInBlock(*earlier);
        beside && beside != op && beside->isBeforeInBlock(op))
      return nullptr;
  return std::nullopt;
}

std::optional<int64_t> tessera::tilegpu::getSmallStep(scf::ForOp loop) {
  Type type = loop.getInductionVar().getType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  APInt step;
  // Not of a GPU: a counter that is so many bits wider than its step does not wrap.
  constexpr unsigned kBitsAhead = 16;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
      step.getSignificantBits() + kBitsAhead >= width)
    return std::nullopt;
  return step.getSExtValue();
}

/// True if a dot by multiply-add can read an operand from the ring that it is copied to, as far as
/// its loop decides that (SlicedDot::findObstacle).
static bool readsFromRing(tile::DotOp dot, Value operand, scf::ForOp loop,
                          const ReplacedOps &replaced) {
  return dot->getBlock() == loop.getBody() && operand.hasOneUse() &&
         replaced.contains(operand.getDefiningOp());
}

/// True if an op stands behind a loop, or behind one that the loop is in.
static bool isBehind(scf::ForOp loop, Operation *op) {
  for (Operation *at = loop; at && !isa<tile::FuncOp>(at); at = at->getParentOp())
    if (Operation *beside = at->getBlock()->findAncestorOpInBlock(*op); beside && beside != at)
      return at->isBeforeInBlock(beside);
  return false;
}

int64_t tessera::tilegpu::getOtherBytes(scf::ForOp loop, const ReplacedOps &replaced) {
  int64_t bytes = 0;
  loop->getParentOfType<tile::FuncOp>().walk([&](Operation *op) {
    // Buffers of another loop may share the memory of this one's rings.
    auto around = op->getParentOfType<LoopLikeOpInterface>();
    if (around && !around->isAncestor(loop) && !loop->isAncestor(around))
      return;
    // One that begins behind the loop, or behind one around it, ends there, too.
    auto isLater = [&](Operation *buffer) { return isBehind(loop, buffer); };
    auto isOver = [&](Operation *user) {
      Operation *beside = loop->getBlock()->findAncestorOpInBlock(*user);
      return beside ? beside->isBeforeInBlock(loop) : findWayBefore(user, loop) == nullptr;
    };
    if (auto buffer = dyn_cast<LocalAllocOp>(op))
      if (!replaced.contains(op) && !llvm::all_of(op->getUsers(), isOver) && !isLater(op))
        bytes += buffer.getType().getNumBytes();
    // A dot by multiply-add keeps its operands there, where it cannot read them from the
    // rings (tilegpu-prefetch).
    auto dot = dyn_cast<tile::DotOp>(op);
    bool readsRings = dot && readsFromRing(dot, dot.getA(), loop, replaced) &&
                      readsFromRing(dot, dot.getB(), loop, replaced);
    if (isa<tile::DotOp, tile::DotScaledOp>(op) && loop->isAncestor(op) && !readsRings)
      for (Value operand : op->getOperands().drop_back())
        if (auto tile = dyn_cast<RankedTensorType>(operand.getType()))
          bytes += getTileBytes(tile);
  });
  return bytes;
}
