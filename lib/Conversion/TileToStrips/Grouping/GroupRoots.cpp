// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GroupRoots.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

bool hasTiles(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

bool isControlFlow(Operation *op) { return isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op); }

RootKind classify(Operation *op) {
  if (isa<strips::GroupOp>(op))
    return RootKind::Consumer;
  if (op->hasTrait<OpTrait::IsTerminator>() || isControlFlow(op) ||
      isa<tile::DotOp, tile::CallOp>(op))
    return RootKind::Consumer;
  if (!hasTiles(op)) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return load.getIsVolatile() ? RootKind::ScalarEffect : RootKind::ScalarRead;
    return getMemoryAccesses(op).empty() ? RootKind::None : RootKind::ScalarEffect;
  }
  if (isa<tile::StoreOp, tile::ReduceOp>(op))
    return RootKind::Fused;
  auto access = dyn_cast<tile::AccessOpInterface>(op);
  bool isAtomic = access && access.isAtomic();
  if (isAtomic || tile::isEvent(op) ||
      isa<tile::ScanOp, tile::SortOp, tile::HistogramOp, tile::MapElementwiseOp>(op))
    return RootKind::InElementOrder;
  // Not an index map: halves that are scalars have no nest of their own.
  if (isa<tile::SplitOp>(op) && !isa<RankedTensorType>(op->getResult(0).getType()))
    return RootKind::InElementOrder;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getIsVolatile() ? RootKind::VolatileLoad : RootKind::None;
  return RootKind::None;
}

ArrayRef<int64_t> getIterationShape(Operation *root) {
  return tile::getShape(root->getOperand(0).getType());
}

bool isCrossing(Value tile) {
  Operation *def = tile.getDefiningOp();
  return !def || isa<strips::GroupOp, tile::DotOp, tile::CallOp>(def) || isControlFlow(def);
}

bool isIndexArithmetic(Operation *op) {
  if (std::optional<tile::Motion> motion = tile::getMotion(op))
    return *motion != tile::Motion::Gathers;
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::RangeOp>(op))
    return true;
  return op->hasTrait<OpTrait::Elementwise>() && llvm::none_of(op->getResultTypes(), [](Type type) {
           return isa<FloatType>(getElementTypeOrSelf(type));
         });
}

bool isExpensive(Operation *op) {
  if (isa<tile::FpToFpOp>(op)) {
    // Formats of 8 bits are converted by some twenty integer operations.
    return getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth() == 8 ||
           getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() == 8;
  }
  return tile::getElementCost(op) == tile::ElementCost::Function;
}

bool isRematerializable(Value tile) {
  SmallVector<Value> work{tile};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    if (isCrossing(value))
      return false;
    Operation *def = value.getDefiningOp();
    if (!seen.insert(def).second)
      continue;
    bool isCheap =
        isIndexArithmetic(def) || (isa<arith::SIToFPOp, arith::UIToFPOp, arith::SelectOp>(def));
    if (!isCheap)
      return false;
    llvm::append_range(work, def->getOperands());
  }
  return true;
}

std::optional<unsigned> findRows(tile::AtomicRMWOp atomic, AccessAnalysis &access) {
  constexpr unsigned kMinRowBytes = 8;
  if (!atomic.getResult().use_empty())
    return std::nullopt;
  unsigned bits = getElementTypeOrSelf(atomic.getValue().getType()).getIntOrFloatBitWidth();
  ArrayRef<int64_t> shape = tile::getShape(atomic.getPtr().getType());
  for (unsigned dim = shape.size(); dim-- > 0;) {
    int64_t run = shape[dim] & -shape[dim];
    if (access.getRun(atomic.getPtr(), dim).isRow() && run > 1 && run * bits >= 8 * kMinRowBytes)
      return dim;
  }
  return std::nullopt;
}

LogicalResult verifySupported(Operation *op) {
  auto isView = [](Type type) { return isa<tile::DescriptorType, tile::BlockPointerType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isView) || llvm::any_of(op->getResultTypes(), isView) ||
      isa<tile::DotScaledOp>(op))
    return op->emitError() << "'" << op->getName()
                           << "' has to be lowered before tiles are grouped";
  if (op->hasTrait<tile::ForeignCode>())
    return emitUserError(op, "E030") << "'" << op->getName() << "' is not supported on the CPU yet";
  if (auto call = dyn_cast<tile::CallOp>(op); call && hasTiles(op))
    return emitUserError(op, "E030")
           << "a call of '" << call.getCallee()
           << "' with tiles is not supported on the CPU: it has to be inlined";
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto tensor = dyn_cast<RankedTensorType>(constant.getType()))
      if (!isa<SplatElementsAttr>(constant.getValue()))
        return emitUserError(op, "E030")
               << "a constant tile of different elements is not supported on the CPU yet";
  return success();
}

} // namespace tessera
