// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScratchMemory.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Layout/ExchangeRounds.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

bool tessera::isDeterministic(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(tilegpu::kDeterministicAttr);
}

std::optional<AxisExchange> tessera::getReduceExchange(tile::ReduceOp op) {
  const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
  unsigned axis = op.getAxis();
  bool inWarps = hasAxisBits(layout, axis, HwDim::Warp) || hasAxisBits(layout, axis, HwDim::Block);
  unsigned rounds = tilegpu::getScratchRounds(op);
  if (isDeterministic(op)) {
    // The order takes the highest bits first, so everything moves before the first fold.
    // Halves of a line of odd * 2^k do not follow its bits: it has to be in one thread.
    bool lanesToo = layout.oddFactor(axis) != 1;
    if (!inWarps && !(lanesToo && hasAxisBits(layout, axis, HwDim::Lane)))
      return std::nullopt;
    return AxisExchange{layout, moveToRegisters(layout, axis, lanesToo), rounds};
  }
  if (!inWarps)
    return std::nullopt;
  LinearLayout folded =
      compactAxis(dropLaneBits(dropRegisterBits(layout, axis), axis), axis, /*repeats=*/1);
  // Up to three folds in registers take less time than a shuffle for each bit.
  if (folded.dimBits(axis) <= 2)
    return AxisExchange{folded, moveToRegisters(folded, axis), rounds};
  return AxisExchange{folded, moveToLanes(folded, axis), rounds};
}

ScanPlan tessera::getScanPlan(tile::ScanOp op) {
  const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
  unsigned axis = op.getAxis();
  ScanPlan plan;
  unsigned rounds = tilegpu::getScratchRounds(op);
  plan.firstWarpBit = layout.dimBits(axis);
  for (HwDim dim : {HwDim::Warp, HwDim::Block})
    for (uint64_t column : layout.columns(dim))
      if (std::optional<unsigned> bit = getAxisBit(layout, axis, column))
        plan.firstWarpBit = std::min(plan.firstWarpBit, *bit);
  if (plan.firstWarpBit == layout.dimBits(axis))
    return plan;
  plan.isWhole = llvm::any_of(layout.columns(HwDim::Lane), [&](uint64_t column) {
    std::optional<unsigned> bit = getAxisBit(layout, axis, column);
    return bit && *bit > plan.firstWarpBit;
  });
  if (plan.isWhole) {
    plan.firstWarpBit = layout.dimBits(axis);
    plan.exchange = AxisExchange{layout, moveToRegisters(layout, axis), rounds};
    return plan;
  }
  LinearLayout totals =
      compactAxis(dropLaneBits(dropRegisterBits(layout, axis, plan.firstWarpBit), axis), axis,
                  layout.oddFactor(axis));
  plan.exchange = AxisExchange{totals, moveToRegisters(totals, axis), rounds};
  return plan;
}

int64_t tessera::getSortBytes(tile::SortOp op) {
  const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
  if (!hasAxisBits(layout, op.getAxis(), HwDim::Warp) &&
      !hasAxisBits(layout, op.getAxis(), HwDim::Block))
    return 0;
  unsigned rounds = tilegpu::getScratchRounds(op);
  int64_t bytes = getPartBytes(layout, IntegerType::get(op.getContext(), 32), rounds);
  for (Type type : op.getOperandTypes())
    bytes += getPartBytes(layout, type, rounds);
  return bytes;
}

int64_t DotOperand::getBytes(Type type, unsigned pieceBits) const {
  const LinearLayout &layout = tilegpu::getLayout(type);
  int64_t elements = 1;
  for (int64_t extent : layout.shape())
    elements *= extent;
  elements = (elements / layout.oddFactor(order.front())) >> pieceBits;
  return llvm::alignTo(elements * tilegpu::getElementBytes(getElementTypeOrSelf(type)), 16);
}

/// True if threads have those elements of an operand that are in the accumulator's place along
/// all dimensions but `other`, and all along `k`.
static bool holdsSlices(const LinearLayout &operand, const LinearLayout &acc, unsigned other,
                        unsigned k) {
  LinearLayout slice = acc.project(other);
  uint64_t ofK = operand.dimMask(k);
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block}) {
    ArrayRef<uint64_t> has = operand.columns(dim), wants = slice.columns(dim);
    if (has.size() != wants.size())
      return false;
    for (auto [column, wanted] : llvm::zip(has, wants)) {
      SmallVector<int64_t> place = operand.coordinates(column);
      place.erase(place.begin() + k);
      if ((column & ofK) || place != slice.coordinates(wanted))
        return false;
    }
  }
  return true;
}

bool tessera::isDotInRegisters(tile::DotOp op) {
  const LinearLayout &acc = tilegpu::getLayout(op.getType());
  unsigned rank = acc.rank();
  return holdsSlices(tilegpu::getLayout(op.getA().getType()), acc, rank - 1, rank - 1) &&
         holdsSlices(tilegpu::getLayout(op.getB().getType()), acc, rank - 2, rank - 2);
}

unsigned tessera::getDotPieceBits(tile::DotOp op) {
  Type a = op.getA().getType(), b = op.getB().getType();
  DotOperand planA = getDotOperandA(op), planB = getDotOperandB(op);
  int64_t budget = tilegpu::getMachine(op).sharedBytes / 4;
  unsigned bits = 0, depthBits = tilegpu::getLayout(a).dimBits(planA.order.front());
  while (planA.getBytes(a, bits) + planB.getBytes(b, bits) > budget && bits + 2 < depthBits)
    ++bits;
  return bits;
}

DotOperand tessera::getDotOperandA(tile::DotOp op) {
  if (tile::getShape(op.getType()).size() == 3)
    return {{2, 0, 1}};
  return {{1, 0}};
}

DotOperand tessera::getDotOperandB(tile::DotOp op) {
  if (tile::getShape(op.getType()).size() == 3)
    return {{1, 0, 2}};
  return {{0, 1}};
}

//===----------------------------------------------------------------------===//
// ScratchOpInterface
//===----------------------------------------------------------------------===//

static int64_t getBytes(tile::ReduceOp op) {
  std::optional<AxisExchange> exchange = getReduceExchange(op);
  return exchange ? exchange->getBytes(op.getOperandTypes()) : 0;
}

static int64_t getBytes(tile::ScanOp op) {
  ScanPlan plan = getScanPlan(op);
  return plan.exchange ? plan.exchange->getBytes(op.getOperandTypes()) : 0;
}

static int64_t getBytes(tile::SortOp op) { return getSortBytes(op); }

static int64_t getBytes(tile::HistogramOp op) {
  // Each block counts in all bins.
  return getPartBytes(tilegpu::getLayout(op.getType()).inEachBlock(), op.getType());
}

static int64_t getBytes(tile::GatherOp op) {
  return getPartBytes(tilegpu::getLayout(op.getSource().getType()), op.getType());
}

static int64_t getBytes(tilegpu::RenumberOp op) {
  return getPartBytes(tilegpu::getLayout(op.getSource().getType()), op.getType());
}

static int64_t getBytes(tile::DotOp op) {
  if (isDotInRegisters(op))
    return 0;
  unsigned pieceBits = getDotPieceBits(op);
  return getDotOperandA(op).getBytes(op.getA().getType(), pieceBits) +
         getDotOperandB(op).getBytes(op.getB().getType(), pieceBits);
}

static int64_t getBytes(tile::DotScaledOp op) {
  int64_t bytes = 0;
  for (Value operand : {op.getA(), op.getB(), op.getAScale(), op.getBScale()})
    if (operand)
      bytes += getPartBytes(tilegpu::getLayout(operand.getType()), operand.getType());
  return bytes;
}

//===----------------------------------------------------------------------===//
// In how many rounds
//===----------------------------------------------------------------------===//

static SmallVector<unsigned> getRounds(const std::optional<AxisExchange> &exchange) {
  if (!exchange)
    return {};
  return getPossibleRounds(exchange->source, exchange->destination);
}

static SmallVector<unsigned> getRounds(tile::ReduceOp op) {
  return getRounds(getReduceExchange(op));
}

static SmallVector<unsigned> getRounds(tile::ScanOp op) {
  return getRounds(getScanPlan(op).exchange);
}

/// The partner of a register is in the same slice, if that is a matter of registers alone.
static SmallVector<unsigned> getRounds(tile::SortOp op) {
  const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
  return getPossibleRounds(layout, layout, /*ofAllThreads=*/true);
}

/// Data with places that are known only at run time must be in scratch as a whole. Dots go in
/// pieces anyway.
static SmallVector<unsigned> getRounds(Operation *) { return {}; }

namespace {

template <typename Op>
struct ScratchModel : tilegpu::ScratchOpInterface::ExternalModel<ScratchModel<Op>, Op> {
  int64_t getScratchBytes(Operation *op) const {
    // Tiles without a layout yet are nowhere.
    if (!tilegpu::getLayoutAttr(op->getOperand(0).getType()))
      return 0;
    return getBytes(cast<Op>(op));
  }
  unsigned getMoreRounds(Operation *op) const {
    return tilegpu::getRoundsAfter(op, getRounds(cast<Op>(op)));
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<ScratchModel<Ops>>(*context), ...);
}

} // namespace

void tessera::attachExchangeScratchModels(MLIRContext *context) {
  attach<tile::ReduceOp, tile::ScanOp, tile::SortOp, tile::HistogramOp, tile::GatherOp, tile::DotOp,
         tile::DotScaledOp, tilegpu::RenumberOp>(context);
}
