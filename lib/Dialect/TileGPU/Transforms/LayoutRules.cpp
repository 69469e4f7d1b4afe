// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutRules.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Layout/BlockExchange.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Kinds of ops
//===----------------------------------------------------------------------===//

/// All tiles of the op have one layout.
static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<tile::LoadOp, tile::StoreOp, tile::AtomicLoadOp, tile::AtomicStoreOp,
             tile::AtomicRMWOp, tile::AtomicCASOp, tile::ScanOp, tile::SortOp, tile::HintOp,
             tile::MapElementwiseOp, tile::InlineAsmOp, tile::AssertOp, tile::PrintOp,
             tile::RangeOp, tile::SplatOp, arith::ConstantOp, ub::PoisonOp, AsyncCopyOp>(op);
}

/// Functions take and give tiles in layouts that only their types decide.
static bool isSignature(Operation *op) { return isa<tile::CallOp, tile::ReturnOp>(op); }

/// What moves a tile to or from shared memory, in any layout; or waits for it.
static bool isMove(Operation *op) {
  return isa<LocalAllocOp, LocalLoadOp, LocalStoreOp, WarpgroupWaitOp>(op);
}

/// The layout of accumulators that an instruction prescribes; nothing for any other op.
static std::optional<LinearLayout> getPrescribed(Operation *op) {
  if (auto dot = dyn_cast<MmaDotOp>(op))
    return dot.getAccumulatorLayout();
  if (auto dot = dyn_cast<WarpgroupDotOp>(op))
    return dot.getAccumulatorLayout();
  return std::nullopt;
}

/// What is done in each block's own shared memory, or by what is there.
static bool needsWholeTiles(Operation *op) {
  return isa<tile::HistogramOp, AsyncCopyOp, LocalAllocOp, LocalStoreOp, ClusterSumOp>(op);
}

static RankedTensorType firstTile(Operation *op) {
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      return tile;
  for (Type type : op->getOperandTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      return tile;
  return {};
}

/// The bit of a cat's result that tells its two halves apart.
static uint64_t halfBit(const LinearLayout &layout, unsigned axis) {
  return uint64_t(1) << (layout.dimShift(axis) + layout.dimBits(axis) - 1);
}

static bool hasRegister(const LinearLayout &layout, uint64_t column) {
  return llvm::is_contained(layout.columns(HwDim::Reg), column);
}

/// The layout with parts for blocks of what each thread has in registers: as its place stays what
/// it was, it loads what another block's thread of the same number has stored, word by word beside
/// its neighbours. Rows are divided before columns, and the first four registers stay together,
/// which are as much as one access moves.
static LinearLayout divideRegisters(const LinearLayout &layout) {
  constexpr size_t kTogether = 2;
  LinearLayout result = layout;
  f2::Columns &registers = result.columns(HwDim::Reg);
  for (uint64_t &block : result.columns(HwDim::Block)) {
    auto found = registers.end();
    for (size_t index = kTogether; index < registers.size(); ++index) {
      auto column = registers.begin() + index;
      if (*column != 0 && (found == registers.end() || *column > *found))
        found = column;
    }
    if (block != 0 || found == registers.end())
      continue;
    block = *found;
    registers.erase(found);
  }
  return result.canonical();
}

/// The layout of a broadcast's operand where dimensions that the operand has too keep
/// theirs; with the repeated dimensions in places that hold copies, else in registers.
static LinearLayout extend(LinearLayout layout, ArrayRef<int64_t> shape) {
  LinearLayout result(shape);
  uint64_t missing = llvm::maskTrailingOnes<uint64_t>(result.elementBits());
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : layout.columns(dim)) {
      uint64_t moved = result.element(layout.coordinates(column));
      result.columns(dim).push_back(moved);
      missing &= ~moved;
    }
  // Blocks take what is slowest.
  for (uint64_t &column : llvm::reverse(result.columns(HwDim::Block)))
    if (column == 0 && missing) {
      column = llvm::bit_floor(missing);
      missing &= ~column;
    }
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    for (uint64_t &column : result.columns(dim))
      if (column == 0 && missing) {
        column = missing & -missing;
        missing &= missing - 1;
      }
  for (; missing; missing &= missing - 1)
    result.columns(HwDim::Reg).push_back(missing & -missing);
  return result;
}

/// The bits of `axis` from the lowest, then all others: so many to registers, then lanes,
/// then warps, then registers, then blocks.
static LinearLayout fill(ArrayRef<int64_t> shape, unsigned axis, unsigned registerBits,
                         unsigned warpBits, unsigned blockBits) {
  LinearLayout layout(shape);
  SmallVector<unsigned> order;
  for (bool ofAxis : {true, false})
    for (unsigned bit = 0; bit < layout.elementBits(); ++bit)
      if ((layout.dimMask(axis) >> bit & 1) == ofAxis)
        order.push_back(bit);
  unsigned firstBlock = registerBits + kLaneBits + warpBits;
  if (order.size() > firstBlock + blockBits)
    firstBlock = order.size() - blockBits;
  for (auto [index, bit] : llvm::enumerate(order)) {
    HwDim dim = HwDim::Reg;
    if (index >= registerBits && index < registerBits + kLaneBits)
      dim = HwDim::Lane;
    else if (index >= registerBits + kLaneBits && index < registerBits + kLaneBits + warpBits)
      dim = HwDim::Warp;
    else if (index >= firstBlock && index < firstBlock + blockBits)
      dim = HwDim::Block;
    layout.columns(dim).push_back(uint64_t(1) << bit);
  }
  layout.columns(HwDim::Lane).resize(kLaneBits, 0);
  layout.columns(HwDim::Warp).resize(warpBits, 0);
  layout.columns(HwDim::Block).resize(blockBits, 0);
  return layout;
}

/// Accumulators of dots by multiply-adds: so many elements of a thread side by side, lanes and
/// warps along rows, as bits; the other lanes and warps are along columns.
static LinearLayout blockedAccumulators(ArrayRef<int64_t> shape, unsigned lowM, unsigned lowN,
                                        unsigned lanesM, unsigned warpsM, unsigned warpBits) {
  unsigned rank = shape.size(), m = rank - 2, n = rank - 1;
  SmallVector<unsigned> registers(rank, 1), lanes(rank, 1), warps(rank, 1), order;
  registers[m] = 1u << lowM;
  registers[n] = 1u << lowN;
  lanes[m] = 1u << lanesM;
  lanes[n] = 1u << (kLaneBits - lanesM);
  warps[m] = 1u << warpsM;
  warps[n] = 1u << (warpBits - warpsM);
  for (unsigned dim = rank; dim-- > 0;)
    order.push_back(dim);
  return blocked(shape, registers, lanes, warps, order);
}

/// Accumulators of dots by multiply-adds, for operands that are read from where they lie in
/// memory: lanes side by side in a block of 4 rows, each with `lowM` x `lowN` elements as bits,
/// and what else a thread has apart from these by whole blocks, about as many rows as columns.
static LinearLayout spreadAccumulators(ArrayRef<int64_t> shape, unsigned lowM, unsigned lowN,
                                       unsigned warpBits) {
  unsigned rank = shape.size(), m = rank - 2, n = rank - 1;
  LinearLayout numbers(shape);
  unsigned restM = numbers.dimBits(m) - lowM, restN = numbers.dimBits(n) - lowN;
  unsigned lanesN = std::min(restN, kLaneBits - 2u), lanesM = std::min(restM, kLaneBits - lanesN);
  restM -= lanesM;
  restN -= lanesN;
  unsigned warpsM = 0;
  for (unsigned bit = 0; bit < warpBits; ++bit)
    if (warpsM < restM &&
        (bit - warpsM >= restN || lowM + restM - warpsM > lowN + restN + warpsM - bit))
      ++warpsM;
  return blockedAccumulators(shape, lowM, lowN, lanesM, warpsM, warpBits);
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

LayoutAttr LayoutRules::make(const std::optional<LinearLayout> &layout) const {
  if (!layout)
    return {};
  LinearLayout canonical = layout->canonical();
  // What says nothing of blocks is the same in all of them.
  canonical.columns(HwDim::Block).resize(blockBits, 0);
  return LayoutAttr::get(context, canonical);
}

LayoutAttr LayoutRules::makeDefault(ArrayRef<int64_t> shape) const {
  return make(getDefaultLayout(shape, warpBits, blockBits));
}

LayoutAttr LayoutRules::ofSignature(Type type) const {
  return makeDefault(cast<RankedTensorType>(type).getShape());
}

RankedTensorType LayoutRules::getLabelType(Operation *op) const {
  if (isElementwise(op) || isSignature(op) || isMove(op))
    return firstTile(op);
  if (isa<tile::ExpandDimsOp, tile::TransOp, tile::ReshapeOp, tile::SplitOp, tile::ReduceOp,
          tile::HistogramOp, ClusterSumOp>(op))
    return cast<RankedTensorType>(op->getOperand(0).getType());
  if (isa<tile::JoinOp, tile::CatOp, tile::BroadcastOp, tile::DotOp, tile::DotScaledOp,
          tile::GatherOp, MmaDotOp, WarpgroupDotOp>(op))
    return cast<RankedTensorType>(op->getResult(0).getType());
  return {};
}

bool LayoutRules::isValid(Operation *op, LayoutAttr label) const {
  if (!label)
    return false;
  const LinearLayout &layout = label.getLayout();
  if (std::optional<LinearLayout> prescribed = getPrescribed(op))
    return label == make(prescribed);
  if (needsWholeTiles(op) && countBlockParts(layout) != 1)
    return false;
  if (isa<tile::JoinOp, tile::SplitOp>(op))
    return hasRegister(layout, 1);
  if (auto cat = dyn_cast<tile::CatOp>(op))
    return hasRegister(layout, halfBit(layout, cat.getAxis()));
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    return layout.reshape(tile::getShape(reshape.getType())).has_value();
  // Elements that one run of the text takes are in one thread.
  if (auto text = dyn_cast<tile::InlineAsmOp>(op)) {
    for (uint64_t bit = 1; bit < text.getPacked(); bit *= 2)
      if (!hasRegister(layout, bit))
        return false;
  }
  return true;
}

SmallVector<LayoutAttr> LayoutRules::propose(Operation *op) const {
  RankedTensorType type = getLabelType(op);
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<LayoutAttr> labels;
  auto add = [&](LayoutAttr label) {
    if (isValid(op, label) && !llvm::is_contained(labels, label))
      labels.push_back(label);
  };
  if (std::optional<LinearLayout> prescribed = getPrescribed(op)) {
    add(make(prescribed));
    return labels;
  }
  if (isa<tile::DotOp, tile::DotScaledOp>(op)) {
    // Each thread computes a block, so that an element of an operand is used several times.
    unsigned rank = shape.size(), m = rank - 2, n = rank - 1;
    auto bits = [&](unsigned dim) { return LinearLayout(shape).dimBits(dim); };
    SmallVector<unsigned> blocks = divideOverBlocks(shape, blockBits);
    SmallVector<int64_t> part;
    for (auto [extent, count] : llvm::zip_equal(shape, blocks))
      part.push_back(extent / count);
    auto addParts = [&](const LinearLayout &layout) { add(make(overBlocks(layout, blocks))); };
    shape = part;
    for (auto [lowM, lowN] : {std::pair(0u, 2u), {2u, 0u}, {2u, 2u}, {0u, 0u}})
      if (lowM <= bits(m) && lowN <= bits(n))
        addParts(spreadAccumulators(shape, lowM, lowN, warpBits));
    for (unsigned block : {2u, 3u, 1u, 0u}) {
      unsigned ofM = std::min(block, bits(m)), ofN = std::min(block, bits(n));
      unsigned lanesN = std::min(bits(n) - ofN, kLaneBits - 2u);
      unsigned lanesM = std::min(bits(m) - ofM, kLaneBits - lanesN);
      unsigned warpsM = std::min(bits(m) - ofM - lanesM, warpBits);
      addParts(blockedAccumulators(shape, ofM, ofN, lanesM, warpsM, warpBits));
    }
    return labels;
  }
  if (isa<tile::JoinOp, tile::SplitOp>(op)) {
    add(make(getDefaultLayout(shape.drop_back(), warpBits, blockBits).join()));
    return labels;
  }
  if (auto cat = dyn_cast<tile::CatOp>(op)) {
    LayoutAttr half = makeDefault(tile::getShape(cat.getLhs().getType()));
    FailureOr<Attribute> whole = half.inferCat(cat.getAxis());
    if (succeeded(whole))
      add(cast<LayoutAttr>(*whole));
    return labels;
  }
  if (auto text = dyn_cast<tile::InlineAsmOp>(op); text && text.getPacked() > 1) {
    add(make(fill(shape, shape.size() - 1, llvm::Log2_32(text.getPacked()), warpBits, blockBits)));
    return labels;
  }
  if (auto sort = dyn_cast<tile::SortOp>(op)) {
    // The lower a bit of the axis, the more often elements across it are compared.
    unsigned bits = LinearLayout(shape).elementBits(), threads = kLaneBits + warpBits + blockBits;
    unsigned registers = bits > threads ? bits - threads : 0;
    add(make(fill(shape, sort.getAxis(), registers, warpBits, blockBits)));
    return labels;
  }
  LayoutAttr label = makeDefault(shape);
  add(needsWholeTiles(op) ? make(label.getLayout().inEachBlock()) : label);
  return labels;
}

//===----------------------------------------------------------------------===//
// From the label to operands and results
//===----------------------------------------------------------------------===//

/// What an inference through the encoding interface gives.
static LayoutAttr take(FailureOr<Attribute> inferred) {
  return succeeded(inferred) ? cast<LayoutAttr>(*inferred) : LayoutAttr();
}

static SmallVector<unsigned> inverse(ArrayRef<int32_t> order) {
  SmallVector<unsigned> result(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    result[from] = to;
  return result;
}

LayoutAttr LayoutRules::ofResult(Operation *op, unsigned result, LayoutAttr label) const {
  if (isSignature(op))
    return ofSignature(op->getResult(result).getType());
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
    return take(label.inferExpandDims(expand.getAxis()));
  if (auto trans = dyn_cast<tile::TransOp>(op))
    return take(label.inferTrans(trans.getOrder()));
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    return take(label.inferReshape(tile::getShape(reshape.getType())));
  if (isa<tile::SplitOp>(op))
    return take(label.inferSplit());
  if (isa<ClusterSumOp>(op))
    return make(divideRegisters(label.getLayout()));
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return take(label.inferReduce(reduce.getAxis()));
  if (auto histogram = dyn_cast<tile::HistogramOp>(op))
    return makeDefault(tile::getShape(histogram.getType()));
  return label;
}

LayoutAttr LayoutRules::ofOperand(Operation *op, unsigned operand, LayoutAttr label) const {
  Type type = op->getOperand(operand).getType();
  if (isSignature(op))
    return ofSignature(type);
  if (isa<tile::DotOp, tile::DotScaledOp>(op))
    return operand == 2 ? label : LayoutAttr();
  if (auto dot = dyn_cast<MmaDotOp>(op))
    return operand == 2 ? label : make(dot.getOperandLayout(operand));
  if (auto dot = dyn_cast<WarpgroupDotOp>(op))
    return operand == 2 ? label : make(dot.getOperandLayout());
  if (isa<tile::GatherOp>(op))
    return operand == 1 ? label : LayoutAttr();
  if (isa<tile::JoinOp>(op))
    return take(label.inferSplit());
  if (auto cat = dyn_cast<tile::CatOp>(op)) {
    const LinearLayout &whole = label.getLayout();
    LinearLayout half(tile::getShape(type));
    uint64_t upper = halfBit(whole, cat.getAxis());
    for (HwDim dim : kAllHwDims)
      for (uint64_t column : whole.columns(dim))
        if (column != upper)
          half.columns(dim).push_back(half.element(whole.coordinates(column)));
    return make(half);
  }
  if (isa<tile::BroadcastOp>(op))
    return take(label.inferBroadcastSource(tile::getShape(type)));
  // What is printed beside a tile of another shape stays where it is.
  if (isa<tile::PrintOp>(op) && tile::getShape(type) != ArrayRef(label.getLayout().shape()))
    return {};
  return label;
}

LayoutAttr LayoutRules::ofWholeOperand(Operation *op, LayoutAttr layout) const {
  if (!isa<tile::DotOp, tile::DotScaledOp, tile::GatherOp>(op) ||
      countBlockParts(layout.getLayout()) == 1)
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
  // What its own blocks had takes the place of what theirs are to have.
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

LayoutAttr LayoutRules::fromResult(Operation *op, unsigned result, LayoutAttr layout) const {
  LayoutAttr label = layout;
  if (isSignature(op) || isa<tile::HistogramOp, ClusterSumOp>(op))
    return {};
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
    label = take(layout.inferReduce(expand.getAxis()));
  else if (auto trans = dyn_cast<tile::TransOp>(op))
    label = make(layout.getLayout().transpose(inverse(trans.getOrder())));
  else if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    label = take(layout.inferReshape(tile::getShape(reshape.getSource().getType())));
  else if (isa<tile::SplitOp>(op))
    label = take(layout.inferJoin());
  else if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    label =
        make(extend(layout.getLayout().expandDims(reduce.getAxis()), getLabelType(op).getShape()));
  return isValid(op, label) ? label : LayoutAttr();
}

LayoutAttr LayoutRules::fromOperand(Operation *op, unsigned operand, LayoutAttr layout) const {
  LayoutAttr label = layout;
  if (isSignature(op))
    return {};
  if (isa<tile::DotOp, tile::DotScaledOp, MmaDotOp, WarpgroupDotOp>(op) && operand != 2)
    return {};
  if (isa<tile::GatherOp>(op) && operand != 1)
    return {};
  if (isa<tile::JoinOp>(op))
    label = take(layout.inferJoin());
  else if (auto cat = dyn_cast<tile::CatOp>(op))
    label = take(layout.inferCat(cat.getAxis()));
  else if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    label = make(extend(layout.getLayout(), broadcast.getType().getShape()));
  else if (isa<tile::PrintOp>(op) &&
           ArrayRef(layout.getLayout().shape()) != getLabelType(op).getShape())
    return {};
  return isValid(op, label) ? label : LayoutAttr();
}

//===----------------------------------------------------------------------===//
// CheapTiles
//===----------------------------------------------------------------------===//

unsigned CheapTiles::getCost(Value value) {
  constexpr unsigned kNever = kMost + 1;
  if (!isTile(value))
    return 0;
  auto [slot, inserted] = costs.try_emplace(value, kNever);
  Operation *op = value.getDefiningOp();
  if (!inserted || !op)
    return slot->second;
  Type element = getElementTypeOrSelf(value.getType());
  bool isNumber = element.isIntOrIndex() || isa<tile::PointerType>(element);
  unsigned cost = kNever;
  if (isa<tile::RangeOp, tile::SplatOp, arith::ConstantOp, ub::PoisonOp>(op))
    cost = 1;
  else if (isa<tile::ExpandDimsOp, tile::BroadcastOp, tile::TransOp, tile::ReshapeOp>(op))
    cost = getCost(op->getOperand(0));
  else if (isNumber && op->getNumRegions() == 0 && isPure(op) &&
           (op->hasTrait<OpTrait::Elementwise>() || isa<tile::HintOp>(op))) {
    // Division takes some twenty instructions.
    cost = isa<tile::DivIntOp, tile::RemIntOp, tile::ExternElementwiseOp>(op) ? 20 : 1;
    for (Value operand : op->getOperands())
      cost += getCost(operand);
  }
  costs[value] = std::min(cost, kNever);
  return costs[value];
}
