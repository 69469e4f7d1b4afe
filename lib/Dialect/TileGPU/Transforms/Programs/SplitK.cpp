// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that sum up dots, divided among the blocks of a cluster along what is summed over.
//
// If a grid has fewer programs than a GPU has SMs, a matmul with few rows takes as long as one SM
// needs for a tile of the result. With a cluster for each program, its blocks multiply at the same
// time. Block r of four runs the iterations r, r + 4, r + 8, ... of the loop, on whole tiles, as a
// program of one block would. Behind the loop what they have is added, and from there on they share
// the tile like any other:
//
//     %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) { ... dot ... }
//     ... %sum ...
//
//     becomes
//
//     %rank = tilegpu.cluster_rank : i32
//     %first = arith.muli %rank, %c64
//     %part = scf.for %k = %first to %n step %c256 iter_args(%acc = %zero) { ... dot ... }
//     %sum = tilegpu.cluster_sum %part
//     ... %sum ...
//
// Neighbours in the cluster read neighbouring places of memory, and of iterations none has two
// more than another.
//
// Up to the sum blocks are not at the same place of the program, so that they must not meet. All
// that comes before is done by each of them on whole tiles (LayoutGraph.cpp), and so must not
// write to memory. Nothing in the kernel may see by how many blocks it is done (MachineView.h).

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "LoopDots.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSPLITKPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// An integer that each iteration moves by the same amount, which is known before the loop.
struct Induction {
  unsigned number;
  Value amount;
};

/// A loop, and what becomes of all that it carries.
class LoopSplitter {
public:
  /// `isWanted`: a remark says why a loop cannot be split.
  LoopSplitter(scf::ForOp loop, unsigned numBlocks, bool isWanted)
      : loop(loop), numBlocks(numBlocks), isWanted(isWanted) {}

  /// True if the loop can be divided; if not, a remark says why.
  bool plan();
  void split();
  /// The costs by which a launch decides about splitting; null if the number of iterations is not
  /// known there.
  DivisibleSumAttr describe(const GPUMachine &machine) const;

private:
  bool refuse(const Twine &why, Operation *place = nullptr);
  bool planBounds();
  bool planCarried(unsigned number);
  bool isAccumulator(BlockArgument argument, Value next);
  bool planSurroundings();

  scf::ForOp loop;
  unsigned numBlocks;
  bool isWanted;
  APInt lower, step;
  SmallVector<unsigned> accumulators;
  SmallVector<Induction> inductions;
  SmallVector<Operation *> dots;
};

} // namespace

//===----------------------------------------------------------------------===//
// Whether
//===----------------------------------------------------------------------===//

bool LoopSplitter::refuse(const Twine &why, Operation *place) {
  if (!isWanted)
    return false;
  RemarkInFlight remark = emitRemark(loop, RemarkKind::LoopNotDivided)
                          << "loop is not divided among the blocks of a cluster: "
                          << named("reason", why.str());
  if (place)
    remark.attachNote(place->getLoc()) << "here";
  return false;
}

/// The first iterations of all blocks, and the step of each, have to be numbers of the loop's type.
bool LoopSplitter::planBounds() {
  if (loop.getUnsignedCmp() || !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return refuse("its lower bound and step are not constants");
  unsigned width = lower.getBitWidth();
  APInt wideStep = step.sext(2 * width) * numBlocks, most = lower.sext(2 * width) + wideStep;
  if (!wideStep.isSignedIntN(width) || !most.isSignedIntN(width) || lower.isNegative())
    return refuse("its bounds exceed their type");
  return true;
}

/// Moves row-major places of elements of an op's result to those of its operand. The op permutes
/// dimensions.
static void followPermutation(Operation *op, SmallVectorImpl<int32_t> &places) {
  ArrayRef<int64_t> from = tile::getShape(op->getOperand(0).getType());
  ArrayRef<int64_t> to = tile::getShape(op->getResult(0).getType());
  SmallVector<int64_t> strides = computeSuffixProduct(from);
  AffineMap map = tile::getSourceMap(op->getOpOperand(0));
  SmallVector<int64_t> stridesOfResult(to.size());
  for (unsigned dim = 0; dim < to.size(); ++dim)
    stridesOfResult[dim] = strides[*tile::getSourceDim(map, dim)];
  for (int32_t &place : places) {
    int64_t rest = place, source = 0;
    for (unsigned dim = to.size(); dim-- > 0; rest /= to[dim])
      source += rest % to[dim] * stridesOfResult[dim];
    place = static_cast<int32_t>(source);
  }
}

/// True if the yielded value is the carried tile plus dots. It may be reshaped in between if each
/// element returns to its own place: the iterations' terms must be the same in any order.
bool LoopSplitter::isAccumulator(BlockArgument argument, Value next) {
  bool hasDot = false;
  // Elements of `value` by those of `next`; none while they have the same places.
  SmallVector<int32_t, 0> from;
  for (Value value = next; value != argument;) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !value.hasOneUse())
      return false;
    if (isa<DotOpInterface>(op)) {
      hasDot = true;
      value = op->getOperand(kAccOperand);
    } else if (tile::onlyReshapes(op)) {
      value = op->getOperand(0);
    } else if (tile::permutesDimensions(op)) {
      if (from.empty()) {
        from.resize(cast<RankedTensorType>(value.getType()).getNumElements());
        std::iota(from.begin(), from.end(), 0);
      }
      followPermutation(op, from);
      value = op->getOperand(0);
    } else {
      return false;
    }
  }
  bool isIdentity = llvm::all_of(llvm::enumerate(from), [](auto place) {
    return place.value() == static_cast<int32_t>(place.index());
  });
  return hasDot && isIdentity && argument.hasOneUse();
}

bool LoopSplitter::planCarried(unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  Value next = loop.getYieldedValues()[number];
  if (isAccumulator(argument, next)) {
    accumulators.push_back(number);
    return true;
  }
  if (!loop.getResult(number).use_empty())
    return refuse("a carried value is used after it, but is not an accumulator of a dot");
  if (next == argument)
    return true;
  auto add = next.getDefiningOp<arith::AddIOp>();
  if (!add || !argument.getType().isIntOrIndex())
    return refuse("it carries a value that is neither an accumulator of a dot nor an integer with "
                  "a fixed step");
  Value amount = add.getLhs() == argument ? add.getRhs() : add.getLhs();
  bool hasArgument = add.getLhs() == argument || add.getRhs() == argument;
  if (!hasArgument || !loop.isDefinedOutsideOfLoop(amount))
    return refuse("it carries a value that is neither an accumulator of a dot nor an integer with "
                  "a fixed step");
  inductions.push_back({number, amount});
  return true;
}

/// True if an op accesses the block's shared memory alone.
static bool staysInBlock(Operation *op) {
  auto accesses = dyn_cast<MemoryEffectOpInterface>(op);
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (accesses)
    accesses.getEffects(effects);
  return accesses && llvm::all_of(effects, [](const MemoryEffects::EffectInstance &effect) {
           return isa<SharedMemory>(effect.getResource());
         });
}

/// True if each block of a cluster may run an op separately, any number of times.
static bool mayBeDoneByEach(Operation *op) {
  if (isa<CallOpInterface>(op))
    return false;
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op))
    return true;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return !load.getIsVolatile();
  return isDot(op) || isa<tile::AssumeOp>(op) || staysInBlock(op);
}

/// The ops before the sum, in the loop or in front of it, and its uses.
bool LoopSplitter::planSurroundings() {
  auto kernel = cast<tile::FuncOp>(loop->getParentOp());
  Operation *wrong = nullptr;
  bool hasDotsBehind = false;
  for (Operation &top : kernel.getBody().front()) {
    bool isBefore = &top == loop || top.isBeforeInBlock(loop);
    top.walk([&](Operation *op) {
      if (!isBefore) {
        // The warps that load for such a loop would not come where blocks meet.
        hasDotsBehind |= isDot(op) && op->getBlock() != loop->getBlock();
        return;
      }
      if (isDot(op))
        dots.push_back(op);
      if (!wrong && !mayBeDoneByEach(op))
        wrong = op;
    });
  }
  if (wrong)
    return refuse("an op in it or before it must run once a program, not in each block", wrong);
  if (hasDotsBehind)
    return refuse("a loop or a branch after it has dots");
  if (Operation *view = findViewOfMachine(kernel))
    return refuse("inline assembly or an external function may read the block's id", view);
  return true;
}

bool LoopSplitter::plan() {
  if (!isa<tile::FuncOp>(loop->getParentOp()))
    return refuse("it is in a loop or a branch");
  if (!planBounds())
    return false;
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
    if (!planCarried(number))
      return false;
  if (accumulators.empty())
    return refuse("it carries no accumulator of dots");
  return planSurroundings();
}

//===----------------------------------------------------------------------===//
// How
//===----------------------------------------------------------------------===//

static Value makeConstant(OpBuilder &builder, Location loc, Type type, const APInt &value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

/// The rank as a value of an integer type.
static Value castRank(OpBuilder &builder, Location loc, Value rank, Type type) {
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, rank);
  unsigned width = type.getIntOrFloatBitWidth(), own = rank.getType().getIntOrFloatBitWidth();
  if (width == own)
    return rank;
  // Inductions wrap as before.
  return width > own ? Value(arith::ExtSIOp::create(builder, loc, type, rank))
                     : Value(arith::TruncIOp::create(builder, loc, type, rank));
}

static Value makeZeros(OpBuilder &builder, Location loc, RankedTensorType type) {
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, cast<TypedAttr>(builder.getZeroAttr(type.getElementType()))));
}

void LoopSplitter::split() {
  Location loc = loop.getLoc();
  emitRemark(loop, RemarkKind::LoopDivided)
      << "loop is divided among the " << named("blocks", numBlocks)
      << " blocks of a cluster: each block runs one iteration in " << numBlocks;
  for (Operation *op : dots) {
    if (auto dot = dyn_cast<DotOpInterface>(op))
      dot.setIsOfBlock();
  }

  OpBuilder builder(loop);
  Value rank = ClusterRankOp::create(builder, loc, builder.getI32Type());
  Type type = loop.getInductionVar().getType();
  Value first = arith::MulIOp::create(builder, loc, castRank(builder, loc, rank, type),
                                      makeConstant(builder, loc, type, step));
  if (!lower.isZero())
    first = arith::AddIOp::create(builder, loc, makeConstant(builder, loc, type, lower), first);
  loop.getLowerBoundMutable().assign(first);
  loop.getStepMutable().assign(makeConstant(builder, loc, type, step * numBlocks));

  for (auto [number, amount] : inductions) {
    Type ofIt = amount.getType();
    Value own = castRank(builder, loc, rank, ofIt);
    Value moved = arith::MulIOp::create(builder, loc, own, amount);
    OpOperand &init = loop.getInitsMutable()[number];
    init.set(arith::AddIOp::create(builder, loc, init.get(), moved));
    APInt blocks(ofIt.isIndex() ? 64 : ofIt.getIntOrFloatBitWidth(), numBlocks);
    Value all =
        arith::MulIOp::create(builder, loc, amount, makeConstant(builder, loc, ofIt, blocks));
    OpBuilder inside(loop.getBody()->getTerminator());
    Value next = arith::AddIOp::create(inside, loc, loop.getRegionIterArg(number), all);
    loop.getBody()->getTerminator()->setOperand(number, next);
  }

  // The initial value of accumulators is added once.
  OpBuilder behind(loop->getContext());
  behind.setInsertionPointAfter(loop);
  SmallVector<ClusterSumOp> totals;
  for (unsigned number : accumulators) {
    Value result = loop.getResult(number);
    totals.push_back(ClusterSumOp::create(behind, loc, result.getType(), result));
    result.replaceAllUsesExcept(totals.back(), totals.back());
  }
  for (auto [number, total] : llvm::zip_equal(accumulators, totals)) {
    Value initial = loop.getInitArgs()[number];
    if (isZero(initial))
      continue;
    auto tile = cast<RankedTensorType>(total.getType());
    loop.getInitsMutable()[number].set(makeZeros(builder, loc, tile));
    Operation *sum = isa<FloatType>(tile.getElementType())
                         ? arith::AddFOp::create(behind, loc, initial, total).getOperation()
                         : arith::AddIOp::create(behind, loc, initial, total);
    total.getResult().replaceAllUsesExcept(sum->getResult(0), sum);
  }
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Cycles of an SM for what threads compute with loaded tiles before these are multiplied, as where
/// weights are decoded.
static int64_t getDecodingCycles(ArrayRef<Operation *> dots, Block *body,
                                 const GPUMachine &machine) {
  int64_t cycles = 0;
  SmallVector<Value> work;
  for (Operation *dot : dots)
    work.append({dot->getOperand(0), dot->getOperand(1)});
  llvm::SmallDenseSet<Operation *, 16> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != body || isa<tile::LoadOp>(op) || isDot(op) ||
        !seen.insert(op).second)
      continue;
    llvm::append_range(work, op->getOperands());
    cycles += getArithmeticCycles(op, machine);
  }
  return cycles;
}

DivisibleSumAttr LoopSplitter::describe(const GPUMachine &machine) const {
  std::optional<std::string> upper = writeProgramBound(scf::ForOp(loop).getUpperBound());
  if (!upper)
    return {};
  int64_t multiplied = 0, loaded = 0, result = 0;
  SmallVector<Operation *> dots;
  scf::ForOp(loop).getBody()->walk([&](Operation *op) {
    if (isDot(op)) {
      multiplied += getDotCycles(op, machine);
      dots.push_back(op);
    }
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (auto tile = dyn_cast<RankedTensorType>(load.getType()))
        loaded += getTileBytes(tile);
  });
  for (unsigned number : accumulators)
    result += getTileBytes(cast<RankedTensorType>(scf::ForOp(loop).getResult(number).getType()));
  // However small its tiles are, an iteration waits for these, for other warps and for dots, one
  // after the other.
  int64_t computed =
      std::max({multiplied, getDecodingCycles(dots, scf::ForOp(loop).getBody(), machine),
                machine.memoryLatency});
  int64_t iteration = std::max(computed, loaded / machine.l2Bandwidth);
  int64_t busy = std::max(computed, loaded / machine.getBusyL2Bandwidth());
  // Blocks load the stores of another one; they synchronise before and after.
  int64_t exchange = result * machine.costs.remote / machine.sharedBandwidth;
  return DivisibleSumAttr::get(scf::ForOp(loop)->getContext(), *upper, lower.getSExtValue(),
                               step.getSExtValue(), iteration, busy,
                               2 * machine.costs.meetBlocks + result / machine.sharedBandwidth,
                               machine.getBusyMemoryLatency(), exchange);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUSplitKPass : tessera::tilegpu::impl::TileGPUSplitKPassBase<TileGPUSplitKPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(machine))
      return signalPassFailure();
    if ((*machine)->maxClusterSize == 1 || getNumParts(module) > 1)
      return;
    for (auto kernel : module.getOps<tile::FuncOp>())
      if (kernel.isKernel() && kernel.getBody().hasOneBlock())
        visit(kernel, **machine);
  }

private:
  static void visit(tile::FuncOp kernel, const GPUMachine &machine);
};

} // namespace

void TileGPUSplitKPass::visit(tile::FuncOp kernel, const GPUMachine &machine) {
  unsigned numBlocks = getNumBlocks(kernel);
  bool isWanted = numBlocks > 1;
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (llvm::any_of(*loop.getBody(), [](Operation &op) { return isDot(&op); }))
      loops.push_back(loop);
  });
  // Only the last of several loops could be split: blocks synchronise only where no producer warps
  // copy for a loop.
  if (loops.size() > 1 && isWanted)
    emitRemark(loops.back(), RemarkKind::LoopNotDivided)
        << "loop is not divided among the blocks of a cluster: "
        << named("reason", StringRef("the kernel has other loops of dots"));
  if (loops.size() != 1)
    return;
  LoopSplitter splitter(loops.front(), isWanted ? numBlocks : machine.maxClusterSize, isWanted);
  if (!splitter.plan())
    return;
  if (isWanted)
    splitter.split();
  else if (DivisibleSumAttr sum = splitter.describe(machine))
    kernel->getParentOp()->setAttr(kDivisibleSumAttr, sum);
}
