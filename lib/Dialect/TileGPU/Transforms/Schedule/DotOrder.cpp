// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DotOrder.h"

#include "Facts/LoopSlice.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"
#include "tessera/Machine/MMAShape.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// Fewer have plans of their own (findAsyncDots, findSkewedDot, findLateDot).
static constexpr size_t kMinDots = 3;

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// Sums of f16 are waited for where their dots begin.
bool DotOrder::isAsync(AsyncDotOp dot) const {
  return !waited.contains(dot) && !getElementTypeOrSelf(dot.getType()).isF16() &&
         canBeAsync(loop, dot, replaced);
}

bool DotOrder::isInner(AsyncDotOp dot) const {
  Operation *terminator = scf::ForOp(loop).getBody()->getTerminator();
  return llvm::any_of(dot->getUsers(), [&](Operation *user) { return user != terminator; });
}

/// A dot whose accumulator the loop carries without other uses, and whose operand in registers is
/// computed from other dots.
bool DotOrder::canBeLate(AsyncDotOp dot) const {
  scf::ForOp of = loop;
  auto carried = dyn_cast<BlockArgument>(dot.getAcc());
  if (!carried || carried.getOwner() != of.getBody() || !carried.hasOneUse() ||
      !dot.getResult().hasOneUse() ||
      of.getYieldedValues()[carried.getArgNumber() - 1] != dot.getResult())
    return false;
  Operation *operand = dot.getA().getDefiningOp();
  return isa<RankedTensorType>(dot.getA().getType()) && operand &&
         operand->getBlock() == of.getBody() && !isa<AsyncDotOp>(operand) && isPure(operand) &&
         orders.lookup(operand) > 0;
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

/// As early as what an op needs is there. Accesses of memory stay in their order.
void DotOrder::orderOps() {
  scf::ForOp of = loop;
  llvm::DenseMap<Operation *, int> ready;
  struct Accesses {
    int lastRead = 0, lastWrite = 0;
  } global, shared;
  int counter = 0;
  orders.clear();
  waits.clear();
  end = 0;
  for (Operation &op : of.getBody()->without_terminator()) {
    if (replaced.contains(&op))
      continue;
    int order = ofLate.contains(&op) ? orderOfLate : 0;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (Operation *around = of.getBody()->findAncestorOpInBlock(*producer))
            order = std::max(order, ready.lookup(around));
    });
    auto dot = dyn_cast<AsyncDotOp>(op);
    if (dot && !isAsync(dot)) {
      order = std::max(order, shared.lastWrite);
      shared.lastRead = std::max(shared.lastRead, order);
    } else if (!dot && !isMemoryEffectFree(&op)) {
      bool isRead = hasSingleEffect<MemoryEffects::Read>(&op);
      bool isShared = isa<LocalAllocOp, LocalLoadOp, LocalStoreOp, LocalDeallocOp>(op);
      Accesses &accesses = isShared ? shared : global;
      order = std::max(order, accesses.lastWrite);
      if (!isRead)
        order = std::max(order, accesses.lastRead);
      (isRead ? accesses.lastRead : accesses.lastWrite) = order;
    }
    orders[&op] = ready[&op] = order;
    end = std::max(end, order);
    if (!dot || late.contains(dot) || !isAsync(dot))
      continue;
    if (isInner(dot))
      ready[&op] = counter = std::max(counter, order) + 1;
    waits[dot] = isInner(dot) ? counter : 0;
  }
  end = std::max(end, counter) + 1;
  for (auto &[dot, wait] : waits)
    if (wait == 0)
      wait = end;
  for (Operation *dot : late) {
    orders[dot] = 0;
    waits[dot] = orderOfLate;
  }
}

/// The order of the first op that needs a result.
int DotOrder::getFirstUse(Operation *op) const {
  scf::ForOp of = loop;
  int first = end;
  for (Operation *user : op->getUsers()) {
    Operation *around = of.getBody()->findAncestorOpInBlock(*user);
    auto found = orders.find(around);
    first = std::min(first, found == orders.end() ? 0 : found->second);
  }
  return first;
}

/// Tiles that wait for no dot are computed where they are used, rather than held in registers.
void DotOrder::sinkOps() {
  scf::ForOp of = loop;
  for (Operation &op : llvm::reverse(of.getBody()->without_terminator())) {
    auto found = orders.find(&op);
    if (found == orders.end() || found->second != 0 || isa<AsyncDotOp>(op) || op.use_empty() ||
        !isPure(&op) || !llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      continue;
    found->second = getFirstUse(&op);
  }
}

/// True if the next iteration's operand of a dot is computed while the dot is in flight.
bool DotOrder::isOverwritten(AsyncDotOp dot) const {
  auto wait = waits.find(dot);
  Operation *next = wait != waits.end() ? findNextOperand(loop, dot) : nullptr;
  return next && orders.lookup(next) < wait->second;
}

void DotOrder::orderAll(ArrayRef<AsyncDotOp> dots, bool isLate) {
  late.clear();
  ofLate.clear();
  orderOps();
  if (waits.empty())
    return;
  if (isLate) {
    for (AsyncDotOp dot : dots)
      if (isAsync(dot) && canBeLate(dot)) {
        late.insert(dot);
        ofLate.insert(dot.getA().getDefiningOp());
      }
    if (hasLate()) {
      // Behind all that is done without them.
      orderOfLate = end;
      orderOps();
    }
  }
  sinkOps();
}

std::optional<DotOrder> DotOrder::plan(scf::ForOp loop, const ReplacedOps &replaced, bool isLate) {
  DotOrder order(loop, replaced);
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  SmallVector<AsyncDotOp> dots;
  bool isElsewhere = false;
  loop.getBody()->walk([&](AsyncDotOp dot) {
    isElsewhere |= dot->getBlock() != loop.getBody() || dot.isInFlight() || !live.contains(dot);
    dots.push_back(dot);
  });
  if (isElsewhere || dots.size() < kMinDots)
    return std::nullopt;
  order.orderAll(dots, isLate);
  for (auto *next = dots.begin(); next != dots.end();) {
    if (!order.isOverwritten(*next)) {
      ++next;
      continue;
    }
    // Others may be waited for elsewhere then.
    order.waited.insert(*next);
    order.orderAll(dots, isLate);
    next = dots.begin();
  }
  if (order.waits.empty())
    return std::nullopt;
  return order;
}

int64_t DotOrder::getRegistersOfResults(unsigned warps) const {
  int64_t most = 0;
  llvm::DenseMap<int, int64_t> begun;
  for (auto dot : scf::ForOp(loop).getBody()->getOps<AsyncDotOp>())
    if (isInner(dot)) {
      int64_t &registers = begun[orders.lookup(dot)];
      registers += getRegisters(dot.getType(), warps);
      most = std::max(most, registers);
    }
  return most;
}

int64_t DotOrder::getRegistersOfOperands(unsigned warps) const {
  int64_t words = 0;
  for (Operation *dot : late)
    words += getRegisters(AsyncDotOp(dot).getA().getType(), warps);
  return words;
}

//===----------------------------------------------------------------------===//
// Operands in registers
//===----------------------------------------------------------------------===//

/// Bytes of shared memory that a dot reads: its first operand once, and the second one for each
/// group of rows.
static int64_t getSharedBytes(AsyncDotOp dot) {
  int64_t bytes = 0;
  if (auto a = dyn_cast<MemDescType>(dot.getA().getType()))
    bytes += a.getNumBytes();
  if (auto b = dyn_cast<MemDescType>(dot.getB().getType()))
    bytes += b.getNumBytes() * llvm::divideCeil(dot.getType().getDimSize(0), kRowsOfWarpgroup);
  return bytes;
}

bool DotOrder::hold(int64_t spare, unsigned warps, const GPUMachine &machine) {
  scf::ForOp of = loop;
  // Where threads exchange tiles, warps meet in each iteration, and cannot take turns.
  auto exchanges = [&](LocalAllocOp buffer) {
    return buffer.getSource() && !replaced.contains(buffer);
  };
  if (llvm::any_of(of.getBody()->getOps<LocalAllocOp>(), exchanges))
    return false;
  for (auto dot : of.getBody()->getOps<AsyncDotOp>()) {
    auto buffer = dot.getA().getDefiningOp<LocalAllocOp>();
    if (!buffer || !buffer.getSource() || !of.isDefinedOutsideOfLoop(buffer) ||
        llvm::is_contained(held, buffer) ||
        getSharedBytes(dot) < dot.getCycles(machine) * machine.sharedBandwidth)
      continue;
    held.push_back(buffer);
    spare -= getRegisters(buffer.getSource().getType(), warps);
  }
  if (spare < 0)
    held.clear();
  return !held.empty();
}

/// Threads read what they hold in front of the loop.
void DotOrder::readHeld() const {
  scf::ForOp of = loop;
  OpBuilder builder(of);
  for (LocalAllocOp buffer : held) {
    auto read = LocalLoadOp::create(builder, buffer.getLoc(),
                                    cast<RankedTensorType>(buffer.getSource().getType()), buffer);
    for (auto dot : of.getBody()->getOps<AsyncDotOp>())
      if (dot.getA() == buffer.getResult())
        dot->replaceUsesOfWith(buffer, read);
  }
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

void DotOrder::addBeforeUsers(Operation *op) { orders[op] = getFirstUse(op); }

/// Late dots begin behind the inner ones, whose waits need not include them then.
void DotOrder::moveLateDots() const {
  scf::ForOp of = loop;
  Operation *last = nullptr;
  for (auto dot : of.getBody()->getOps<AsyncDotOp>())
    if (!late.contains(dot) && isInner(dot) && orders.lookup(dot) == 0)
      last = dot;
  for (Operation *dot : late)
    if (last && dot->isBeforeInBlock(last)) {
      dot->moveAfter(last);
      last = dot;
    }
}

void DotOrder::propose() const {
  scf::ForOp of = loop;
  MLIRContext *context = of.getContext();
  moveLateDots();
  readHeld();
  // An op that says nothing has the order of the one before.
  int order = 0;
  for (Operation &op : of.getBody()->without_terminator()) {
    auto found = orders.find(&op);
    if (found == orders.end())
      continue;
    bool isLate = late.contains(&op);
    if (auto wait = waits.find(&op); wait != waits.end())
      op.setAttr(kNodeAttr, NodeAttr::getMMA(context, isLate, found->second, wait->second));
    else if (found->second != order)
      op.setAttr(kNodeAttr, NodeAttr::get(context, getNodeRole(&op), /*stage=*/0, found->second));
    if (!isLate)
      order = found->second;
  }
}

bool tessera::tilegpu::isSlotOfRing(Operation *user, tile::LoadOp load, MemDescType tile) {
  auto buffer = dyn_cast<LocalAllocOp>(user);
  return buffer && buffer.getType() == tile && buffer->getBlock() == load->getBlock();
}

LocalAllocOp tessera::tilegpu::readFromRing(tile::LoadOp load, MemDescType tile, DotOrder *order) {
  Block *body = load->getBlock();
  LocalAllocOp buffer;
  Operation *first = nullptr;
  for (Operation *user : load->getUsers()) {
    if (isSlotOfRing(user, load, tile)) {
      buffer = cast<LocalAllocOp>(user);
      continue;
    }
    Operation *around = body->findAncestorOpInBlock(*user);
    if (!first || around->isBeforeInBlock(first))
      first = around;
  }
  OpBuilder builder(load.getContext());
  builder.setInsertionPointAfter(load);
  if (!buffer)
    buffer = LocalAllocOp::create(builder, load.getLoc(), tile, load);
  if (!first)
    return buffer;
  if (!buffer->isBeforeInBlock(first))
    buffer->moveBefore(first);
  builder.setInsertionPoint(first);
  auto read = LocalLoadOp::create(builder, load.getLoc(), load.getType(), buffer);
  load.getResult().replaceUsesWithIf(
      read, [&](OpOperand &use) { return !isSlotOfRing(use.getOwner(), load, tile); });
  if (order)
    order->addBeforeUsers(read);
  return buffer;
}
