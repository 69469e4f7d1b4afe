// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/FloatParts.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Layout/Fragments.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "tessera/Machine/MMAShape.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// MemDescTransOp
//===----------------------------------------------------------------------===//

LogicalResult MemDescTransOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &results) {
  auto type = dyn_cast<MemDescType>(adaptor.getBuffer().getType());
  if (!type)
    return emitOptionalError(loc, "'tilegpu.memdesc_trans' op needs a buffer, not ",
                             adaptor.getBuffer().getType());
  SmallVector<unsigned> order(adaptor.getOrder().begin(), adaptor.getOrder().end());
  SmallVector<unsigned> sorted(order);
  llvm::sort(sorted);
  for (auto [index, dim] : llvm::enumerate(sorted))
    if (index != dim || sorted.size() != type.getShape().size())
      return emitOptionalError(loc, "the order is no permutation of the dimensions");
  const LinearLayout &layout = type.getLayout().getLayout();
  // Repeats follow one another in the order of the dimensions.
  unsigned repeated = 0;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    repeated += layout.oddFactor(dim) != 1;
  if (repeated > 1)
    return emitOptionalError(loc, "the tile is odd along more than one dimension");
  LinearLayout transposed = layout.transpose(order);
  results.push_back(MemDescType::get(context, transposed.shape(), type.getElementType(),
                                     LayoutAttr::get(context, transposed)));
  return success();
}

//===----------------------------------------------------------------------===//
// Shared parts of dots
//===----------------------------------------------------------------------===//

/// Shape and element type of a tile, in registers or in shared memory.
static ArrayRef<int64_t> getShape(Type type) {
  if (auto buffer = dyn_cast<MemDescType>(type))
    return buffer.getShape();
  return cast<RankedTensorType>(type).getShape();
}

static Type getElement(Type type) {
  if (auto buffer = dyn_cast<MemDescType>(type))
    return buffer.getElementType();
  return getElementTypeOrSelf(type);
}

/// (P1), (W1): the shapes are those of a dot.
static LogicalResult verifyShapes(Operation *op, unsigned mostRank) {
  ArrayRef<int64_t> a = getShape(op->getOperand(0).getType()),
                    b = getShape(op->getOperand(1).getType()),
                    c = getShape(op->getOperand(2).getType());
  size_t rank = c.size();
  if (rank < 2 || rank > mostRank || a.size() != rank || b.size() != rank)
    return op->emitOpError("has operands of rank ")
           << a.size() << ", " << b.size() << " and " << rank;
  if (a[rank - 1] != b[rank - 2] || a[rank - 2] != c[rank - 2] || b[rank - 1] != c[rank - 1] ||
      a.drop_back(2) != c.drop_back(2) || b.drop_back(2) != c.drop_back(2))
    return op->emitOpError("has operands whose extents do not agree");
  return success();
}

/// (P4), and the same of groups: how the warps are spread.
static LogicalResult verifySpread(Operation *op, StringRef name, ArrayRef<int32_t> counts,
                                  unsigned perCount) {
  unsigned product = perCount;
  for (int32_t count : counts) {
    if (count < 1 || !llvm::isPowerOf2_32(count))
      return op->emitOpError("has ") << name << " that are no powers of two";
    product *= count;
  }
  if (counts.size() != getShape(op->getOperand(2).getType()).size())
    return op->emitOpError("has ") << counts.size() << ' ' << name << ", not one a dimension";
  // A part of the program may have fewer warps than the whole.
  if (std::optional<unsigned> warps = tilegpu::getNumWarps(op); warps && product > *warps)
    return op->emitOpError("is for ") << product << " warps in a program of " << *warps;
  return success();
}

/// (P5), (W5): an assigned layout is the instruction's.
static LogicalResult verifyLayout(Operation *op, StringRef what, Type type,
                                  function_ref<LinearLayout()> layout) {
  LayoutAttr own = isa<RankedTensorType>(type) ? getLayoutAttr(type) : LayoutAttr();
  if (!own || own.getLayout() == layout())
    return success();
  return op->emitOpError("has ") << what << " in the layout " << own
                                 << ", which is not the instruction's: "
                                 << LayoutAttr::get(op->getContext(), layout());
}

static bool isAccumulatorOf(Type accumulator, Type element) {
  if (element.isF16() || isNativeFloat8(element))
    return accumulator.isF32() || accumulator.isF16();
  if (element.isBF16() || element.isF32())
    return accumulator.isF32();
  if (element.isInteger(8))
    return accumulator.isInteger(32);
  return element.isF64() && accumulator.isF64();
}

/// The power of two in an extent, which is counted from the last.
static int64_t roundedExtent(Value tile, unsigned fromLast) {
  LinearLayout numbers(getShape(tile.getType()));
  return int64_t(1) << numbers.dimBits(numbers.rank() - 1 - fromLast);
}

//===----------------------------------------------------------------------===//
// MmaDotOp
//===----------------------------------------------------------------------===//

/// A batch of tiles of this layout: over warps first, then in registers.
static LinearLayout addBatch(const LinearLayout &matrix, int64_t batch, unsigned warps) {
  SmallVector<int64_t> shape = matrix.shape();
  shape.insert(shape.begin(), batch);
  LinearLayout layout(shape);
  unsigned first = layout.dimShift(0), bits = layout.dimBits(0), used = 0;
  for (unsigned bit = 0; bit < llvm::Log2_32(warps); ++bit)
    layout.columns(HwDim::Warp).push_back(used < bits ? uint64_t(1) << (first + used++) : 0);
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp})
    llvm::append_range(layout.columns(dim), matrix.columns(dim));
  for (; used < bits; ++used)
    layout.columns(HwDim::Reg).push_back(uint64_t(1) << (first + used));
  return layout.canonical();
}

namespace {

/// The number of blocks of a cluster along the rows and the columns of a dot's result. Along the
/// rows there are as many as leave each block an instruction for all of its warps. The others hold
/// copies, and so do all where the dot is of each block's own.
struct BlockSpread {
  BlockSpread(Operation *dot, bool isOfBlock, unsigned leastRows, unsigned leastColumns);
  /// A matrix of which blocks have these parts: those of rows, those of columns, or none.
  LinearLayout extend(const LinearLayout &part, bool ofRows, bool ofColumns) const;
  /// The extents of a part.
  SmallVector<int64_t> divide(ArrayRef<int64_t> shape, bool ofRows, bool ofColumns) const;

  unsigned rows = 1, columns = 1, blockBits;
};

} // namespace

BlockSpread::BlockSpread(Operation *dot, bool isOfBlock, unsigned leastRows, unsigned leastColumns)
    : blockBits(getBlockBits(dot)) {
  if (isOfBlock)
    return;
  ArrayRef<int64_t> shape = getShape(dot->getOperand(2).getType());
  LinearLayout numbers(shape.take_back(2));
  unsigned left = 1u << blockBits;
  for (; left > 1 && (1u << numbers.dimBits(0)) >= 2 * rows * leastRows; left /= 2)
    rows *= 2;
  for (; left > 1 && (1u << numbers.dimBits(1)) >= 2 * columns * leastColumns; left /= 2)
    columns *= 2;
}

SmallVector<int64_t> BlockSpread::divide(ArrayRef<int64_t> shape, bool ofRows,
                                         bool ofColumns) const {
  return {shape[0] / (ofRows ? rows : 1), shape[1] / (ofColumns ? columns : 1)};
}

LinearLayout BlockSpread::extend(const LinearLayout &part, bool ofRows, bool ofColumns) const {
  if (blockBits == 0)
    return part;
  LinearLayout outer(ArrayRef<int64_t>{ofRows ? rows : 1, ofColumns ? columns : 1});
  f2::Columns &blocks = outer.columns(HwDim::Block);
  for (unsigned step = 1; step < columns; step *= 2)
    blocks.push_back(ofColumns ? outer.element({0, step}) : 0);
  for (unsigned step = 1; step < rows; step *= 2)
    blocks.push_back(ofRows ? outer.element({step, 0}) : 0);
  blocks.resize(blockBits, 0);
  return LinearLayout::product(part, outer).canonical();
}

/// The blocks that share the work of a dot by mma.sync.
static BlockSpread spreadMma(MmaDotOp dot) {
  ArrayRef<int32_t> warps = dot.getWarps();
  // Batches are done by every block.
  if (getShape(dot.getAcc().getType()).size() != 2)
    return BlockSpread(dot, dot.getOfBlock(), ~0u / 4, ~0u / 4);
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warp);
  return BlockSpread(dot, dot.getOfBlock(), shape.rows * warps[0], shape.columns * warps[1]);
}

LinearLayout MmaDotOp::getAccumulatorLayout() {
  ArrayRef<int64_t> shape = getShape(getAcc().getType());
  ArrayRef<int32_t> warps = getWarps();
  unsigned warpsM = warps[warps.size() - 2], warpsN = warps[warps.size() - 1];
  BlockSpread blocks = spreadMma(*this);
  if (shape.size() == 2)
    return blocks.extend(mmaAccumulator(blocks.divide(shape, true, true), warpsM, warpsN), true,
                         true);
  LinearLayout layout =
      addBatch(mmaAccumulator(shape.take_back(2), warpsM, warpsN), shape[0], warps[0]);
  layout.columns(HwDim::Block).resize(blocks.blockBits, 0);
  return layout;
}

unsigned MmaDotOp::getOperandBits() {
  Type element = FloatParts(getPrecision()).isBF16 ? BFloat16Type::get(getContext())
                                                   : getElement(getA().getType());
  return element.getIntOrFloatBitWidth();
}

LinearLayout MmaDotOp::getOperandLayout(unsigned operand) {
  Type type = getOperand(operand).getType();
  ArrayRef<int64_t> shape = getShape(type);
  ArrayRef<int32_t> warps = getWarps();
  unsigned warpsM = warps[warps.size() - 2], warpsN = warps[warps.size() - 1];
  auto make = operand == 0 ? mmaOperandA : mmaOperandB;
  BlockSpread blocks = spreadMma(*this);
  bool ofRows = operand == 0;
  if (shape.size() == 2)
    return blocks.extend(make(blocks.divide(shape, ofRows, !ofRows), getOperandBits(),
                              /*kRegisters=*/1, warpsM, warpsN),
                         ofRows, !ofRows);
  LinearLayout layout =
      addBatch(make(shape.take_back(2), getOperandBits(), /*kRegisters=*/1, warpsM, warpsN),
               shape[0], warps[0]);
  layout.columns(HwDim::Block).resize(blocks.blockBits, 0);
  return layout;
}

LogicalResult MmaDotOp::verify() {
  if (failed(verifyShapes(*this, /*mostRank=*/3)))
    return failure();
  Type a = getElement(getA().getType()), b = getElement(getB().getType()),
       accumulator = getElement(getAcc().getType());
  bool areBytes = isNativeFloat8(a) && isNativeFloat8(b);
  if ((a != b && !areBytes) || (areBytes && !accumulator.isF32()) ||
      !isAccumulatorOf(accumulator, a))
    return emitOpError("cannot sum products of ") << a << " and " << b << " in " << accumulator;
  if (getPrecision() == tile::InputPrecision::IEEE ||
      (getPrecision() != tile::InputPrecision::TF32 && !a.isF32()))
    return emitOpError("has no parts for this precision");
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warp);
  if (roundedExtent(getAcc(), 1) < shape.rows || roundedExtent(getAcc(), 0) < shape.columns ||
      roundedExtent(getA(), 0) < shape.getMinSteps(getOperandBits()))
    return emitOpError("has tiles that are smaller than an instruction's");
  if (failed(verifySpread(*this, "warps", getWarps(), /*perCount=*/1)))
    return failure();
  if (failed(verifyLayout(*this, "a", getA().getType(), [&] { return getOperandLayout(0); })) ||
      failed(verifyLayout(*this, "b", getB().getType(), [&] { return getOperandLayout(1); })))
    return failure();
  return verifyLayout(*this, "a result", getType(), [&] { return getAccumulatorLayout(); });
}

//===----------------------------------------------------------------------===//
// WarpgroupDotOp
//===----------------------------------------------------------------------===//

/// The blocks that share the work of a dot by wgmma.
static BlockSpread spreadWgmma(WarpgroupDotOp dot) {
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warpgroup);
  ArrayRef<int32_t> groups = dot.getGroups();
  return BlockSpread(dot, dot.getOfBlock(), shape.rows * groups[0], shape.columns * groups[1]);
}

LinearLayout WarpgroupDotOp::getAccumulatorLayout() {
  BlockSpread blocks = spreadWgmma(*this);
  return blocks.extend(wgmmaAccumulator(blocks.divide(getShape(getAcc().getType()), true, true),
                                        getGroups()[0], getGroups()[1]),
                       true, true);
}

LinearLayout WarpgroupDotOp::getOperandLayout() {
  // b has the parts of what is split.
  BlockSpread blocks = spreadWgmma(*this);
  return blocks.extend(wgmmaOperandA(blocks.divide(getShape(getA().getType()), true, false),
                                     getB().getType().getElementType().getIntOrFloatBitWidth(),
                                     getGroups()[0], getGroups()[1]),
                       true, false);
}

LogicalResult WarpgroupDotOp::verify() {
  if (failed(verifyShapes(*this, /*mostRank=*/2)))
    return failure();
  Type a = getElement(getA().getType()), b = getElement(getB().getType()),
       accumulator = getElement(getAcc().getType());
  if (getPrecision() == tile::InputPrecision::IEEE)
    return emitOpError("has no parts for this precision");
  FloatParts parts(getPrecision());
  unsigned slots = getB().getType().getSlots();
  if (parts.count == 1 && slots != 0)
    return emitOpError("has a ring as its second operand");
  if (parts.count > 1) {
    Type part = parts.isBF16 ? Type(BFloat16Type::get(getContext())) : a;
    if (!isa<RankedTensorType>(getA().getType()) || !a.isF32() || b != part ||
        slots != parts.count || getIsAsync())
      return emitOpError("has operands that are not split as its precision says");
    a = part;
  }
  bool areBytes = isNativeFloat8(a) && isNativeFloat8(b);
  if ((a != b && !areBytes) || a.isF64() || !isAccumulatorOf(accumulator, a))
    return emitOpError("cannot sum products of ") << a << " and " << b << " in " << accumulator;
  if (failed(verifySpread(*this, "groups", getGroups(), kWarpsOfWarpgroup)))
    return failure();
  unsigned bits = a.getIntOrFloatBitWidth();
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warpgroup);
  if (roundedExtent(getAcc(), 1) < shape.rows * getGroups()[0] ||
      roundedExtent(getAcc(), 0) < shape.columns * getGroups()[1] ||
      roundedExtent(getA(), 0) < shape.getMinSteps(bits))
    return emitOpError("has tiles that are smaller than an instruction's");
  for (auto [index, operand] : llvm::enumerate(ValueRange{getA(), getB()})) {
    auto buffer = dyn_cast<MemDescType>(operand.getType());
    if (!buffer)
      continue;
    auto descriptor =
        MatrixDescriptor::match(buffer.getLayout().getLayout(), /*kDim=*/1 - index, bits);
    if (!descriptor || (shape.needsKMajor(bits) && !descriptor->isKMajor()))
      return emitOpError("cannot read ") << buffer;
  }
  if (failed(verifyLayout(*this, "a", getA().getType(), [&] { return getOperandLayout(); })))
    return failure();
  return verifyLayout(*this, "a result", getType(), [&] { return getAccumulatorLayout(); });
}

void WarpgroupDotOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable()})
    if (isa<MemDescType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand, SharedMemory::get());
}

//===----------------------------------------------------------------------===//
// WarpgroupWaitOp
//===----------------------------------------------------------------------===//

LogicalResult WarpgroupWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                Adaptor adaptor, SmallVectorImpl<Type> &results) {
  llvm::append_range(results, adaptor.getAccumulators().getTypes());
  return success();
}

LogicalResult WarpgroupWaitOp::verify() {
  if (!llvm::all_equal(getAccumulators().getTypes()))
    return emitOpError("waits for accumulators of several types");
  return success();
}
