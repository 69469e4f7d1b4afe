// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/HeldBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

int64_t tilegpu::getBytesOfThread(Type type) {
  LayoutAttr layout = getLayoutAttr(type);
  return layout ? layout.getNumRegisters() *
                      getElementBytes(cast<RankedTensorType>(type).getElementType())
                : 0;
}

Value tilegpu::getNarrowest(Value tile) {
  auto conversion = tile.getDefiningOp<tile::FpToFpOp>();
  if (conversion &&
      getBytesOfThread(conversion.getOperand().getType()) < getBytesOfThread(tile.getType()))
    return conversion.getOperand();
  return tile;
}

bool tilegpu::isKept(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !getLayoutAttr(type))
    return false;
  Operation *op = value.getDefiningOp();
  if (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::SplatOp>(op)))
    return false;
  if (op && !isa<tile::LoadOp>(op) && value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    if (isa<tile::ReduceOp>(user) ||
        (op->getNextNode() == user && user->hasTrait<OpTrait::Elementwise>()))
      return false;
  }
  // Integers and pointers are mostly offsets, computed again where they are needed.
  return isa<FloatType>(type.getElementType()) || !op || isa<tile::LoadOp, scf::ForOp>(op);
}

bool tilegpu::isPassedByLoads(Operation *op) {
  return isPure(op) || isa<LocalLoadOp>(op) || (isa<tile::LoadOp>(op) && !mayWriteMemory(op));
}

std::optional<unsigned> HeldBytes::findEnd(Value value) const {
  std::optional<unsigned> end;
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor || ancestor == block->getTerminator())
      return std::nullopt;
    end = std::max(end.value_or(0), order.getSlot(ancestor));
  }
  return end;
}

HeldBytes::HeldBytes(Block *block, OpOrder &order, bool countsNarrow) : block(block), order(order) {
  size_t numSlots = order.getSlot(block->getTerminator());
  std::vector<int64_t> change(numSlots + 1);
  auto addValue = [&](Value value) {
    int64_t bytes = getBytesOfThread((countsNarrow ? getNarrowest(value) : value).getType());
    if (isa<BlockArgument>(value) && value.getParentBlock() != block)
      if (Operation *inner = block->findAncestorOpInBlock(*value.getParentBlock()->getParentOp())) {
        // An inner loop holds the tiles that it carries.
        change[order.getSlot(inner)] += bytes;
        change[order.getSlot(inner) + 1] -= bytes;
        return;
      }
    Operation *start = value.getDefiningOp();
    bool startsHere = start && start->getBlock() == block;
    change[startsHere ? order.getSlot(start) : 0] += bytes;
    // Values from above are live for the next iteration, too. Registers of operands that end at an
    // op become those of its results, one by one.
    if (value.getParentBlock() == block)
      if (std::optional<unsigned> end = findEnd(value))
        change[*end] -= bytes;
  };
  llvm::DenseSet<Value> seen;
  block->walk([&](Operation *op) {
    for (Value value : op->getOperands())
      if (isKept(value) && seen.insert(value).second)
        if (block->findAncestorOpInBlock(*op) == op || !value.getDefiningOp() ||
            value.getParentBlock() == block)
          addValue(value);
  });
  held.resize(numSlots);
  std::partial_sum(change.begin(), change.end() - 1, held.begin());
  unsigned inTheWay = 0;
  for (Operation &op : *block) {
    numInTheWay.push_back(inTheWay);
    inTheWay += !tilegpu::isPassedByLoads(&op);
  }
}

void HeldBytes::moveBefore(tile::LoadOp load, Operation *place) {
  // Addresses and masks are held until then.
  llvm::SmallMapVector<Value, unsigned, 4> ends;
  for (Value operand : load->getOperands())
    if (isKept(operand) && operand.getParentBlock() == block)
      if (std::optional<unsigned> end = findEnd(operand))
        ends[operand] = *end;
  // A value that only the next op uses is not held, and the next op changes in two places.
  SmallVector<std::pair<Value, bool>> neighbours;
  for (Operation *before : {load->getPrevNode(), place->getPrevNode()})
    if (before && before != load)
      for (Value result : before->getResults())
        neighbours.push_back({result, isKept(result)});
  add(order.getSlot(load), order.getSlotBefore(place), -getBytesOfThread(load.getType()));
  order.moveBefore(load, place);
  for (auto [operand, end] : ends)
    if (unsigned later = *findEnd(operand); later > end)
      add(end, later, getBytesOfThread(operand.getType()));
  for (auto [value, wasKept] : neighbours)
    if (isKept(value) != wasKept)
      addUpToEnd(value,
                 wasKept ? -getBytesOfThread(value.getType()) : getBytesOfThread(value.getType()));
}

int64_t tilegpu::countMostHeldBytes(Operation *root, bool countsNarrow) {
  int64_t most = 0;
  OpOrder order(root);
  root->walk([&](Block *block) {
    if (!block->empty() && !isa<tile::ReduceOp>(block->getParentOp()))
      most = std::max(
          most,
          HeldBytes(block, order, countsNarrow).getMost(&block->front(), block->getTerminator()));
  });
  return most;
}

/// True if a thread has so few elements of a tile that a function of them needs few registers.
static bool hasFewElements(Type type) {
  constexpr unsigned kMaxElements = 2;
  auto tile = dyn_cast<RankedTensorType>(type);
  auto layout = tile ? dyn_cast_or_null<LayoutAttr>(tile.getEncoding()) : LayoutAttr();
  return layout && layout.getNumRegisters() <= kMaxElements;
}

/// True if what an op is lowered to takes few registers besides those of its tiles.
static bool isPlain(Operation *op) {
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  if (op->getNumRegions() == 0 && llvm::none_of(op->getOperandTypes(), isTile) &&
      llvm::none_of(op->getResultTypes(), isTile) && isPure(op))
    return true;
  if (op->hasTrait<tile::FewRegisters>())
    return true;
  if (isa_and_present<math::MathDialect>(op->getDialect()))
    return tile::getElementCost(op) == tile::ElementCost::Instruction ||
           isa<math::ExpOp, math::Exp2Op, math::SqrtOp, math::RsqrtOp>(op) ||
           hasFewElements(op->getResult(0).getType());
  return isa_and_present<arith::ArithDialect, scf::SCFDialect>(op->getDialect());
}

bool tilegpu::isPlain(tile::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    return ::isPlain(op) || isa<BarrierOp>(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

int64_t tilegpu::countHeldRegisters(tile::FuncOp kernel) {
  // Barriers, fences and prefetches are inserted after the passes that call `isPlain`.
  WalkResult result = kernel.walk([](Operation *op) {
    return ::isPlain(op) || isa<BarrierOp, tile::BarrierOp, ProxyFenceOp, PrefetchOp>(op)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return 0;
  return llvm::divideCeil(countMostHeldBytes(kernel, /*countsNarrow=*/true),
                          GPUMachine::kRegisterBytes);
}
