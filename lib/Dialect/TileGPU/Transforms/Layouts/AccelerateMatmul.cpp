// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots on tensor cores.
//
// Which instruction a dot gets follows from its types and extents, the warps there are, and the
// target. Operands that the instruction reads from shared memory get a swizzle without bank
// conflicts. Operands computed in registers stay there if the instruction allows it. f32 operands
// that have to be more precise than tf32 are split into sums of narrower ones (FloatParts.h).

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/FloatParts.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "tessera/Machine/MMAShape.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUACCELERATEMATMULPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Rows that a warp has of the result of mma.sync (mmaAccumulator), whatever the instruction.
static constexpr unsigned kRowsOfWarp = MMAShape::get(MMAKind::Warp).rows;

namespace {

/// A dot: its extents, and their parts that are powers of two.
struct Dot {
  explicit Dot(tile::DotOp op)
      : op(op), element(getElementTypeOrSelf(op.getA().getType())),
        other(getElementTypeOrSelf(op.getB().getType())),
        accumulator(getElementTypeOrSelf(op.getType())), shape(tile::getShape(op.getType())),
        bits(element.getIntOrFloatBitWidth()) {
    LinearLayout ofResult(shape), ofA(tile::getShape(op.getA().getType()));
    unsigned rank = shape.size();
    m = 1u << ofResult.dimBits(rank - 2);
    n = 1u << ofResult.dimBits(rank - 1);
    k = 1u << ofA.dimBits(rank - 1);
  }

  /// The dot of the transposed operands, in the other order (swap-AB): its result transposed.
  Dot swapped() const {
    Dot dot(*this);
    std::swap(dot.m, dot.n);
    std::swap(dot.element, dot.other);
    dot.isSwapped = true;
    return dot;
  }

  bool isBatched() const { return shape.size() > 2; }
  bool isFloat8() const { return isa<FloatType>(element) && bits == 8; }
  /// True if instructions for 8-bit floats take both operands: e4m3 and e5m2, also one of each.
  bool isOfFloat8MMA() const { return isNativeFloat8(element) && isNativeFloat8(other); }
  /// True if mma.sync multiplies 8-bit floats as f16: where it has no instruction for them, or one
  /// that sums more of them in less than f32 than may be.
  bool isWidened(const GPUMachine &gpu) const {
    std::optional<MMAInstruction> mma = gpu.findMMA(MMAKind::Warp, MMAElement::F8);
    return isFloat8() && !(mma && isOfFloat8MMA() && accumulator.isF32() && k >= mma->minK &&
                           op.getMaxImpreciseAcc() == 0);
  }
  /// The parts that operands are split into.
  FloatParts getParts() const {
    return FloatParts(element.isF32() ? op.getPrecision() : tile::InputPrecision::TF32);
  }
  unsigned getOperandBits() const { return getParts().isBF16 ? getBits(MMAElement::BF16) : bits; }
  /// The element types of an instruction of this kind.
  std::optional<MMAElement> getMMAElement(MMAKind kind, const GPUMachine &gpu) const {
    if (isFloat8())
      return kind == MMAKind::Warp && isWidened(gpu) ? MMAElement::F16 : MMAElement::F8;
    if (element.isF16())
      return MMAElement::F16;
    if (element.isBF16() || (element.isF32() && getParts().isBF16))
      return MMAElement::BF16;
    if (element.isF32())
      return MMAElement::TF32;
    if (element.isF64())
      return MMAElement::F64;
    return bits == 8 ? std::optional(MMAElement::I8) : std::nullopt;
  }

  mutable tile::DotOp op;
  Type element, other, accumulator;
  ArrayRef<int64_t> shape;
  unsigned bits, m, n, k;
  bool isSwapped = false;
};

/// The resources of the GPU and the program.
struct Machine {
  unsigned warps;
  const GPUMachine &gpu;
};

/// The warps along each dimension of a result.
using Spread = SmallVector<int32_t, 3>;

} // namespace

//===----------------------------------------------------------------------===//
// Which instruction
//===----------------------------------------------------------------------===//

/// True if a tile is computed from the result of a dot, in this iteration.
static bool comesFromDot(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Operation *, 16> seen;
  // Not of a GPU: a limit of the search.
  constexpr size_t kMaxVisitedOps = 256;
  while (!work.empty() && seen.size() < kMaxVisitedOps) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<tile::DotOp, tile::DotScaledOp, MmaDotOp, WarpgroupDotOp>(op))
      return true;
    if (op->getNumRegions() == 0 || isa<tile::ReduceOp>(op))
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
  }
  return false;
}

/// True if the result of this dot becomes the first operand of another one.
static bool becomesOperand(tile::DotOp op) {
  SmallVector<Value> work{op.getResult()};
  llvm::SmallDenseSet<Operation *, 16> seen;
  // Not of a GPU: a limit of the search.
  constexpr size_t kMaxVisitedOps = 256;
  while (!work.empty() && seen.size() < kMaxVisitedOps) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if ((isa<tile::DotOp, MmaDotOp, WarpgroupDotOp>(user)) && use.getOperandNumber() == 0)
        return true;
      if (isa<tile::DotOp, MmaDotOp, WarpgroupDotOp>(user) || !seen.insert(user).second)
        continue;
      for (Value result : user->getResults())
        if (isa<RankedTensorType>(result.getType()))
          work.push_back(result);
    }
  }
  return false;
}

/// Why a dot cannot be done by mma.sync; empty if it can.
static std::string whyNotMma(const Dot &dot, const Machine &machine) {
  if (dot.element.isF32() && dot.op.getPrecision() == tile::InputPrecision::IEEE)
    return "f32 operands are to keep their precision (input_precision)";
  std::optional<MMAElement> element = dot.getMMAElement(MMAKind::Warp, machine.gpu);
  if (!element)
    return "there is none for these types";
  std::optional<MMAInstruction> mma = machine.gpu.findMMA(MMAKind::Warp, *element);
  if (!mma)
    return "the target has no such instruction";
  if (dot.m < kRowsOfWarp || dot.n < mma->n || dot.k < mma->minK)
    return "the tile is smaller than the instruction's " + std::to_string(kRowsOfWarp) + "x" +
           std::to_string(mma->n) + "x" + std::to_string(mma->minK) +
           ", in the powers of two of its extents";
  return "";
}

static Spread spreadGroups(const Dot &dot, unsigned warps) {
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warpgroup);
  int64_t groups = warps / shape.warps, along = shape.countAlongRows(groups, dot.m);
  return {int32_t(along), int32_t(groups / along)};
}

/// Why a dot cannot be done by wgmma; empty if it can.
static std::string whyNotWgmma(const Dot &dot, const Machine &machine) {
  if (std::string why = whyNotMma(dot, machine); !why.empty())
    return why;
  if (!machine.gpu.hasWarpgroupMMA())
    return (machine.gpu.name + " has no wgmma").str();
  if (dot.isBatched())
    return "the dot is one of batches";
  std::optional<MMAInstruction> mma =
      machine.gpu.findMMA(MMAKind::Warpgroup, *dot.getMMAElement(MMAKind::Warpgroup, machine.gpu));
  if (!mma)
    return "there is none for f64";
  if (dot.isFloat8() && !dot.isOfFloat8MMA())
    return "there is none for these types";
  if (machine.warps % kWarpsOfWarpgroup != 0)
    return "num_warps is " + std::to_string(machine.warps) + ", no multiple of " +
           std::to_string(kWarpsOfWarpgroup);
  if (dot.m < mma->m)
    return "the tile has less than " + std::to_string(mma->m) +
           " rows, in the power of two of its extent";
  if (dot.k < mma->minK)
    return "K is less than " + std::to_string(MMAShape::get(MMAKind::Warpgroup).stepBytes) +
           " bytes, in the power of two of its extent";
  Spread groups = spreadGroups(dot, machine.warps);
  if (dot.n < mma->n * groups[1])
    return "the tile is too small for so many warps";
  return "";
}

/// Warps over the result such that each reads as little of the operands as possible; along
/// M alone where rows go from dot to dot in registers.
static Spread spreadWarps(const Dot &dot, unsigned warps) {
  Spread spread;
  if (dot.isBatched()) {
    unsigned batch = 1u << LinearLayout(dot.shape).dimBits(0);
    spread.push_back(std::min(batch, warps));
    warps /= spread.front();
  }
  bool isChained = becomesOperand(dot.op) || comesFromDot(dot.op.getA());
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warp);
  // Not of a GPU: more than rows and columns are.
  constexpr unsigned kCostOfCopies = 1024, kCostOfOtherRows = 512;
  unsigned best = 1, least = ~0u;
  for (unsigned along = 1; along <= warps; along *= 2) {
    unsigned rows = std::max<unsigned>(shape.rows, dot.m / along);
    unsigned columns = std::max<unsigned>(shape.columns, dot.n / (warps / along));
    unsigned cost = rows + columns;
    // Copies: warps beyond the tile's extent.
    if (dot.m < shape.rows * along || dot.n < shape.columns * (warps / along))
      cost += kCostOfCopies;
    if (isChained && along != warps)
      cost += kCostOfOtherRows;
    if (cost <= least) {
      least = cost;
      best = along;
    }
  }
  spread.push_back(best);
  spread.push_back(warps / best);
  return spread;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

class MatmulRewriter {
public:
  MatmulRewriter(const Machine &machine, AccessAnalysis &analysis)
      : machine(machine), analysis(analysis) {}

  void toMma(const Dot &dot);
  /// Fails if an operand cannot be laid out as the instruction reads it.
  LogicalResult toWgmma(const Dot &dot);
  /// For operands of f32 that are split into parts.
  void toWgmmaOfParts(const Dot &dot);
  /// True if wgmma takes the dot better with its operands swapped (swap-AB).
  bool isBetterSwapped(const Dot &dot);

private:
  /// A tile in shared memory, with dimension `fast` in rows if that is given, else as it
  /// comes from global memory. Transposed tiles are stored as they come, and looked at transposed.
  Value store(Value tile, std::optional<unsigned> fast, Operation *user);
  /// The operand of an mma.sync: through shared memory if it comes from global memory.
  Value read(Value tile, Operation *user);
  /// The dimension along which a loaded tile lies in rows.
  unsigned getFast(Value tile);
  /// True if a loaded operand, or what it is the transpose of, lies in rows along `kDim`.
  bool liesAlong(Value tile, unsigned kDim);

  const Machine &machine;
  AccessAnalysis &analysis;
  llvm::DenseMap<std::pair<Value, Type>, Value> buffers;
};

} // namespace

/// The source of a transposed tile; the tile itself if it is not a transpose.
static Value skipTransposes(Value tile) {
  Operation *op = tile.getDefiningOp();
  bool isTransposed =
      op && tile::getShape(tile.getType()).size() == 2 && tile::permutesDimensions(op);
  return isTransposed ? op->getOperand(0) : tile;
}

/// A tile transposed, or what it is the transpose of.
static Value transposeTile(OpBuilder &builder, Value tile) {
  if (Value source = skipTransposes(tile); source != tile)
    return source;
  return tile::TransOp::create(builder, tile.getLoc(), tile, ArrayRef<int32_t>{1, 0});
}

static bool isLoaded(Value tile) { return isa_and_nonnull<tile::LoadOp>(tile.getDefiningOp()); }

unsigned MatmulRewriter::getFast(Value tile) {
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load || !getAccessedPointers(load))
    return 1;
  AccessPattern pattern = getAccessPattern(load, analysis);
  LinearLayout numbers(tile::getShape(tile.getType()));
  // The dimension with a stride of one element, whatever the alignment.
  for (unsigned dim : {1u, 0u})
    if (numbers.dimBits(dim) > 0 && pattern.strides[numbers.dimShift(dim)] == pattern.elementBytes)
      return dim;
  return 1;
}

bool MatmulRewriter::liesAlong(Value tile, unsigned kDim) {
  Value source = skipTransposes(tile);
  return getFast(source) == (source == tile ? kDim : 1 - kDim);
}

Value MatmulRewriter::store(Value tile, std::optional<unsigned> fast, Operation *user) {
  Value source = skipTransposes(tile);
  bool isTransposed = source != tile;
  auto type = cast<RankedTensorType>(source.getType());
  LinearLayout numbers(type.getShape());
  // Repeats of two odd extents would come in another order.
  if (isTransposed && numbers.oddFactor(0) != 1 && numbers.oddFactor(1) != 1) {
    source = tile;
    isTransposed = false;
    type = cast<RankedTensorType>(source.getType());
  }
  unsigned rows = fast ? (isTransposed ? 1 - *fast : *fast) : getFast(source);
  MLIRContext *context = source.getContext();
  LinearLayout memory =
      operandMemory(type.getShape(), rows, type.getElementType().getIntOrFloatBitWidth());
  auto buffer = MemDescType::get(context, type.getShape(), type.getElementType(),
                                 LayoutAttr::get(context, memory));
  Value &stored = buffers[{source, buffer}];
  if (!stored) {
    // Not before other operands are loaded; but what a loop only uses, outside of it.
    OpBuilder builder(user);
    if (source.getParentBlock() != user->getBlock())
      builder.setInsertionPointAfterValue(source);
    stored = LocalAllocOp::create(builder, source.getLoc(), buffer, source);
  }
  if (!isTransposed)
    return stored;
  Value &transposed = buffers[{tile, buffer}];
  if (!transposed) {
    OpBuilder builder(context);
    builder.setInsertionPointAfterValue(stored);
    transposed = MemDescTransOp::create(builder, source.getLoc(), stored,
                                        builder.getDenseI32ArrayAttr({1, 0}));
  }
  return transposed;
}

Value MatmulRewriter::read(Value tile, Operation *user) {
  if (tile::getShape(tile.getType()).size() != 2 || !isLoaded(skipTransposes(tile)))
    return tile;
  Value buffer = store(tile, std::nullopt, user);
  OpBuilder builder(user);
  return LocalLoadOp::create(builder, tile.getLoc(), tile.getType(), buffer);
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

static RankedTensorType withElement(Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

void MatmulRewriter::toMma(const Dot &dot) {
  tile::DotOp op = dot.op;
  OpBuilder builder(op);
  Value left = op.getA(), right = op.getB(), acc = op.getAcc();
  if (dot.isSwapped) {
    std::swap(left, right);
    for (Value *tile : {&left, &right, &acc})
      *tile = transposeTile(builder, *tile);
  }
  Value a = read(left, op), b = read(right, op);
  if (dot.isWidened(machine.gpu)) {
    a = tile::FpToFpOp::create(builder, op.getLoc(), withElement(a, builder.getF16Type()), a);
    b = tile::FpToFpOp::create(builder, op.getLoc(), withElement(b, builder.getF16Type()), b);
  }
  auto warps = builder.getDenseI32ArrayAttr(spreadWarps(dot, machine.warps));
  Value result =
      MmaDotOp::create(builder, op.getLoc(), a, b, acc, warps,
                       dot.element.isF32() ? op.getPrecision() : tile::InputPrecision::TF32);
  if (dot.isSwapped)
    result = tile::TransOp::create(builder, op.getLoc(), result, ArrayRef<int32_t>{1, 0});
  op.replaceAllUsesWith(result);
  op.erase();
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// A computed operand can remain in registers only as the first operand. If it is the second one,
/// the dot's operands are swapped. The same holds for operands that the instruction cannot read
/// from memory: elements of 8 and 32 bits with rows across K. As fragments in registers they need
/// no transposition.
bool MatmulRewriter::isBetterSwapped(const Dot &dot) {
  tile::DotOp op = dot.op;
  if (!whyNotWgmma(dot.swapped(), machine).empty() || !isLoaded(skipTransposes(op.getA())))
    return false;
  // Parts of the second operand are written to memory, in rows along K if they are tf32.
  if (dot.getParts().count > 1 && isLoaded(skipTransposes(op.getB())))
    return !dot.getParts().isBF16 && liesAlong(op.getA(), /*kDim=*/1) && !liesAlong(op.getB(), 0);
  if (!isLoaded(skipTransposes(op.getB())))
    return true;
  return MMAShape::get(MMAKind::Warpgroup).needsKMajor(dot.bits) &&
         liesAlong(op.getA(), /*kDim=*/1) && !liesAlong(op.getB(), 0);
}

/// The order of rows for fragments that are read across rows of memory, where neighbours of a
/// column are neighbouring rows of the fragment.
struct FragmentRows {
  /// Parts of so many rows that change places: part (i, j) of i < outer, j < inner as part (j, i).
  int64_t outer, inner, rows;

  /// Bytes come in pairs, and a fragment has those in one thread: rows 2i and 2i + 1 of each 16 are
  /// i and i + 8. For words, a warp reads 8 neighbours in 4 lines, which lie 16 bytes apart in
  /// swizzled memory. With 4 neighbours, and 4 that are 64 bytes further, no two are in the same
  /// bank.
  static FragmentRows get(unsigned bits) {
    return bits == 8 ? FragmentRows{8, 2, 1} : FragmentRows{2, 4, 4};
  }
};

/// Permutes the rows of a tile to this order, or with `back` to the tile's own order.
static Value orderRows(OpBuilder &builder, Location loc, Value tile, FragmentRows order,
                       bool back) {
  ArrayRef<int64_t> shape = tile::getShape(tile.getType());
  auto reshape = [&](Value value, ArrayRef<int64_t> to) -> Value {
    auto type = cast<RankedTensorType>(value.getType());
    return tile::ReshapeOp::create(
        builder, loc, RankedTensorType::get(to, type.getElementType(), type.getEncoding()), value);
  };
  if (back)
    std::swap(order.outer, order.inner);
  int64_t all = order.outer * order.inner * order.rows;
  Value split = reshape(tile, {shape[0] / all, order.outer, order.inner, order.rows * shape[1]});
  Value moved = tile::TransOp::create(builder, loc, split, ArrayRef<int32_t>{0, 2, 1, 3});
  return reshape(moved, shape);
}

LogicalResult MatmulRewriter::toWgmma(const Dot &dot) {
  if (dot.getParts().count > 1) {
    toWgmmaOfParts(dot);
    return success();
  }
  tile::DotOp op = dot.op;
  constexpr unsigned kAlongA = 1, kAlongB = 0;
  bool isKMajor = MMAShape::get(MMAKind::Warpgroup).needsKMajor(dot.bits);
  auto place = [&](Value tile, unsigned kDim) -> Value {
    if (isKMajor)
      return store(tile, kDim, op);
    Value buffer = store(tile, std::nullopt, op);
    auto matches = [&](Value value) {
      return MatrixDescriptor::match(cast<MemDescType>(value.getType()).getLayout().getLayout(),
                                     kDim, dot.bits)
          .has_value();
    };
    if (!matches(buffer))
      buffer = store(tile, kDim, op);
    return matches(buffer) ? buffer : Value();
  };
  OpBuilder builder(op);
  auto transpose = [&](Value tile) -> Value {
    return dot.isSwapped ? transposeTile(builder, tile) : tile;
  };
  Value left = dot.isSwapped ? op.getB() : op.getA();
  Value right = dot.isSwapped ? op.getA() : op.getB();
  left = transpose(left);
  right = transpose(right);
  bool isFragment = isKMajor && isLoaded(skipTransposes(left)) && !liesAlong(left, kAlongA);
  FragmentRows order = FragmentRows::get(dot.bits);
  auto isPowerOf2 = [](Value tile) {
    return llvm::all_of(tile::getShape(tile.getType()), llvm::isPowerOf2_64);
  };
  // Parts of several rows are put together with their columns, whose odd factor nothing may cut.
  bool isOrdered = isFragment && isPowerOf2(left) && (order.rows == 1 || isPowerOf2(op.getAcc()));
  Value a = isLoaded(skipTransposes(left)) && !isFragment ? place(left, kAlongA) : left;
  Value b = place(right, kAlongB);
  if (!a || !b)
    return failure();
  Value acc = transpose(op.getAcc());
  if (isOrdered) {
    a = orderRows(builder, op.getLoc(), a, order, /*back=*/false);
    acc = orderRows(builder, op.getLoc(), acc, order, /*back=*/false);
  }
  auto newDot =
      WarpgroupDotOp::create(builder, op.getLoc(), acc.getType(), a, b, acc,
                             builder.getDenseI32ArrayAttr(spreadGroups(dot, machine.warps)));
  newDot.setMaxImpreciseAcc(op.getMaxImpreciseAcc());
  Value result = newDot;
  if (isOrdered)
    result = orderRows(builder, op.getLoc(), result, order, /*back=*/true);
  result = transpose(result);
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

/// Sinks a load, and its transposition, to their only user, if no op between may write to its
/// addresses.
static void sinkLoad(Value tile, Operation *user) {
  SmallVector<Operation *> moved;
  for (Operation *op = tile.getDefiningOp(); op && op->hasOneUse();
       op = op->getOperand(0).getDefiningOp()) {
    moved.push_back(op);
    if (tile::permutesDimensions(op))
      continue;
    if (!isa<tile::LoadOp>(op) || op->getBlock() != user->getBlock())
      return;
    AccessAnalysis analysis;
    MemoryOrder order(analysis);
    for (Operation *way = op->getNextNode(); way != user; way = way->getNextNode())
      if (!isMemoryEffectFree(way) &&
          (way->getNumRegions() != 0 || !order.mayPass(op, way).isIndependent()))
        return;
    for (Operation *each : llvm::reverse(moved))
      each->moveBefore(user);
    return;
  }
}

/// The first operand is split in registers, the second one before its store to shared memory.
void MatmulRewriter::toWgmmaOfParts(const Dot &dot) {
  tile::DotOp op = dot.op;
  Location loc = op.getLoc();
  OpBuilder builder(op);
  auto transpose = [&](Value tile) -> Value {
    return dot.isSwapped ? transposeTile(builder, tile) : tile;
  };
  FloatParts parts = dot.getParts();
  Value left = transpose(dot.isSwapped ? op.getB() : op.getA()),
        right = transpose(dot.isSwapped ? op.getA() : op.getB());
  constexpr unsigned kAlongB = 0;
  unsigned fast = !parts.isBF16 || liesAlong(right, kAlongB) ? kAlongB : 1;
  auto type = cast<RankedTensorType>(right.getType());
  Type element = parts.isBF16 ? Type(builder.getBF16Type()) : type.getElementType();
  LinearLayout memory = operandMemory(type.getShape(), fast, dot.getOperandBits());
  auto ring = LocalAllocOp::create(builder, loc,
                                   MemDescType::get(builder.getContext(), type.getShape(), element,
                                                    LayoutAttr::get(builder.getContext(), memory))
                                       .getRing(parts.count),
                                   Value());
  for (auto [index, part] : llvm::enumerate(parts.split(builder, loc, right))) {
    Value slot = MemDescIndexOp::create(
        builder, loc, ring,
        arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(index)));
    LocalStoreOp::create(builder, loc, part, slot);
  }
  Value acc = transpose(op.getAcc());
  auto newDot =
      WarpgroupDotOp::create(builder, loc, acc.getType(), left, ring, acc,
                             builder.getDenseI32ArrayAttr(spreadGroups(dot, machine.warps)));
  newDot.setPrecision(op.getPrecision());
  Value result = transpose(newDot);
  op.replaceAllUsesWith(result);
  op.erase();
  if (newDot.getType().getNumElements() >
      RegisterBudget::kMaxAccumulatorsBesidePairs * GPUMachine::kWarpSize * machine.warps)
    sinkLoad(left, newDot);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUAccelerateMatmulPass
    : tessera::tilegpu::impl::TileGPUAccelerateMatmulPassBase<TileGPUAccelerateMatmulPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    if (!warps || !target) {
      module.emitError("does not say for which target and how many warps it is (")
          << kTargetAttr << ", " << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    Machine machine = {*warps, *target.getMachine()};
    for (auto function : module.getOps<tile::FuncOp>())
      accelerate(function, machine);
  }

private:
  void accelerate(tile::FuncOp function, const Machine &machine);
};

} // namespace

/// "dot of 128x64x32 of f16", to which is added how it is done.
static RemarkInFlight remarkOn(Location loc, const std::string &shape, Type element) {
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return emitRemark(loc, RemarkKind::Dot)
         << "dot of " << named("shape", shape) << " of " << named("element", name);
}

/// "128x64x32".
static std::string describeShape(const Dot &dot) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(dot.shape, os, "x");
  os << 'x' << tile::getShape(dot.op.getA().getType()).back();
  return text;
}

void TileGPUAccelerateMatmulPass::accelerate(tile::FuncOp function, const Machine &machine) {
  AccessAnalysis analysis;
  MatmulRewriter rewriter(machine, analysis);
  SmallVector<tile::DotOp> dots;
  function.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  for (tile::DotOp op : dots) {
    Dot dot(op);
    Location loc = op.getLoc();
    std::string shape = describeShape(dot);
    Type element = dot.element;
    std::string noMma = whyNotMma(dot, machine);
    // Few rows are few columns of the dot with its operands swapped.
    if (!noMma.empty() && !dot.isBatched() && whyNotMma(dot.swapped(), machine).empty()) {
      dot = dot.swapped();
      noMma.clear();
    }
    if (!noMma.empty()) {
      remarkOn(loc, shape, element) << " by " << named("instruction", StringRef("multiply-add"))
                                    << ", not on tensor cores: " << named("reason", noMma);
      continue;
    }
    std::string noWgmma = whyNotWgmma(dot, machine);
    if (noWgmma.empty()) {
      bool swaps = rewriter.isBetterSwapped(dot);
      if (succeeded(rewriter.toWgmma(swaps ? dot.swapped() : dot))) {
        remarkOn(loc, shape, element) << " by " << named("instruction", StringRef("wgmma"));
        continue;
      }
      noWgmma = "an operand cannot be laid out for it";
    }
    rewriter.toMma(dot);
    remarkOn(loc, shape, element) << " by " << named("instruction", StringRef("mma.sync"))
                                  << ", not wgmma: " << named("reason", noWgmma);
  }
  // Erase unused transposes: planners of copies look at the users of a tile.
  function.walk([](Operation *op) {
    if (op->use_empty() && tile::permutesDimensions(op))
      op->erase();
  });
}
