// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout rule of each op that has one of its own (LayoutRuleOpInterface).

#include "LayoutRules.h"

#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Layout/BlockExchange.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Layouts that rules make
//===----------------------------------------------------------------------===//

/// The bit of a cat's result that selects one of its two halves.
static uint64_t halfBit(const LinearLayout &layout, unsigned axis) {
  return uint64_t(1) << (layout.dimShift(axis) + layout.dimBits(axis) - 1);
}

static bool hasRegister(const LinearLayout &layout, uint64_t column) {
  return llvm::is_contained(layout.columns(HwDim::Reg), column);
}

/// The layout with parts for blocks of the registers of each thread. A thread loads the words that
/// the same thread of another block has stored, beside those of its neighbours. Rows are divided
/// before columns, and the first four registers stay together, which are as much as one access
/// moves.
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

/// The bits of `axis` from the lowest, then all others, as `spread` has them.
static LinearLayout fill(ArrayRef<int64_t> shape, unsigned axis, unsigned registerBits,
                         unsigned warpBits, unsigned blockBits) {
  LinearLayout layout(shape);
  SmallVector<unsigned> order;
  for (bool ofAxis : {true, false})
    for (unsigned bit = 0; bit < layout.elementBits(); ++bit)
      if ((layout.dimMask(axis) >> bit & 1) == ofAxis)
        order.push_back(bit);
  return spread(shape, order, registerBits, warpBits, blockBits);
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

/// Accumulators of dots by multiply-adds, for operands that are read from shared memory. Lanes form
/// a block of 4 rows, each with `lowM` x `lowN` elements as bits. A thread's other elements are
/// whole blocks apart, about as many rows as columns.
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

/// The result of an inference through the encoding interface.
static LayoutAttr take(FailureOr<Attribute> inferred) {
  return succeeded(inferred) ? cast<LayoutAttr>(*inferred) : LayoutAttr();
}

/// The layout of an operand whose elements are where the result has them, for an op that moves
/// whole dimensions.
static LinearLayout pullBack(const LinearLayout &layout, OpOperand &operand) {
  AffineMap map = tile::getSourceMap(operand);
  LinearLayout result(tile::getShape(operand.get().getType()));
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : layout.columns(dim))
      result.columns(dim).push_back(result.element(map.compose(layout.coordinates(column))));
  return result.canonical();
}

namespace {

using Rules = const LayoutRules &;
using Labels = SmallVector<LayoutAttr>;

//===----------------------------------------------------------------------===//
// Kinds of rules
//===----------------------------------------------------------------------===//

template <typename Concrete, typename Op>
using Model = LayoutRuleOpInterface::ExternalModel<Concrete, Op>;

/// All tiles of the op have one layout.
template <typename Op> struct UniformModel : Model<UniformModel<Op>, Op> {};

/// The same for ops that use each block's own shared memory.
template <typename Op> struct WholeModel : Model<WholeModel<Op>, Op> {
  bool needsWholeTiles(Operation *) const { return true; }
};

/// The label is the layout of the only operand, or of all of them.
template <typename Concrete, typename Op> struct ModelOfSource : Model<Concrete, Op> {
  RankedTensorType getLabelType(Operation *op) const {
    return cast<RankedTensorType>(op->getOperand(0).getType());
  }
};

/// Functions take and give tiles in layouts that only their types decide.
template <typename Op> struct SignatureModel : Model<SignatureModel<Op>, Op> {
  Labels proposeLabels(Operation *op, Rules rules) const {
    return {rules.makeDefault(getFirstTile(op).getShape())};
  }
  LayoutAttr getResultLayout(Operation *op, Rules rules, unsigned result, LayoutAttr) const {
    return rules.ofSignature(op->getResult(result).getType());
  }
  LayoutAttr getOperandLayout(Operation *op, Rules rules, unsigned operand, LayoutAttr) const {
    return rules.ofSignature(op->getOperand(operand).getType());
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
  LayoutAttr fromOperand(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
};

//===----------------------------------------------------------------------===//
// Ops that move elements
//
// The layout of a result is that of its type, which the op's verifier takes from the same functions
// (TileEncodingInterface). They know how places move, not elements. The lowering finds registers by
// source maps, and refuses a layout that disagrees with them (MovePattern).
//===----------------------------------------------------------------------===//

struct BroadcastModel : Model<BroadcastModel, tile::BroadcastOp> {
  LayoutAttr getOperandLayout(Operation *op, Rules rules, unsigned operand,
                              LayoutAttr label) const {
    return rules.make(pullBack(label.getLayout(), op->getOpOperand(operand)));
  }
  LayoutAttr fromOperand(Operation *op, Rules rules, unsigned, LayoutAttr layout) const {
    return rules.make(extend(layout.getLayout(), tile::getShape(op->getResult(0).getType())));
  }
};

struct ExpandDimsModel : ModelOfSource<ExpandDimsModel, tile::ExpandDimsOp> {
  LayoutAttr getResultLayout(Operation *op, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferExpandDims(cast<tile::ExpandDimsOp>(op).getAxis()));
  }
  LayoutAttr fromResult(Operation *op, Rules rules, unsigned, LayoutAttr layout) const {
    return rules.make(pullBack(layout.getLayout(), op->getOpOperand(0)));
  }
};

struct TransModel : ModelOfSource<TransModel, tile::TransOp> {
  LayoutAttr getResultLayout(Operation *op, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferTrans(cast<tile::TransOp>(op).getOrder()));
  }
  LayoutAttr fromResult(Operation *op, Rules rules, unsigned, LayoutAttr layout) const {
    return rules.make(pullBack(layout.getLayout(), op->getOpOperand(0)));
  }
};

struct ReshapeModel : ModelOfSource<ReshapeModel, tile::ReshapeOp> {
  bool isValidLabel(Operation *op, Rules, LayoutAttr label) const {
    return label.getLayout().reshape(tile::getShape(op->getResult(0).getType())).has_value();
  }
  LayoutAttr getResultLayout(Operation *op, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferReshape(tile::getShape(op->getResult(0).getType())));
  }
  LayoutAttr fromResult(Operation *op, Rules, unsigned, LayoutAttr layout) const {
    return take(layout.inferReshape(tile::getShape(op->getOperand(0).getType())));
  }
};

/// The label of two tiles side by side, which a thread has pairs of.
Labels proposePairs(Rules rules, RankedTensorType pairs) {
  return {rules.make(
      getDefaultLayout(pairs.getShape().drop_back(), rules.getWarpBits(), rules.getBlockBits())
          .join())};
}

struct JoinModel : Model<JoinModel, tile::JoinOp> {
  bool isValidLabel(Operation *, Rules, LayoutAttr label) const {
    return hasRegister(label.getLayout(), 1);
  }
  Labels proposeLabels(Operation *op, Rules rules) const {
    return proposePairs(rules, cast<RankedTensorType>(op->getResult(0).getType()));
  }
  LayoutAttr getOperandLayout(Operation *, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferSplit());
  }
  LayoutAttr fromOperand(Operation *, Rules, unsigned, LayoutAttr layout) const {
    return take(layout.inferJoin());
  }
};

struct SplitModel : ModelOfSource<SplitModel, tile::SplitOp> {
  bool isValidLabel(Operation *, Rules, LayoutAttr label) const {
    return hasRegister(label.getLayout(), 1);
  }
  Labels proposeLabels(Operation *op, Rules rules) const {
    return proposePairs(rules, cast<RankedTensorType>(op->getOperand(0).getType()));
  }
  LayoutAttr getResultLayout(Operation *, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferSplit());
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr layout) const {
    return take(layout.inferJoin());
  }
};

struct CatModel : Model<CatModel, tile::CatOp> {
  bool isValidLabel(Operation *op, Rules, LayoutAttr label) const {
    return hasRegister(label.getLayout(),
                       halfBit(label.getLayout(), cast<tile::CatOp>(op).getAxis()));
  }
  Labels proposeLabels(Operation *op, Rules rules) const {
    LayoutAttr half = rules.makeDefault(tile::getShape(op->getOperand(0).getType()));
    if (LayoutAttr whole = take(half.inferCat(cast<tile::CatOp>(op).getAxis())))
      return {whole};
    return {};
  }
  LayoutAttr getOperandLayout(Operation *op, Rules rules, unsigned operand,
                              LayoutAttr label) const {
    const LinearLayout &whole = label.getLayout();
    LinearLayout half(tile::getShape(op->getOperand(operand).getType()));
    uint64_t upper = halfBit(whole, cast<tile::CatOp>(op).getAxis());
    for (HwDim dim : kAllHwDims)
      for (uint64_t column : whole.columns(dim))
        if (column != upper)
          half.columns(dim).push_back(half.element(whole.coordinates(column)));
    return rules.make(half);
  }
  LayoutAttr fromOperand(Operation *op, Rules, unsigned, LayoutAttr layout) const {
    return take(layout.inferCat(cast<tile::CatOp>(op).getAxis()));
  }
};

struct GatherModel : Model<GatherModel, tile::GatherOp> {
  bool needsWholeOperands(Operation *) const { return true; }
  LayoutAttr getOperandLayout(Operation *, Rules, unsigned operand, LayoutAttr label) const {
    return operand == 1 ? label : LayoutAttr();
  }
  LayoutAttr fromOperand(Operation *, Rules, unsigned operand, LayoutAttr layout) const {
    return operand == 1 ? layout : LayoutAttr();
  }
};

struct RenumberModel : Model<RenumberModel, RenumberOp> {
  bool needsWholeOperands(Operation *) const { return true; }
  LayoutAttr getOperandLayout(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
  LayoutAttr fromOperand(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
};

//===----------------------------------------------------------------------===//
// Reductions and the like
//===----------------------------------------------------------------------===//

struct ReduceModel : ModelOfSource<ReduceModel, tile::ReduceOp> {
  LayoutAttr getResultLayout(Operation *op, Rules, unsigned, LayoutAttr label) const {
    return take(label.inferReduce(cast<tile::ReduceOp>(op).getAxis()));
  }
  LayoutAttr fromResult(Operation *op, Rules rules, unsigned, LayoutAttr layout) const {
    return rules.make(extend(layout.getLayout().expandDims(cast<tile::ReduceOp>(op).getAxis()),
                             getLabelType(op).getShape()));
  }
};

struct SortModel : Model<SortModel, tile::SortOp> {
  Labels proposeLabels(Operation *op, Rules rules) const {
    // The lower a bit of the axis, the more often elements across it are compared.
    ArrayRef<int64_t> shape = getFirstTile(op).getShape();
    unsigned bits = LinearLayout(shape).elementBits(),
             threads = kLaneBits + rules.getWarpBits() + rules.getBlockBits();
    unsigned registers = bits > threads ? bits - threads : 0;
    return {rules.make(fill(shape, cast<tile::SortOp>(op).getAxis(), registers, rules.getWarpBits(),
                            rules.getBlockBits()))};
  }
};

struct HistogramModel : ModelOfSource<HistogramModel, tile::HistogramOp> {
  bool needsWholeTiles(Operation *) const { return true; }
  LayoutAttr getResultLayout(Operation *op, Rules rules, unsigned, LayoutAttr) const {
    return rules.makeDefault(tile::getShape(op->getResult(0).getType()));
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
};

struct ClusterSumModel : ModelOfSource<ClusterSumModel, ClusterSumOp> {
  bool needsWholeTiles(Operation *) const { return true; }
  LayoutAttr getResultLayout(Operation *, Rules rules, unsigned, LayoutAttr label) const {
    return rules.make(divideRegisters(label.getLayout()));
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr) const { return {}; }
};

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// The operand of a dot that it adds to, and that is in the registers of the result.
constexpr unsigned kAccumulator = 2;

/// By multiply-add: accumulators are the label, operands come in any layout.
template <typename Op> struct DotModel : Model<DotModel<Op>, Op> {
  bool needsWholeOperands(Operation *) const { return true; }
  Labels proposeLabels(Operation *op, Rules rules) const {
    // Each thread computes a block, so that an element of an operand is used several times.
    ArrayRef<int64_t> shape = getFirstTile(op).getShape();
    unsigned warpBits = rules.getWarpBits();
    unsigned rank = shape.size(), m = rank - 2, n = rank - 1;
    auto bits = [&](unsigned dim) { return LinearLayout(shape).dimBits(dim); };
    SmallVector<unsigned> blocks = divideOverBlocks(shape, rules.getBlockBits());
    SmallVector<int64_t> part;
    for (auto [extent, count] : llvm::zip_equal(shape, blocks))
      part.push_back(extent / count);
    Labels labels;
    auto addParts = [&](const LinearLayout &layout) {
      labels.push_back(rules.make(overBlocks(layout, blocks)));
    };
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
  LayoutAttr getOperandLayout(Operation *, Rules, unsigned operand, LayoutAttr label) const {
    return operand == kAccumulator ? label : LayoutAttr();
  }
  LayoutAttr fromOperand(Operation *, Rules, unsigned operand, LayoutAttr layout) const {
    return operand == kAccumulator ? layout : LayoutAttr();
  }
};

/// On tensor cores: the instruction prescribes where accumulators and operands are. It is the rule
/// of any op, whose interface has the layouts.
struct FragmentModel : LayoutRuleOpInterface::FallbackModel<FragmentModel> {
  static LayoutAttr getFragment(Operation *op, Rules rules, unsigned operand) {
    return rules.make(*cast<DotOpInterface>(op).getFragment(operand));
  }
  RankedTensorType getLabelType(Operation *op) const { return getFirstTile(op); }
  bool isValidLabel(Operation *op, Rules rules, LayoutAttr label) const {
    return label == getFragment(op, rules, kAccOperand);
  }
  bool needsWholeTiles(Operation *) const { return false; }
  bool needsWholeOperands(Operation *) const { return false; }
  Labels proposeLabels(Operation *op, Rules rules) const {
    return {getFragment(op, rules, kAccOperand)};
  }
  LayoutAttr getResultLayout(Operation *, Rules, unsigned, LayoutAttr label) const { return label; }
  LayoutAttr getOperandLayout(Operation *op, Rules rules, unsigned operand,
                              LayoutAttr label) const {
    return operand == kAccOperand ? label : getFragment(op, rules, operand);
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr layout) const { return layout; }
  LayoutAttr fromOperand(Operation *, Rules, unsigned operand, LayoutAttr layout) const {
    return operand == kAccOperand ? layout : LayoutAttr();
  }
};

/// A wait leaves tiles as they are.
struct WaitModel : LayoutRuleOpInterface::FallbackModel<WaitModel> {
  RankedTensorType getLabelType(Operation *op) const { return getFirstTile(op); }
  bool isValidLabel(Operation *, Rules, LayoutAttr) const { return true; }
  bool needsWholeTiles(Operation *) const { return false; }
  bool needsWholeOperands(Operation *) const { return false; }
  Labels proposeLabels(Operation *, Rules) const { return {}; }
  LayoutAttr getResultLayout(Operation *, Rules, unsigned, LayoutAttr label) const { return label; }
  LayoutAttr getOperandLayout(Operation *, Rules, unsigned, LayoutAttr label) const {
    return label;
  }
  LayoutAttr fromResult(Operation *, Rules, unsigned, LayoutAttr layout) const { return layout; }
  LayoutAttr fromOperand(Operation *, Rules, unsigned, LayoutAttr layout) const { return layout; }
};

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

/// Elements that one run of the text takes are in one thread.
struct InlineAsmModel : Model<InlineAsmModel, tile::InlineAsmOp> {
  bool isValidLabel(Operation *op, Rules, LayoutAttr label) const {
    for (uint64_t bit = 1; bit < cast<tile::InlineAsmOp>(op).getPacked(); bit *= 2)
      if (!hasRegister(label.getLayout(), bit))
        return false;
    return true;
  }
  Labels proposeLabels(Operation *op, Rules rules) const {
    ArrayRef<int64_t> shape = getFirstTile(op).getShape();
    unsigned packed = cast<tile::InlineAsmOp>(op).getPacked();
    if (packed == 1)
      return {rules.makeDefault(shape)};
    return {rules.make(fill(shape, shape.size() - 1, llvm::Log2_32(packed), rules.getWarpBits(),
                            rules.getBlockBits()))};
  }
};

/// Operands of a print beside a tile of another shape keep their layout.
struct PrintModel : Model<PrintModel, tile::PrintOp> {
  LayoutAttr getOperandLayout(Operation *op, Rules, unsigned operand, LayoutAttr label) const {
    ArrayRef<int64_t> shape = tile::getShape(op->getOperand(operand).getType());
    return shape == ArrayRef(label.getLayout().shape()) ? label : LayoutAttr();
  }
  LayoutAttr fromOperand(Operation *op, Rules, unsigned, LayoutAttr layout) const {
    bool isOfLabel = ArrayRef(layout.getLayout().shape()) == getFirstTile(op).getShape();
    return isOfLabel ? layout : LayoutAttr();
  }
};

template <template <typename> typename ModelOf, typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<ModelOf<Ops>>(*context), ...);
}

} // namespace

void tilegpu::attachFragmentRules(MLIRContext *context) {
  for (RegisteredOperationName op : context->getRegisteredOperations()) {
    if (op.hasInterface<LayoutRuleOpInterface>())
      continue;
    if (op.hasInterface<DotOpInterface>())
      op.attachInterface<FragmentModel>();
    else if (op.hasInterface<GroupWaitOpInterface>() && op.hasTrait<OpTrait::VariadicResults>())
      op.attachInterface<WaitModel>();
  }
}

void tilegpu::registerLayoutRuleModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tile::TileDialect *, TileGPUDialect *) {
    attach<UniformModel, tile::LoadOp, tile::StoreOp, tile::AtomicLoadOp, tile::AtomicStoreOp,
           tile::AtomicRMWOp, tile::AtomicCASOp, tile::ScanOp, tile::HintOp, tile::MapElementwiseOp,
           tile::AssertOp, tile::RangeOp, tile::SplatOp, LocalLoadOp>(context);
    attach<WholeModel, AsyncCopyOp, LocalAllocOp, LocalStoreOp>(context);
    attach<SignatureModel, tile::CallOp, tile::ReturnOp>(context);
    attach<DotModel, tile::DotOp, tile::DotScaledOp>(context);
    attachFragmentRules(context);
    tile::BroadcastOp::attachInterface<BroadcastModel>(*context);
    tile::ExpandDimsOp::attachInterface<ExpandDimsModel>(*context);
    tile::TransOp::attachInterface<TransModel>(*context);
    tile::ReshapeOp::attachInterface<ReshapeModel>(*context);
    tile::JoinOp::attachInterface<JoinModel>(*context);
    tile::SplitOp::attachInterface<SplitModel>(*context);
    tile::CatOp::attachInterface<CatModel>(*context);
    tile::GatherOp::attachInterface<GatherModel>(*context);
    tile::ReduceOp::attachInterface<ReduceModel>(*context);
    tile::SortOp::attachInterface<SortModel>(*context);
    tile::HistogramOp::attachInterface<HistogramModel>(*context);
    tile::InlineAsmOp::attachInterface<InlineAsmModel>(*context);
    tile::PrintOp::attachInterface<PrintModel>(*context);
    ClusterSumOp::attachInterface<ClusterSumModel>(*context);
    RenumberOp::attachInterface<RenumberModel>(*context);
  });
}
