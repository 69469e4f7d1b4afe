// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax over a long row takes the maximum in one loop, and loads the row again for exponentials
// in a second one:
//
//     for i in ...: largest = max(largest, load(i))
//     for i in ...: total += exp(load(i) - reduce_max(largest))
//
// The argument of exp is not positive if both loops have the same iterations, and compute their
// elements alike. From the first loop on, nothing may be written where the second one loads from
// later. A store in place is no obstacle: an iteration has loaded what it stores to, and others
// load elsewhere. A GPU has a shorter exp for such arguments.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/TypeUtilities.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/BelowMaximum.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

#include "llvm/Support/MathExtras.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEMARKMAXIMAPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The operands of a maximum; none of another op.
static std::optional<std::pair<Value, Value>> getOperandsOfMaximum(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(op))
    return std::nullopt;
  return std::pair(op->getOperand(0), op->getOperand(1));
}

/// The operand that a reduction takes the maximum of along an axis; null for other ops.
static Value getReducedByMaximum(Value value, unsigned &axis) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (!reduce || reduce->getNumOperands() != 1)
    return nullptr;
  Block &body = *reduce.getBody();
  auto operands = getOperandsOfMaximum(body.getTerminator()->getOperand(0));
  if (!operands || !llvm::hasNItems(body.without_terminator(), 1))
    return nullptr;
  auto [a, b] = *operands;
  if (a == b || a.getParentBlock() != &body || b.getParentBlock() != &body)
    return nullptr;
  axis = reduce.getAxis();
  return reduce->getOperand(0);
}

namespace {

/// A second loop over what a first one has taken the maximum of.
struct LoopPair {
  scf::ForOp first, second;

  bool haveSameIterations() const;
  /// True if these loads of the second loop's body read what was there before the first loop: no op
  /// in between, and no earlier iteration, may write to it.
  bool areUnchanged(ArrayRef<LoadOp> loads) const;
  /// True if a value of the first loop's iteration is that of the second one's iteration with the
  /// same index, unless memory has changed. Adds what the second one loads for it.
  bool areAlike(Value inFirst, Value inSecond, SmallVectorImpl<LoadOp> &loads,
                unsigned depth = 0) const;
};

} // namespace

bool LoopPair::haveSameIterations() const {
  auto isSame = [](Value a, Value b) {
    return a == b || (a.getType() == b.getType() && getConstantIntValue(a) &&
                      getConstantIntValue(a) == getConstantIntValue(b));
  };
  scf::ForOp from = first, to = second;
  return isSame(from.getLowerBound(), to.getLowerBound()) &&
         isSame(from.getUpperBound(), to.getUpperBound()) && isSame(from.getStep(), to.getStep()) &&
         from.getUnsignedCmp() == to.getUnsignedCmp();
}

/// The distance from the first to the last element of a tile of addresses, in elements. Nothing if
/// it is not known, or if the first element is not the lowest.
static std::optional<int64_t> getReach(const LinearForm &form, Value pointers) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  int64_t reach = 0;
  for (auto [dim, stride] : llvm::enumerate(form.strides)) {
    std::optional<int64_t> constant = stride.getConstant();
    int64_t distance;
    if (!constant || *constant < 0 ||
        llvm::MulOverflow(*constant, type.getDimSize(dim) - 1, distance) ||
        llvm::AddOverflow(reach, distance, reach))
      return std::nullopt;
  }
  return reach;
}

/// True if no iteration of a loop stores to where a later one loads from, because addresses move
/// on by more than a tile in each iteration.
static bool movesBeyond(LoadOp load, StoreOp store, scf::ForOp loop, AccessAnalysis &analysis) {
  Value from = load.getPtr(), to = store.getPtr();
  std::optional<LinearForm> read = analysis.getLinearForm(from),
                            written = analysis.getLinearForm(to);
  if (!read || !written || !read->base || read->base != written->base ||
      loop.getBodyRegion().isAncestor(read->base.getParentRegion()) ||
      getElementTypeOrSelf(from.getType()) != getElementTypeOrSelf(to.getType()))
    return false;
  auto [moving, fixed] = read->uniform.partition([&](const ScalarFactor &factor) {
    return factor.isIteration && factor.value == loop.getInductionVar();
  });
  std::optional<ScalarPolynomial> between = written->uniform.minus(read->uniform);
  std::optional<int64_t> distance = between ? between->getConstant() : std::nullopt;
  std::optional<int64_t> readReach = getReach(*read, from), writtenReach = getReach(*written, to);
  if (!distance || !readReach || !writtenReach || !fixed.isInvariant(loop) ||
      moving.getTerms().size() != 1 || moving.getTerms().front().factors.size() != 1)
    return false;
  // Up, each store must end below the next load; down, it must begin above.
  int64_t step = moving.getTerms().front().scale, ahead;
  return step > 0 ? !llvm::AddOverflow(*distance, *writtenReach, ahead) && step > ahead
                  : !llvm::SubOverflow(*distance, *readReach, ahead) && step < ahead;
}

bool LoopPair::areUnchanged(ArrayRef<LoadOp> loads) const {
  if (first->getBlock() != second->getBlock() || !first->isBeforeInBlock(second))
    return false;
  for (Operation &op : llvm::make_range(first->getIterator(), second->getIterator()))
    if (mayWriteMemory(&op))
      return false;
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  scf::ForOp loop = second;
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || !mayWriteMemory(op))
      return WalkResult::advance();
    auto store = dyn_cast<StoreOp>(op);
    Operation *inBody = loop.getBody()->findAncestorOpInBlock(*op);
    for (LoadOp load : loads)
      if (!order.mayPass(load, op, loop).isIndependent() &&
          (!store || !load->isBeforeInBlock(inBody) || !movesBeyond(load, store, loop, analysis)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

bool LoopPair::areAlike(Value inFirst, Value inSecond, SmallVectorImpl<LoadOp> &loads,
                        unsigned depth) const {
  constexpr unsigned kMaxDepth = 16;
  scf::ForOp from = first, to = second;
  if (inFirst == from.getInductionVar())
    return inSecond == to.getInductionVar();
  bool isInside = from.getBodyRegion().isAncestor(inFirst.getParentRegion());
  if (!isInside)
    return inFirst == inSecond;
  Operation *a = inFirst.getDefiningOp(), *b = inSecond.getDefiningOp();
  if (!a || !b || depth == kMaxDepth || a->getBlock() != from.getBody() ||
      b->getBlock() != to.getBody() || a->getNumRegions() != 0 ||
      cast<OpResult>(inFirst).getResultNumber() != cast<OpResult>(inSecond).getResultNumber() ||
      (!isPure(a) && !isa<LoadOp>(a)))
    return false;
  auto ignore = [](Value, Value) { return success(); };
  if (!OperationEquivalence::isEquivalentTo(a, b, ignore, /*markEquivalent=*/nullptr,
                                            OperationEquivalence::IgnoreLocations))
    return false;
  if (auto load = dyn_cast<LoadOp>(b)) {
    if (load.getIsVolatile())
      return false;
    loads.push_back(load);
  }
  return llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()), [&](auto operands) {
    auto [left, right] = operands;
    return areAlike(left, right, loads, depth + 1);
  });
}

namespace {

/// The loop whose maxima a tile's elements are.
struct EarlierMaximum {
  scf::ForOp loop;
  Value element; ///< what an iteration takes the maximum of

  static std::optional<EarlierMaximum> of(Value tile);
};

} // namespace

/// Erases an axis of these dimensions. False if they do not have it.
static bool dropAxis(SmallVectorImpl<unsigned> &dims, std::optional<unsigned> axis) {
  if (axis && *axis >= dims.size())
    return false;
  if (axis)
    dims.erase(dims.begin() + *axis);
  return true;
}

/// The map from the tile's index to that of its source must drop the dimensions of the maxima.
std::optional<EarlierMaximum> EarlierMaximum::of(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type)
    return std::nullopt;
  MLIRContext *context = tile.getContext();
  unsigned rank = type.getRank();
  AffineMap map = AffineMap::getMultiDimIdentityMap(rank, context);
  while (Operation *op = tile.getDefiningOp()) {
    if (isa<SplatOp>(op))
      map = AffineMap::get(rank, 0, context);
    else if (AffineMap source = movesOneTile(op) ? getSourceMap(op->getOpOperand(0)) : AffineMap())
      map = source.compose(map);
    else
      break;
    tile = op->getOperand(0);
  }
  unsigned outer = 0, inner = 0;
  Value reduced = getReducedByMaximum(tile, outer);
  auto result = dyn_cast<OpResult>(reduced ? reduced : tile);
  auto loop = result ? dyn_cast<scf::ForOp>(result.getOwner()) : scf::ForOp();
  if (!loop)
    return std::nullopt;
  BlockArgument carried = loop.getRegionIterArg(result.getResultNumber());
  auto operands = getOperandsOfMaximum(loop.getYieldedValues()[result.getResultNumber()]);
  if (!operands || (operands->first != carried && operands->second != carried))
    return std::nullopt;
  Value added = operands->first == carried ? operands->second : operands->first;
  Value inReduction = getReducedByMaximum(added, inner);
  Value element = inReduction ? inReduction : added;
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  if (!dropAxis(dims, inReduction ? std::optional(inner) : std::nullopt) ||
      !dropAxis(dims, reduced ? std::optional(outer) : std::nullopt) || element.getType() != type ||
      map != AffineMap::getMultiDimMapWithTargets(rank, dims, context))
    return std::nullopt;
  return EarlierMaximum{loop, element};
}

static bool isBelowEarlierMaximum(math::ExpOp exp) {
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  auto loop = dyn_cast<scf::ForOp>(exp->getParentOp());
  std::optional<EarlierMaximum> maximum;
  if (difference && loop)
    maximum = EarlierMaximum::of(difference.getRhs());
  if (!maximum)
    return false;
  LoopPair pair{maximum->loop, loop};
  SmallVector<LoadOp> loads;
  return pair.haveSameIterations() && pair.areAlike(maximum->element, difference.getLhs(), loads) &&
         pair.areUnchanged(loads);
}

namespace {

struct TileMarkMaximaPass : tessera::tile::impl::TileMarkMaximaPassBase<TileMarkMaximaPass> {
  void runOnOperation() final {
    getOperation().walk([](math::ExpOp exp) {
      if (isBelowEarlierMaximum(exp))
        exp->setAttr(kBelowEarlierMaximumAttr, UnitAttr::get(exp.getContext()));
    });
  }
};

} // namespace
