// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutRules.h"

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Layout/BlockExchange.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

LayoutAttr LayoutRules::make(const std::optional<LinearLayout> &layout) const {
  if (!layout)
    return {};
  LinearLayout canonical = layout->canonical();
  // A layout without block columns is the same in all blocks.
  canonical.columns(HwDim::Block).resize(blockBits, 0);
  return LayoutAttr::get(context, canonical);
}

LayoutAttr LayoutRules::makeDefault(ArrayRef<int64_t> shape) const {
  return make(getDefaultLayout(shape, warpBits, blockBits));
}

LayoutAttr LayoutRules::ofSignature(Type type) const {
  return makeDefault(cast<RankedTensorType>(type).getShape());
}

//===----------------------------------------------------------------------===//
// Rules of ops
//===----------------------------------------------------------------------===//

/// All tiles of an op that has no rule of its own have one layout.
static bool isUniform(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<OpTrait::ConstantLike>();
}

static bool needsWholeTiles(Operation *op) {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  return rule && rule.needsWholeTiles();
}

RankedTensorType LayoutRules::getLabelType(Operation *op) const {
  if (auto rule = dyn_cast<LayoutRuleOpInterface>(op))
    return rule.getLabelType();
  return isUniform(op) ? getFirstTile(op) : RankedTensorType();
}

bool LayoutRules::isValid(Operation *op, LayoutAttr label) const {
  if (!label || (needsWholeTiles(op) && countBlockParts(label.getLayout()) != 1))
    return false;
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  return !rule || rule.isValidLabel(*this, label);
}

SmallVector<LayoutAttr> LayoutRules::proposeOwn(Operation *op) const {
  SmallVector<LayoutAttr> labels;
  if (auto rule = dyn_cast<LayoutRuleOpInterface>(op))
    for (LayoutAttr label : rule.proposeLabels(*this))
      if (isValid(op, label) && !llvm::is_contained(labels, label))
        labels.push_back(label);
  return labels;
}

/// Elements as they follow each other in a buffer: so many bits of them in a thread's registers,
/// the next ones in lanes, then in warps. Nothing if that many are not contiguous, or threads are
/// idle.
static std::optional<LinearLayout> followMemory(const LinearLayout &memory, unsigned vectorBits,
                                                unsigned warpBits, unsigned blockBits) {
  SmallVector<unsigned> order;
  for (uint64_t column : memory.columns(HwDim::Offset)) {
    // With a swizzle an offset moves several bits, of which the highest new one counts.
    while (column && llvm::is_contained(order, llvm::Log2_64(column)))
      column &= ~(uint64_t(1) << llvm::Log2_64(column));
    if (!column || (order.size() < vectorBits && !llvm::isPowerOf2_64(column)))
      return std::nullopt;
    order.push_back(llvm::Log2_64(column));
  }
  if (order.size() < vectorBits + kLaneBits + warpBits + blockBits)
    return std::nullopt;
  return spread(memory.shape(), order, vectorBits, warpBits, blockBits);
}

/// Vectors of a buffer whose rows lie along any dimension, such as a ring that TMA filled.
static std::vector<LinearLayout> getVectors(MemDescType buffer, unsigned warpBits,
                                            unsigned blockBits) {
  std::vector<LinearLayout> layouts;
  int64_t most = GPUMachine::kMaxAccessBytes / getElementBytes(buffer.getElementType());
  for (int64_t count = buffer.getShape().size() == 2 ? most : 0; count > 0; count /= 2)
    if (std::optional<LinearLayout> layout =
            followMemory(buffer.getLayout().getLayout(), llvm::Log2_64(count), warpBits, blockBits))
      layouts.push_back(*layout);
  return layouts;
}

SmallVector<LayoutAttr> LayoutRules::propose(Operation *op) const {
  SmallVector<LayoutAttr> labels = proposeOwn(op);
  if (auto load = dyn_cast<LocalLoadOp>(op); load && labels.empty()) {
    for (const LinearLayout &layout : getVectors(load.getBuffer().getType(), warpBits, blockBits))
      labels.push_back(make(layout));
    labels.push_back(makeDefault(load.getType().getShape()));
  }
  LayoutAttr label = makeDefault(getLabelType(op).getShape());
  if (needsWholeTiles(op))
    label = makeWhole(label);
  if (labels.empty() && isValid(op, label))
    labels.push_back(label);
  return labels;
}

LayoutAttr LayoutRules::ofResult(Operation *op, unsigned result, LayoutAttr label) const {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  return rule ? rule.getResultLayout(*this, result, label) : label;
}

LayoutAttr LayoutRules::ofOperand(Operation *op, unsigned operand, LayoutAttr label) const {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  return rule ? rule.getOperandLayout(*this, operand, label) : label;
}

LayoutAttr LayoutRules::fromResult(Operation *op, unsigned result, LayoutAttr layout) const {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  LayoutAttr label = rule ? rule.fromResult(*this, result, layout) : layout;
  return isValid(op, label) ? label : LayoutAttr();
}

LayoutAttr LayoutRules::fromOperand(Operation *op, unsigned operand, LayoutAttr layout) const {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  LayoutAttr label = rule ? rule.fromOperand(*this, operand, layout) : layout;
  return isValid(op, label) ? label : LayoutAttr();
}

LayoutAttr LayoutRules::ofWholeOperand(Operation *op, LayoutAttr layout) const {
  auto rule = dyn_cast<LayoutRuleOpInterface>(op);
  if (!rule || !rule.needsWholeOperands() || countBlockParts(layout.getLayout()) == 1)
    return {};
  return make(layout.getLayout().inEachBlock());
}

LayoutAttr LayoutRules::makeWhole(LayoutAttr layout) const {
  return countBlockParts(layout.getLayout()) == 1 ? layout : make(layout.getLayout().inEachBlock());
}

LayoutAttr LayoutRules::withBlocksOf(LayoutAttr layout, LayoutAttr other) const {
  if (layout.getLayout().shape() != other.getLayout().shape())
    return {};
  LinearLayout result = layout.getLayout();
  // The blocks of its own layout replace those of theirs.
  SmallVector<uint64_t> free;
  for (uint64_t &column : result.columns(HwDim::Block))
    if (column)
      free.push_back(std::exchange(column, 0));
  for (auto [own, wanted] :
       llvm::zip_equal(result.columns(HwDim::Block), other.getLayout().columns(HwDim::Block))) {
    own = wanted;
    if (wanted == 0 || llvm::is_contained(free, wanted)) {
      llvm::erase(free, wanted);
      continue;
    }
    uint64_t *place = nullptr;
    for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp})
      for (uint64_t &column : result.columns(dim))
        if (column == wanted)
          place = &column;
    if (!place)
      return {};
    *place = free.empty() ? 0 : free.pop_back_val();
  }
  llvm::append_range(result.columns(HwDim::Reg), free);
  return make(result);
}

//===----------------------------------------------------------------------===//
// CheapTiles
//===----------------------------------------------------------------------===//

bool CheapTiles::contains(Value value) { return getCost(value) <= ScheduleSizes::kMaxRepeatedOps; }

unsigned CheapTiles::getCost(Value value) {
  constexpr unsigned kNever = ScheduleSizes::kMaxRepeatedOps + 1;
  if (!isTile(value))
    return 0;
  auto [slot, inserted] = costs.try_emplace(value, kNever);
  Operation *op = value.getDefiningOp();
  if (!inserted || !op)
    return slot->second;
  Type element = getElementTypeOrSelf(value.getType());
  bool isNumber = element.isIntOrIndex() || isa<tile::PointerType>(element);
  unsigned cost = kNever;
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::RangeOp, tile::SplatOp>(op))
    cost = 1;
  else if (tile::movesOneTile(op))
    cost = getCost(op->getOperand(0));
  else if (isNumber && op->getNumRegions() == 0 && isPure(op) &&
           op->hasTrait<OpTrait::Elementwise>()) {
    cost =
        tile::getElementCost(op) == tile::ElementCost::Function ? ScheduleSizes::kOpsOfFunction : 1;
    for (Value operand : op->getOperands())
      cost += getCost(operand);
  }
  costs[value] = std::min(cost, kNever);
  return costs[value];
}
