// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots on tensor cores.
//
// Which instruction a dot gets follows from its types and extents, the warps there are, and the
// target: the first that can do it (DotInstruction.h). Operands that the instruction reads from
// shared memory get a swizzle without bank conflicts. Operands computed in registers stay there if
// the instruction allows it. f32 operands that have to be more precise than tf32 are split into
// sums of narrower ones (FloatParts.h).

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"
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

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

class MatmulRewriter {
public:
  MatmulRewriter(const DotMachine &machine, AccessAnalysis &analysis)
      : machine(machine), analysis(analysis) {}

  /// With operands in registers.
  void toRegisters(const DotExtents &dot, const DotInstruction &instruction);
  /// With operands in shared memory. Fails if one cannot be laid out as the
  /// instruction reads it.
  LogicalResult toSharedMemory(const DotExtents &dot, const DotInstruction &instruction);
  /// For operands of f32 that are split into parts.
  void toParts(const DotExtents &dot, const DotInstruction &instruction);
  /// True if the instruction takes the dot better with its operands swapped
  /// (swap-AB).
  bool isBetterSwapped(const DotExtents &dot, const DotInstruction &instruction);

private:
  /// A tile in shared memory, with dimension `fast` in rows if that is given, else as it
  /// comes from global memory. Transposed tiles are stored as they come, and looked at transposed.
  Value store(Value tile, std::optional<unsigned> fast, Operation *user);
  /// An operand in registers: through shared memory if it comes from global memory.
  Value read(Value tile, Operation *user);
  /// The dimension along which a tile lies in rows, or what it is computed from.
  unsigned getFast(Value tile);
  /// True if a loaded operand, or what it is the transpose of, lies in rows along `kDim`.
  bool liesAlong(Value tile, unsigned kDim);

  const DotMachine &machine;
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

/// The load that an element-wise result of a tile is made of; null if there is none. The load with
/// the widest elements counts: others are cheaper to move.
static tile::LoadOp findSource(Value tile) {
  auto getBytes = [](tile::LoadOp load) {
    return getElementBytes(getElementTypeOrSelf(load.getType()));
  };
  tile::LoadOp largest;
  SmallVector<Value> work{tile};
  llvm::SmallDenseSet<Operation *, 8> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) ||
        tile::getShape(value.getType()) != tile::getShape(tile.getType()) ||
        !seen.insert(op).second)
      continue;
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (!largest || getBytes(largest) < getBytes(load))
        largest = load;
    } else if (op->hasTrait<OpTrait::Elementwise>()) {
      llvm::append_range(work, op->getOperands());
    }
  }
  return largest;
}

unsigned MatmulRewriter::getFast(Value tile) {
  tile::LoadOp load = findSource(tile);
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
// Operands in registers
//===----------------------------------------------------------------------===//

static RankedTensorType withElement(Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

void MatmulRewriter::toRegisters(const DotExtents &dot, const DotInstruction &instruction) {
  tile::DotOp op = dot.op;
  OpBuilder builder(op);
  Value left = op.getA(), right = op.getB(), acc = op.getAcc();
  if (dot.isSwapped) {
    std::swap(left, right);
    for (Value *tile : {&left, &right, &acc})
      *tile = transposeTile(builder, *tile);
  }
  Value a = read(left, op), b = read(right, op);
  if (Type wider = instruction.getWiderType(dot, machine)) {
    a = tile::FpToFpOp::create(builder, op.getLoc(), withElement(a, wider), a);
    b = tile::FpToFpOp::create(builder, op.getLoc(), withElement(b, wider), b);
  }
  Value result = instruction.create(builder, dot, machine, a, b, acc)->getResult(0);
  if (dot.isSwapped)
    result = tile::TransOp::create(builder, op.getLoc(), result, ArrayRef<int32_t>{1, 0});
  op.replaceAllUsesWith(result);
  op.erase();
}

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

/// A computed operand can remain in registers only as the first operand. If it is the second one,
/// the dot's operands are swapped. The same holds for operands that the instruction cannot read
/// from memory: elements of 8 and 32 bits with rows across K. As fragments in registers they need
/// no transposition.
bool MatmulRewriter::isBetterSwapped(const DotExtents &dot, const DotInstruction &instruction) {
  tile::DotOp op = dot.op;
  if (!instruction.whyNot(dot.swapped(), machine).empty() || !isLoaded(skipTransposes(op.getA())))
    return false;
  // Parts of the second operand are written to memory, in rows along K if they are tf32.
  if (dot.getParts().count > 1 && isLoaded(skipTransposes(op.getB())))
    return !dot.getParts().isBF16 && liesAlong(op.getA(), /*kDim=*/1) && !liesAlong(op.getB(), 0);
  if (!isLoaded(skipTransposes(op.getB())))
    return true;
  return instruction.needsKMajor(dot.bits) && liesAlong(op.getA(), /*kDim=*/1) &&
         !liesAlong(op.getB(), 0);
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

LogicalResult MatmulRewriter::toSharedMemory(const DotExtents &dot,
                                             const DotInstruction &instruction) {
  if (dot.getParts().count > 1) {
    toParts(dot, instruction);
    return success();
  }
  tile::DotOp op = dot.op;
  constexpr unsigned kAlongA = 1, kAlongB = 0;
  bool isKMajor = instruction.needsKMajor(dot.bits);
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
  Value result = instruction.create(builder, dot, machine, a, b, acc)->getResult(0);
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
void MatmulRewriter::toParts(const DotExtents &dot, const DotInstruction &instruction) {
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
  Operation *newDot = instruction.create(builder, dot, machine, left, ring, acc);
  Value result = transpose(newDot->getResult(0));
  op.replaceAllUsesWith(result);
  op.erase();
  if (cast<RankedTensorType>(acc.getType()).getNumElements() >
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
    DotMachine machine = {*warps, *target.getMachine()};
    for (auto function : module.getOps<tile::FuncOp>())
      accelerate(function, machine);
  }

private:
  void accelerate(tile::FuncOp function, const DotMachine &machine);
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
static std::string describeShape(const DotExtents &dot) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(dot.shape, os, "x");
  os << 'x' << tile::getShape(dot.op.getA().getType()).back();
  return text;
}

void TileGPUAccelerateMatmulPass::accelerate(tile::FuncOp function, const DotMachine &machine) {
  AccessAnalysis analysis;
  MatmulRewriter rewriter(machine, analysis);
  SmallVector<const DotInstruction *> instructions = getDotInstructions(&getContext());
  // The last one takes operands in registers, whatever the number of warps.
  const DotInstruction &last = *instructions.pop_back_val();
  SmallVector<tile::DotOp> dots;
  function.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  for (tile::DotOp op : dots) {
    DotExtents dot(op);
    Location loc = op.getLoc();
    std::string shape = describeShape(dot);
    Type element = dot.element;
    std::string why = last.whyNot(dot, machine);
    // Few rows are few columns of the dot with its operands swapped.
    if (!why.empty() && !dot.isBatched() && last.whyNot(dot.swapped(), machine).empty()) {
      dot = dot.swapped();
      why.clear();
    }
    if (!why.empty()) {
      remarkOn(loc, shape, element) << " by " << named("instruction", StringRef("multiply-add"))
                                    << ", not on tensor cores: " << named("reason", why);
      continue;
    }
    const DotInstruction *refused = nullptr;
    bool isDone = false;
    for (const DotInstruction *instruction : instructions) {
      std::string whyNot = instruction->whyNot(dot, machine);
      if (whyNot.empty()) {
        bool swaps = rewriter.isBetterSwapped(dot, *instruction);
        isDone = succeeded(rewriter.toSharedMemory(swaps ? dot.swapped() : dot, *instruction));
        whyNot = "an operand cannot be laid out for it";
      }
      if (isDone) {
        remarkOn(loc, shape, element) << " by " << named("instruction", instruction->getName());
        break;
      }
      refused = instruction;
      why = std::move(whyNot);
    }
    if (isDone)
      continue;
    rewriter.toRegisters(dot, last);
    remarkOn(loc, shape, element) << " by " << named("instruction", last.getName()) << ", not "
                                  << refused->getName() << ": " << named("reason", why);
  }
  // Erase unused transposes: planners of copies look at the users of a tile.
  function.walk([](Operation *op) {
    if (op->use_empty() && tile::permutesDimensions(op))
      op->erase();
  });
}
