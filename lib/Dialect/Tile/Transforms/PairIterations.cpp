// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor cores read the second operand of a dot from shared memory, and the first one, too, unless
// it is computed. With few columns, the first operand is most of what they read, and they wait for
// it. Two iterations of a loop as one have twice the columns, and the same first operand:
//
//     for i in 0..n                                  for i in 0..n step 2
//       q = load(p + (i*32 + range(32))[None, :])      q = load(p + (i*32 + range(64))[None, :])
//       s = dot(k, q)                                  s = dot(k, q)
//       acc = dot(f(s), q.T, acc)                      acc = dot(f(s), q.T, acc)
//
// An iteration only adds sums of products, over its own rows, to the values that the loop carries.
// The rows are the contracted axis of those dots. The pass follows that axis back: to loads, to
// values that are equal in all rows, and to columns of other dots. Loads must continue: row 32 + r
// of an iteration is row r of the next one.
//
// Kernels with few sums keep their iterations, since two programs share an SM, for which pairs take
// too many registers.
//
// Columns of masks count rows, as loads do. Pairs are paired again while they are few.
//
// The number of iterations must be even, in each program. Unless it is constant, the launch checks
// that, and runs another variant of the kernel if it is not.

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEPAIRITERATIONSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static RankedTensorType getTile(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

static int64_t getBytes(DotOp dot) {
  RankedTensorType type = getTile(dot.getResult());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

namespace {

/// One loop whose iterations are done in pairs.
class IterationPairing {
public:
  explicit IterationPairing(scf::ForOp loop) : loop(loop) {}

  /// Finds the rows of an iteration, and if all that depends on them can have twice as many. Dots
  /// then have at most `mostColumns` columns, and their results `mostBytes`. Changes nothing.
  bool plan(int64_t mostColumns, int64_t mostBytes);
  /// The text of a number that is not negative if the number of iterations is even. It is empty if
  /// that is known, and none if it cannot be known.
  std::optional<std::string> getCondition() const;
  scf::ForOp apply();

private:
  bool planCarried();
  bool follow(Value value, unsigned axis);
  bool followOp(Operation *op, unsigned axis);
  bool followOperands(Operation *op, unsigned axis,
                      llvm::function_ref<bool(Value, std::optional<unsigned>)> followOperand);
  bool followPointers(Value pointers, unsigned axis);
  bool isIndex(Value value, unsigned axis);
  bool continues(Value value, unsigned axis);
  bool isFixed(Value value) const { return loop.isDefinedOutsideOfLoop(value); }

  RankedTensorType widen(RankedTensorType type, unsigned axis) const;
  Value make(Value value, unsigned axis);
  Value makeOp(OpBuilder &builder, Operation *op, unsigned axis);
  Value map(Value value);

  mutable scf::ForOp loop;
  int64_t rows = 0;
  bool hasColumns = false; ///< rows are the columns of a dot
  int64_t bytes = 0;       ///< of the results of dots, with the rows of two iterations
  AccessAnalysis analysis;
  SmallVector<DotOp> sums; ///< those that the loop carries
  llvm::DenseMap<Value, unsigned> axes;
  llvm::DenseSet<Value> indices; ///< of those with axes, what only addresses are made of

  scf::ForOp paired;
  IRMapping mapping; ///< of what has no axis of rows
  llvm::DenseMap<Value, Value> wide;
};

} // namespace

//===----------------------------------------------------------------------===//
// Following the axis
//===----------------------------------------------------------------------===//

/// A value is followed along one axis only. Others would be a product of rows with rows.
bool IterationPairing::follow(Value value, unsigned axis) {
  RankedTensorType type = getTile(value);
  if (!type || type.getDimSize(axis) != rows)
    return false;
  if (isIndex(value, axis))
    return followPointers(value, axis) && continues(value, axis);
  auto [entry, isNew] = axes.try_emplace(value, axis);
  if (!isNew)
    return entry->second == axis && !indices.contains(value);
  Operation *op = value.getDefiningOp();
  return op && followOp(op, axis);
}

/// True if a tile of integers counts rows, as for a mask.
bool IterationPairing::isIndex(Value value, unsigned axis) {
  if (!getTile(value).getElementType().isInteger() || getTile(value).getElementType().isInteger(1))
    return false;
  std::optional<LinearForm> form = analysis.getLinearForm(value);
  return form && !form->strides[axis].isZero();
}

bool IterationPairing::followOp(Operation *op, unsigned axis) {
  // The same for all rows, or an index of them.
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
    return values && values.isSplat();
  }
  if (isa<SplatOp>(op))
    return isFixed(op->getOperand(0));
  if (auto load = dyn_cast<LoadOp>(op))
    return !isFixed(load.getResult()) && !load.getIsVolatile() && !load.getMask() &&
           followPointers(load.getPtr(), axis) && continues(load.getPtr(), axis);
  if (auto dot = dyn_cast<DotOp>(op)) {
    // The rows of the other operand are multiplied with those of both iterations.
    if (!follow(dot.getAcc(), axis) || !isFixed(axis == 0 ? dot.getB() : dot.getA()) ||
        getTile(op->getResult(0)).getRank() != 2)
      return false;
    hasColumns |= axis == 1;
    bytes += 2 * getBytes(dot);
    return axis == 0 ? follow(dot.getA(), 0) : follow(dot.getB(), 1);
  }
  return followOperands(op, axis, [&](Value operand, std::optional<unsigned> dim) {
    return dim ? follow(operand, *dim) : isFixed(operand);
  });
}

/// Follows the axis into the operands of an op that only moves elements, or is elementwise: each
/// operand, and the dimension that the axis has there, if any.
bool IterationPairing::followOperands(
    Operation *op, unsigned axis,
    llvm::function_ref<bool(Value, std::optional<unsigned>)> followOperand) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || op->getNumOperands() == 0 ||
      !isPure(op))
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (!getTile(operand.get()))
      return followOperand(operand.get(), std::nullopt);
    AffineMap map = getSourceMap(operand);
    if (!map)
      return false;
    std::optional<unsigned> dim = getSourceDim(map, axis);
    return (dim || !map.isFunctionOfDim(axis)) && followOperand(operand.get(), dim);
  });
}

/// Tiles of pointers and of indices count rows by a range, and may have other parts.
bool IterationPairing::followPointers(Value pointers, unsigned axis) {
  RankedTensorType type = getTile(pointers);
  if (!type || type.getDimSize(axis) == 1)
    return true;
  auto [entry, isNew] = axes.try_emplace(pointers, axis);
  if (!isNew)
    return entry->second == axis;
  indices.insert(pointers);
  Operation *op = pointers.getDefiningOp();
  if (!op || type.getDimSize(axis) != rows)
    return false;
  if (isa<RangeOp, SplatOp>(op) || (isa<arith::ConstantOp>(op) && followOp(op, axis)))
    return true;
  return followOperands(op, axis, [&](Value operand, std::optional<unsigned> dim) {
    return !dim || followPointers(operand, *dim);
  });
}

/// True if the rows of the next iteration go on where those of an iteration end.
bool IterationPairing::continues(Value value, unsigned axis) {
  std::optional<LinearForm> form = analysis.getLinearForm(value);
  if (!form)
    return false;
  auto iteration = ScalarPolynomial::ofFactor(ScalarFactor(loop.getInductionVar(),
                                                           /*isIteration=*/true));
  std::optional<ScalarPolynomial> advance = form->strides[axis].times(ScalarPolynomial(rows));
  advance = advance ? advance->times(iteration) : std::nullopt;
  std::optional<ScalarPolynomial> rest = advance ? form->uniform.minus(*advance) : std::nullopt;
  return rest && rest->isInvariant(loop) && !form->strides[axis].isZero() &&
         llvm::all_of(form->strides,
                      [&](const ScalarPolynomial &stride) { return stride.isInvariant(loop); });
}

/// True if the loop carries sums of products over rows, and indices, and nothing else.
bool IterationPairing::planCarried() {
  for (auto [argument, next] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    if (!getTile(argument)) {
      auto sum = next.getDefiningOp<arith::AddIOp>();
      if (!sum || !((sum.getLhs() == argument && isFixed(sum.getRhs())) ||
                    (sum.getRhs() == argument && isFixed(sum.getLhs()))))
        return false;
      continue;
    }
    auto dot = next.getDefiningOp<DotOp>();
    if (!dot || dot.getAcc() != argument || !argument.hasOneUse() || !dot->hasOneUse() ||
        getTile(dot.getA()).getRank() != 2 || dot.getMaxImpreciseAcc() != 0)
      return false;
    sums.push_back(dot);
    bytes += getBytes(dot);
  }
  return !sums.empty();
}

bool IterationPairing::plan(int64_t mostColumns, int64_t mostBytes) {
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumRegions() != 0 || !(isPure(&op) || isa<LoadOp>(op)))
      return false;
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
      (step + step).isNegative() || !loop.getInductionVar().getType().isInteger(32) ||
      !planCarried())
    return false;
  rows = getTile(sums.front().getA()).getDimSize(1);
  if (2 * rows > mostColumns)
    return false;
  return llvm::all_of(sums,
                      [&](DotOp dot) { return follow(dot.getA(), 1) && follow(dot.getB(), 0); }) &&
         hasColumns && bytes <= mostBytes;
}

std::optional<std::string> IterationPairing::getCondition() const {
  scf::ForOp of = loop;
  APInt step, lower, upper, divisor;
  matchPattern(of.getStep(), m_ConstantInt(&step));
  int64_t pair = 2 * step.getSExtValue();
  if (matchPattern(of.getLowerBound(), m_ConstantInt(&lower)) &&
      matchPattern(of.getUpperBound(), m_ConstantInt(&upper))) {
    bool isEven = (upper.getSExtValue() - lower.getSExtValue()) % pair == 0;
    return isEven ? std::optional<std::string>("") : std::nullopt;
  }
  Value last = of.getUpperBound();
  bool isFromZero = matchPattern(of.getLowerBound(), m_ConstantInt(&lower)) && lower.isZero();
  // The quotient of a number by c is a multiple of n if the number is one of n c.
  auto quotient = last.getDefiningOp<DivIntOp>();
  if (isFromZero && quotient && matchPattern(quotient.getRhs(), m_ConstantInt(&divisor)) &&
      divisor.isStrictlyPositive()) {
    last = quotient.getLhs();
    pair *= divisor.getSExtValue();
  }
  std::optional<std::string> text = writeProgramBound(last);
  std::optional<std::string> first = isFromZero ? "0" : writeProgramBound(of.getLowerBound());
  if (!text || !first)
    return std::nullopt;
  std::string length = isFromZero ? *text : "(sub64 " + *text + " " + *first + ")";
  return "(sub64 0 (rem64 " + length + " " + std::to_string(pair) + "))";
}

//===----------------------------------------------------------------------===//
// Making the loop
//===----------------------------------------------------------------------===//

RankedTensorType IterationPairing::widen(RankedTensorType type, unsigned axis) const {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 2 * rows;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// A value without rows, as of the first of two iterations.
Value IterationPairing::map(Value value) {
  if (isFixed(value) || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    map(operand);
  OpBuilder builder = OpBuilder::atBlockEnd(paired.getBody());
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value IterationPairing::makeOp(OpBuilder &builder, Operation *op, unsigned axis) {
  Location loc = op->getLoc();
  RankedTensorType type = widen(getTile(op->getResult(0)), axis);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto values = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, loc, type, values.resizeSplat(type));
  }
  IRMapping operands;
  for (Value operand : op->getOperands()) {
    auto along = axes.find(operand);
    operands.map(operand, along != axes.end() ? make(operand, along->second) : map(operand));
  }
  Operation *made = builder.clone(*op, operands);
  if (auto range = dyn_cast<RangeOp>(made))
    range.setEnd(range.getStart() + 2 * rows);
  made->getResult(0).setType(type);
  return made->getResult(0);
}

/// The value with the rows of two iterations.
Value IterationPairing::make(Value value, unsigned axis) {
  if (Value made = wide.lookup(value))
    return made;
  Operation *op = value.getDefiningOp();
  OpBuilder builder(paired);
  if (!isFixed(value))
    builder.setInsertionPointToEnd(paired.getBody());
  Value made = makeOp(builder, op, axis);
  wide.try_emplace(value, made);
  return made;
}

scf::ForOp IterationPairing::apply() {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value step = builder.createOrFold<arith::AddIOp>(loc, loop.getStep(), loop.getStep());
  paired = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(), step,
                              loop.getInitArgs());
  paired->setAttrs(loop->getAttrs());
  if (!paired.getBody()->empty())
    paired.getBody()->back().erase();
  mapping.map(loop.getBody()->getArguments(), paired.getBody()->getArguments());
  // In the order of the program, which is that of what is live.
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumResults() == 1 && axes.contains(op.getResult(0)))
      make(op.getResult(0), axes.lookup(op.getResult(0)));
    else if (auto dot = dyn_cast<DotOp>(op); dot && llvm::is_contained(sums, dot)) {
      OpBuilder inside = OpBuilder::atBlockEnd(paired.getBody());
      auto sum = DotOp::create(inside, dot.getLoc(), dot.getType(), make(dot.getA(), 1),
                               make(dot.getB(), 0), mapping.lookup(dot.getAcc()),
                               dot.getPrecision(), dot.getMaxImpreciseAcc());
      mapping.map(dot.getResult(), sum.getResult());
    }
  SmallVector<Value> next;
  OpBuilder end = OpBuilder::atBlockEnd(paired.getBody());
  for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    if (getTile(argument)) {
      next.push_back(mapping.lookup(yielded));
      continue;
    }
    auto sum = yielded.getDefiningOp<arith::AddIOp>();
    Value by = sum.getLhs() == argument ? sum.getRhs() : sum.getLhs();
    OpBuilder before(paired);
    Value twice = before.createOrFold<arith::AddIOp>(loc, by, by);
    next.push_back(arith::AddIOp::create(end, loc, mapping.lookup(argument), twice));
  }
  scf::YieldOp::create(end, loc, next);
  loop.replaceAllUsesWith(paired.getResults());
  loop.erase();
  return paired;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct PairIterationsPass
    : public tessera::tile::impl::TilePairIterationsPassBase<PairIterationsPass> {
  using TilePairIterationsPassBase::TilePairIterationsPassBase;

  void runOnOperation() final {
    FuncOp kernel = getOperation();
    if (!kernel.isKernel())
      return;
    SmallVector<scf::ForOp> loops;
    int64_t most = 0;
    kernel.walk([&](scf::ForOp loop) {
      loops.push_back(loop);
      int64_t bytes = 0;
      for (DotOp dot : loop.getBody()->getOps<DotOp>())
        bytes += getBytes(dot);
      most = std::max(most, bytes);
    });
    // Programs that share an SM overlap better than pairs (notes/Notebook.md).
    if (most <= leastBytes)
      return;
    SmallVector<Attribute> bounds;
    if (auto known = kernel->getAttrOfType<ArrayAttr>(kProgramBoundsAttr))
      llvm::append_range(bounds, known);
    for (scf::ForOp loop : loops) {
      // The condition of pairs of pairs implies that of pairs.
      std::string known;
      while (true) {
        IterationPairing pairing(loop);
        std::optional<std::string> condition;
        if (pairing.plan(mostColumns, mostBytes))
          condition = pairing.getCondition();
        if (!condition)
          break;
        known = *condition;
        loop = pairing.apply();
      }
      auto bound = StringAttr::get(&getContext(), known);
      if (!known.empty() && !llvm::is_contained(bounds, bound))
        bounds.push_back(bound);
    }
    if (!bounds.empty())
      kernel->setAttr(kProgramBoundsAttr, ArrayAttr::get(&getContext(), bounds));
  }
};

} // namespace
