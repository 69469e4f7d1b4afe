// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SchedulePlan.h"

#include "Facts/LoopSlice.h"
#include "Facts/WarpRegisters.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// A loop
//===----------------------------------------------------------------------===//

void PlannedLoop::addTo(ProducerSlice &slice) const {
  slice.needLoop(loop);
  for (const PlannedCopy &copy : copies)
    slice.needBox(copy.box);
}

std::optional<unsigned> PlannedLoop::getChannel(Value operand) const {
  Operation *buffer = skipTrans(operand).getDefiningOp();
  for (const PlannedCopy &copy : copies)
    if (llvm::is_contained(copy.buffers, buffer))
      return copy.channel;
  return std::nullopt;
}

bool PlannedLoop::isReadFrom(AsyncDotOp dot, const PlannedCopy &copy) const {
  auto isFrom = [&](Operation *op) {
    Operation *inBody = dot->getBlock()->findAncestorOpInBlock(*op);
    return inBody && !inBody->isBeforeInBlock(dot);
  };
  return llvm::any_of(copy.buffers,
                      [&](LocalAllocOp buffer) { return llvm::any_of(getUses(buffer), isFrom); });
}

Operation *PlannedLoop::findNeedOfLateDot() const {
  scf::ForOp of = loop;
  AsyncDotOp late = lateDot;
  ReplacedOps replaced = getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  auto yield = cast<scf::YieldOp>(of.getBody()->getTerminator());
  unsigned index = llvm::find(yield.getOperands(), late.getResult()) - yield.operand_begin();
  for (Operation &op : of.getBody()->without_terminator()) {
    if (replaced.contains(&op) || !live.contains(&op) || &op == late)
      continue;
    auto isIn = [&](Operation *user) { return op.isAncestor(user); };
    if (&op == late.getA().getDefiningOp() ||
        llvm::any_of(of.getRegionIterArg(index).getUsers(), isIn))
      return &op;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// All loops
//===----------------------------------------------------------------------===//

ReplacedOps SchedulePlan::getReplaced() const {
  ReplacedOps replaced = getReplacedBy(program.copies);
  for (const PlannedLoop &planned : loops)
    replaced.insert_range(planned.getReplaced());
  return replaced;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// True if a dot's result is what the loop carries, as it is or transposed. A transposed tile is
/// the same registers.
static bool isCarried(Value result, Operation *terminator) {
  return llvm::any_of(result.getUsers(), [&](Operation *user) {
    return user == terminator ||
           (tile::permutesDimensions(user) && isCarried(user->getResult(0), terminator));
  });
}

/// Results of dots that are live at once, before the next dot reads them.
static int64_t getRegistersOfResults(scf::ForOp loop, unsigned warps) {
  int64_t most = 0;
  SmallVector<AsyncDotOp> live;
  for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>()) {
    llvm::erase_if(live, [&](AsyncDotOp earlier) {
      return llvm::all_of(earlier->getUsers(), [&](Operation *user) {
        Operation *around = loop.getBody()->findAncestorOpInBlock(*user);
        return around && around->isBeforeInBlock(dot);
      });
    });
    if (!isCarried(dot.getResult(), loop.getBody()->getTerminator()))
      live.push_back(dot);
    int64_t together = 0;
    for (AsyncDotOp held : live)
      together += getRegisters(held.getType(), warps);
    most = std::max(most, together);
  }
  return most;
}

int64_t SchedulePlan::getRegisters(const PlannedLoop &planned) const {
  scf::ForOp loop = planned.loop;
  const unsigned warps = options.warps;
  int64_t carried = 0, results = 0, operands = 0, others = 0;
  for (Value value : loop.getRegionIterArgs())
    carried += tilegpu::getRegisters(value.getType(), warps);
  if (const std::optional<DotOrder> &order = planned.order) {
    results = order->getRegistersOfResults(warps);
    operands = order->getRegistersOfOperands(warps);
    others = order->hasLate() ? RegisterBudget::kWithOrderOfLate : RegisterBudget::kWithOrder;
  } else if (AsyncDotOp late = planned.lateDot) {
    // One operand is held while the next is computed.
    for (AsyncDotOp dot : loop.getBody()->getOps<AsyncDotOp>())
      if (dot != late)
        results += tilegpu::getRegisters(dot.getType(), warps);
    operands = tilegpu::getRegisters(late.getA().getType(), warps);
    others = RegisterBudget::kWithLateDot;
  } else if (AsyncDotOp ahead = planned.skewedDot) {
    // An operand half as wide is held at once with the results of two iterations.
    int64_t result = tilegpu::getRegisters(ahead.getType(), warps);
    results = 2 * result;
    operands = result / 2;
    others = RegisterBudget::kWithDotAhead;
  } else {
    results = getRegistersOfResults(loop, warps);
    others = results ? RegisterBudget::kWithConversions : RegisterBudget::kWithCarriedDots;
  }
  if (!isByTMA())
    others += RegisterBudget::kOfAddresses;
  return carried + results + operands + others;
}

int64_t SchedulePlan::getRegisters() const {
  int64_t wanted = 0;
  for (const PlannedLoop &planned : loops)
    wanted = std::max(wanted, getRegisters(planned));
  for (scf::ForOp loop : unplanned) {
    PlannedLoop other;
    other.loop = loop;
    wanted = std::max(wanted, getRegisters(other));
  }
  return wanted;
}

int64_t SchedulePlan::getSpareRegisters(const PlannedLoop &planned) const {
  // ptxas decides: if it spills, nothing is held. So the reserve is the smaller one.
  constexpr int64_t kReserve = RegisterBudget::kWithOrderOfLate - RegisterBudget::kWithOrder;
  int64_t wanted = getRegisters(planned) - kReserve;
  bool hasMask = llvm::any_of(*scf::ForOp(planned.loop).getBody(), [](Operation &op) {
    return isa<arith::CmpIOp>(op) && isa<RankedTensorType>(op.getResult(0).getType());
  });
  if (hasMask)
    wanted += RegisterBudget::kWithIndices;
  return WarpRegisters(options.warps).getMost() - wanted;
}

//===----------------------------------------------------------------------===//
// Shared memory and programs
//===----------------------------------------------------------------------===//

int64_t SchedulePlan::getSlotBytes() const {
  int64_t bytes = 0;
  for (const Channel &channel : channels)
    bytes += channel.getSlotBytes();
  return bytes;
}

int64_t SchedulePlan::getOtherBytes() const {
  ReplacedOps replaced = getReplaced();
  if (!isByTMA())
    return tilegpu::getOtherBytes(loops.front().loop, replaced);
  Block &body = tile::FuncOp(function).getBody().front();
  llvm::DenseMap<Operation *, size_t> places;
  for (Operation &op : body)
    places.try_emplace(&op, places.size());
  auto getPlace = [&](Operation *op) { return places.lookup(body.findAncestorOpInBlock(*op)); };
  std::vector<int64_t> live(places.size(), 0);
  int64_t sum = 0;
  tile::FuncOp(function).walk([&](LocalAllocOp buffer) {
    if (replaced.contains(buffer))
      return;
    size_t first = getPlace(buffer), last = first;
    SmallVector<Operation *> work{buffer};
    while (!work.empty())
      for (Operation *user : work.pop_back_val()->getUsers()) {
        last = std::max(last, getPlace(user));
        if (isa<MemDescTransOp, MemDescIndexOp>(user))
          work.push_back(user);
      }
    sum += buffer.getType().getNumBytes();
    for (size_t place = first; place <= last; ++place)
      live[place] += buffer.getType().getNumBytes();
  });
  bool isOrdered = any([](const PlannedLoop &planned) { return planned.order.has_value(); });
  return isOrdered ? *llvm::max_element(live) : sum;
}

int64_t SchedulePlan::countPrograms() const {
  if (program.isPersistent)
    return 1;
  if (int64_t most = std::max(program.programs, program.shared);
      most > 1 || !transport.isBeforeLayouts())
    return most;
  RingResources resources = getResources();
  // A producer is one more warp.
  resources.warps += isByTMA() && !program.isWithoutProducer;
  return resources.countPrograms(slots);
}

int64_t SchedulePlan::getCycles(int64_t programs) const {
  int64_t cycles = 0;
  for (const PlannedLoop &planned : loops)
    cycles += ScheduleCost::get(getIterationWork(planned.loop, machine),
                                {programs, planned.hasDotBeside()}, machine)
                  .cycles;
  return cycles;
}

bool SchedulePlan::refuse(Operation *loop, const TransportObstacle &obstacle) const {
  if (!transport.isBeforeLayouts())
    return false;
  RemarkInFlight remark =
      emitRemark(loop, isByTMA() ? RemarkKind::LoopNotSpecialized : RemarkKind::LoopNotPipelined)
      << (isByTMA() ? "loop is not specialised: " : "loop is not pipelined: ")
      << named("reason", obstacle.why);
  for (auto [place, note] : obstacle.notes)
    remark.attachNote(place->getLoc()) << note;
  return false;
}

bool SchedulePlan::refuse(Operation *loop, const Twine &why, Operation *place) const {
  TransportObstacle obstacle{why.str(), {}};
  if (place)
    obstacle.notes.emplace_back(place, "here");
  return refuse(loop, obstacle);
}

void tessera::tilegpu::dropLateDots(SchedulePlan &plan) {
  for (PlannedLoop &planned : plan.loops)
    if (planned.hasLateDot())
      planned.order = DotOrder::plan(planned.loop, planned.getReplaced(), /*isLate=*/false);
}
