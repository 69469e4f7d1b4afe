// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProducerSlice.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MachineView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

SmallVector<unsigned> ProducerSlice::get(const Numbers &numbers, Operation *op) {
  auto found = numbers.find(op);
  if (found == numbers.end())
    return {};
  SmallVector<unsigned> result(found->second.begin(), found->second.end());
  llvm::sort(result);
  return result;
}

bool ProducerSlice::isAround(Operation *op) const {
  return llvm::any_of(copied, [&](scf::ForOp loop) { return op->isAncestor(loop); }) ||
         llvm::any_of(markers, [&](Operation *marker) { return op->isAncestor(marker); });
}

//===----------------------------------------------------------------------===//
// Needed values
//===----------------------------------------------------------------------===//

void ProducerSlice::needLoop(scf::ForOp loop) {
  for (Operation *op = loop; op != kernel; op = op->getParentOp()) {
    if (auto around = dyn_cast<scf::ForOp>(op)) {
      need(around.getLowerBound());
      need(around.getUpperBound());
      need(around.getStep());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      need(branch.getCondition());
    } else if (auto around = dyn_cast<scf::WhileOp>(op)) {
      isUncounted = true;
      need(around.getConditionOp().getCondition());
    } else {
      return refuse("it is in an op that is neither a loop nor a branch");
    }
  }
}

void ProducerSlice::needBox(const BoxAccess &box) {
  auto needAll = [&](const ScalarPolynomial &polynomial) {
    for (const ScalarTerm &term : polynomial.getTerms())
      for (const ScalarFactor &factor : term.factors)
        need(factor.value);
  };
  for (const BoxDim &dim : box.getDims())
    needAll(dim.coordinate);
  for (const ScalarPolynomial &guard : box.getGuards())
    needAll(guard);
}

/// The initial value of a loop's variable, and its next one.
void ProducerSlice::needArgument(BlockArgument argument) {
  Operation *op = argument.getOwner()->getParentOp();
  if (op == kernel)
    return;
  unsigned number = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (argument == loop.getInductionVar())
      return;
    --number;
    carried[op].insert(number);
    need(loop.getInitArgs()[number]);
    need(loop.getYieldedValues()[number]);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    if (argument.getOwner() == loop.getAfterBody()) {
      passed[op].insert(number);
      need(loop.getConditionOp().getArgs()[number]);
      return;
    }
    carried[op].insert(number);
    need(loop.getInits()[number]);
    need(loop.getYieldOp().getOperand(number));
  } else {
    refuse("it depends on a block argument of neither a loop nor the kernel");
  }
}

/// A result of a loop or branch that the partition has, too.
void ProducerSlice::needResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    need(loop.getRegionIterArg(number));
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    need(loop.getAfterArguments()[number]);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    carried[op].insert(number);
    need(branch.thenYield().getOperand(number));
    need(branch.elseYield().getOperand(number));
  } else {
    refuse("it depends on a result of an op that is neither a loop nor a branch");
  }
}

/// True if a scalar is made of scalars alone, so that it can be made twice, by any warp.
static bool isArithmetic(Operation *op) {
  return op->getNumRegions() == 0 && isPure(op) && !isa<CallOpInterface>(op) &&
         !maySeeMachine(op) && llvm::none_of(op->getOperandTypes(), [](Type type) {
           return isa<RankedTensorType>(type);
         });
}

void ProducerSlice::need(Value value) {
  if (sent.contains(value) || !needed.insert(value).second)
    return;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return needArgument(argument);
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (isAround(op))
    return needResult(result);
  if (!isArithmetic(op))
    return send(value);
  for (Value operand : op->getOperands())
    need(operand);
}

void ProducerSlice::send(Value value) {
  Operation *op = value.getDefiningOp();
  Type type = value.getType();
  auto integer = dyn_cast<IntegerType>(type);
  if (!isa<IndexType, tile::PointerType, TensorMapType>(type) &&
      (!integer || integer.getWidth() > 64))
    return refuse("its bounds or conditions depend on values that are no integers");
  // A message in each iteration, and nothing would be copied ahead.
  if (llvm::any_of(copied, [&](scf::ForOp loop) { return loop->isProperAncestor(op); }))
    return refuse("an index is loaded in the loop, or is a result of a loop or branch in it");
  sent.insert(value);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

llvm::MapVector<Operation *, ProducerMessage> ProducerSlice::getMessages() const {
  llvm::DenseMap<Operation *, SmallVector<Value, 2>> ofOp;
  llvm::DenseSet<Block *> blocks;
  for (Value value : sent) {
    ofOp[value.getDefiningOp()].push_back(value);
    blocks.insert(value.getParentBlock());
  }
  for (Operation *marker : markers)
    blocks.insert(marker->getBlock());
  llvm::MapVector<Operation *, ProducerMessage> messages;
  tile::FuncOp(kernel).walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        if (!blocks.contains(&block))
          continue;
        // As late as possible before the first use: one message for all of them.
        ProducerMessage message;
        Operation *last = nullptr;
        auto send = [&] {
          if (last)
            messages[last] = std::move(message);
          message = {};
          last = nullptr;
        };
        for (Operation &inner : block) {
          bool isMarker = markers.contains(&inner);
          if (!isMarker && isAround(&inner))
            send();
          auto found = ofOp.find(&inner);
          if (found != ofOp.end())
            llvm::append_range(message.values, found->second);
          message.isOfMemory |= isMarker;
          if (isMarker || found != ofOp.end())
            last = &inner;
        }
        send();
      }
  });
  return messages;
}

unsigned ProducerSlice::countWords(const llvm::MapVector<Operation *, ProducerMessage> &messages) {
  size_t most = 0;
  for (const auto &[op, message] : messages)
    most = std::max<size_t>(most, message.values.size());
  return most;
}
