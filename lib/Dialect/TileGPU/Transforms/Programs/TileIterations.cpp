// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileIterations.h"

#include "Facts/ArrayRange.h"
#include "PersistentKernel.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

namespace {

/// `scale` times the number of a row or column of tiles, and what is the same in all iterations.
struct Multiple {
  int64_t scale = 0;
  ScalarPolynomial rest;
};

/// Common properties of the accesses of an array. Index 0 is of rows of tiles, 1 of columns.
struct CellAccesses {
  SmallVector<BoxDim> outer;  ///< dimensions along which all are at one place
  SmallVector<BoxDim> inner;  ///< those of the cells
  int64_t scale[2] = {0, 0};  ///< elements from one tile to the next
  ScalarPolynomial origin[2]; ///< where tile 0 begins
  int64_t begin[2] = {0, 0};  ///< the first element that is accessed of a tile, from there
  int64_t end[2] = {0, 0};    ///< the one behind the last

  /// Adds one. False if it is not known to stay in the tile's cell.
  bool add(const BoxAccess &box, ArrayRef<Value> numbers, scf::ForOp loop);
};

} // namespace

/// A coordinate as a positive multiple of a number of tiles, and of nothing else that changes.
static std::optional<Multiple> asMultiple(const ScalarPolynomial &coordinate, Value number,
                                          scf::ForOp loop) {
  ScalarPolynomial factor = ScalarPolynomial::ofFactor(number);
  for (const ScalarTerm &term : coordinate.getTerms()) {
    if (term.scale <= 0 || !term.isLike(factor.getTerms().front()))
      continue;
    std::optional<ScalarPolynomial> own = factor.times(term.scale);
    std::optional<ScalarPolynomial> rest = own ? coordinate.minus(*own) : std::nullopt;
    if (rest && rest->isInvariant(loop))
      return Multiple{term.scale, *rest};
  }
  return std::nullopt;
}

bool CellAccesses::add(const BoxAccess &box, ArrayRef<Value> numbers, scf::ForOp loop) {
  SmallVector<BoxDim> around, own;
  for (const BoxDim &dim : box.getDims())
    (dim.tileDim || !dim.coordinate.isInvariant(loop) ? own : around).push_back(dim);
  bool isFirst = inner.empty();
  if (isFirst) {
    outer = around;
    inner = own;
  }
  auto isAtSamePlace = [](const auto &pair) {
    const auto &[a, b] = pair;
    return a.stride == b.stride && a.coordinate == b.coordinate;
  };
  if (own.size() != 2 || inner.size() != 2 || around.size() != outer.size() ||
      !llvm::all_of(llvm::zip(around, outer), isAtSamePlace))
    return false;
  for (unsigned at : {0u, 1u}) {
    std::optional<Multiple> multiple = asMultiple(own[at].coordinate, numbers[at], loop);
    if (!multiple || own[at].stride != inner[at].stride || own[at].extent != inner[at].extent)
      return false;
    if (isFirst) {
      scale[at] = multiple->scale;
      origin[at] = multiple->rest;
    }
    std::optional<ScalarPolynomial> behind = multiple->rest.minus(origin[at]);
    std::optional<int64_t> first = behind ? behind->getConstant() : std::nullopt;
    if (!first || multiple->scale != scale[at])
      return false;
    begin[at] = isFirst ? *first : std::min(begin[at], *first);
    end[at] = std::max(isFirst ? 0 : end[at], *first + own[at].tileExtent);
    if (end[at] - begin[at] > scale[at])
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// All that a loop accesses
//===----------------------------------------------------------------------===//

/// True if an op does nothing to memory but load or store plainly.
static bool isPlainAccess(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return !load.getIsVolatile() && load.getCache() != tile::CacheModifier::CV;
  return isa<tile::StoreOp>(op) || isMemoryEffectFree(op);
}

/// A loop inside the tiles' own, of which the number of iterations is known in front of that.
static scf::ForOp getKnownLoop(const ScalarFactor &factor, scf::ForOp loop) {
  auto argument = dyn_cast<BlockArgument>(factor.value);
  auto inner = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  bool isKnown = inner && factor.isIteration && loop->isProperAncestor(inner) &&
                 !inner.getUnsignedCmp() && loop.isDefinedOutsideOfLoop(inner.getLowerBound()) &&
                 loop.isDefinedOutsideOfLoop(inner.getUpperBound()) &&
                 loop.isDefinedOutsideOfLoop(inner.getStep());
  return isKnown ? inner : scf::ForOp();
}

/// True if it can be computed in front of the loop how far a box reaches in all iterations.
bool TileIterations::hasKnownEnd(const BoxAccess &box) const {
  scf::ForOp of = loop;
  auto isKnown = [&](const ScalarFactor &factor) {
    return factor == ScalarFactor(row) || factor == ScalarFactor(column) ||
           getKnownLoop(factor, of) ||
           (!factor.isIteration && of.isDefinedOutsideOfLoop(factor.value));
  };
  return llvm::all_of(box.getDims(), [&](const BoxDim &dim) {
    return !dim.isUnbounded() ||
           llvm::all_of(dim.coordinate.getTerms(), [&](const ScalarTerm &term) {
             return term.isConstant() ||
                    (term.factors.size() == 1 && isKnown(term.factors.front()));
           });
  });
}

bool TileIterations::addAccesses(AccessAnalysis &analysis) {
  SmallVector<Operation *> accesses;
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    if (!isPlainAccess(op))
      return WalkResult::interrupt();
    if (isa<tile::LoadOp, tile::StoreOp>(op))
      accesses.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return false;

  SmallVector<BlockArgument> bases;
  for (Operation *op : accesses) {
    auto load = dyn_cast<tile::LoadOp>(op);
    auto store = dyn_cast<tile::StoreOp>(op);
    BlockArgument base = getPointerBases(load ? load.getPtr() : store.getPtr()).getSingle();
    std::optional<BoxAccess> box = getBoxAccess(op, analysis);
    if (!base || !box || box->getBase() != base || !hasKnownEnd(*box))
      return false;
    bases.push_back(base);
    boxes.push_back(std::move(*box));
  }
  llvm::MapVector<BlockArgument, CellAccesses> stored;
  for (auto [op, base] : llvm::zip_equal(accesses, bases))
    if (isa<tile::StoreOp>(op))
      stored.insert({base, CellAccesses()});
  for (auto [base, box] : llvm::zip_equal(bases, boxes))
    if (stored.contains(base) && !stored[base].add(box, {row, column}, loop))
      return false;
  for (unsigned first = 0; first < accesses.size(); ++first)
    for (unsigned second = 0; second < accesses.size(); ++second)
      if (isa<tile::StoreOp>(accesses[second]) && bases[first] != bases[second])
        others.push_back({first, second});
  for (auto &[base, cells] : stored) {
    const BoxDim &ofRow = cells.inner[0], &ofColumn = cells.inner[1];
    auto stride = dyn_cast<AffineConstantExpr>(ofColumn.stride);
    if (!stride || stride.getValue() != 1)
      return false;
    arrays.push_back(
        {cells.scale[1], ofRow.stride, ofColumn.isUnbounded() ? LaunchExpr() : ofColumn.extent});
  }
  return true;
}

/// True if an iteration knows its program by nothing but the tile's number.
static bool isOfTileAlone(scf::ForOp loop) {
  if (dependsOnProgram(loop.getUpperBound()) || dependsOnProgram(loop.getStep()))
    return false;
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    auto isOwn = [&](Value operand) {
      return !loop.isDefinedOutsideOfLoop(operand) || !dependsOnProgram(operand);
    };
    return isa<tile::ProgramIdOp>(op) || !llvm::all_of(op->getOperands(), isOwn)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

std::optional<TileIterations> TileIterations::find(scf::ForOp loop, Value row, Value column,
                                                   Value columns) {
  auto kernel = dyn_cast<tile::FuncOp>(loop->getParentOp());
  auto first = loop.getLowerBound().getDefiningOp<tile::ProgramIdOp>();
  if (!kernel || !first || first.getAxis() != 0 || loop.getNumRegionIterArgs() != 0 ||
      loop.getUnsignedCmp() || !loop.getInductionVar().getType().isInteger(32) ||
      !loop.isDefinedOutsideOfLoop(columns) || !isOfTileAlone(loop))
    return std::nullopt;
  // Stores of a program before the loop are visible to its own iterations, but need not be to
  // others'.
  for (Operation &op : kernel.getBody().front())
    if (&op != loop && !isa<tile::ReturnOp>(op) && mayWriteMemory(&op))
      return std::nullopt;
  TileIterations iterations(loop, row, column, columns);
  AccessAnalysis analysis;
  if (!iterations.addAccesses(analysis))
    return std::nullopt;
  return iterations;
}

bool TileIterations::addConditions(bool assumeApart) const {
  auto isAlways = [](const BoxAccess &box) {
    return box.getConditions().empty() && box.getProgramBounds().empty() &&
           box.getMostPrograms() == 0;
  };
  if (!assumeApart && !llvm::all_of(boxes, isAlways))
    return false;
  auto kernel = cast<tile::FuncOp>(scf::ForOp(loop)->getParentOp());
  for (const BoxAccess &box : boxes)
    addLaunchConditions(kernel, box);
  return true;
}

//===----------------------------------------------------------------------===//
// Checks in the kernel
//===----------------------------------------------------------------------===//

class TileIterations::Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const TileIterations &of)
      : builder(builder), loc(loc), of(of), loop(of.loop),
        kernel(cast<tile::FuncOp>(loop->getParentOp())), ranges(builder, loc),
        columns(ranges.widen(of.columns)) {}

  Value emitAreDivided(const Cells &cells);
  ArrayRange emitRange(const BoxAccess &box);

private:
  /// A quotient that is always defined: a producer warp may recompute it.
  Value div(Value a, Value b) {
    b = arith::MaxSIOp::create(builder, loc, b, ranges.number(1));
    return tile::DivIntOp::create(builder, loc, tile::Signedness::Signed, a, b);
  }
  Value evaluate(LaunchExpr expr) {
    return ranges.evaluate(expr, [&](unsigned symbol) { return kernel.getArgument(symbol); });
  }
  Value emitMost(const ScalarFactor &factor);
  Value emitLastIndex(const BoxDim &dim);

  OpBuilder &builder;
  Location loc;
  const TileIterations &of;
  scf::ForOp loop;
  tile::FuncOp kernel;
  ArrayRangeBuilder ranges;
  Value columns;
};

/// The most that a factor is in any iteration.
Value TileIterations::Emitter::emitMost(const ScalarFactor &factor) {
  if (factor == ScalarFactor(of.row))
    return div(ranges.sub(ranges.widen(loop.getUpperBound()), ranges.number(1)), columns);
  if (factor == ScalarFactor(of.column))
    return ranges.sub(columns, ranges.number(1));
  scf::ForOp inner = getKnownLoop(factor, loop);
  if (!inner)
    return ranges.widen(factor.value);
  Value way = ranges.sub(ranges.widen(inner.getUpperBound()), ranges.widen(inner.getLowerBound()));
  return div(ranges.sub(way, ranges.number(1)), ranges.widen(inner.getStep()));
}

Value TileIterations::Emitter::emitLastIndex(const BoxDim &dim) {
  if (!dim.isUnbounded())
    return ranges.sub(evaluate(dim.extent), ranges.number(1));
  Value last = ranges.number(dim.tileExtent - 1);
  for (const ScalarTerm &term : dim.coordinate.getTerms()) {
    Value most = ranges.number(term.scale);
    if (!term.isConstant())
      most = ranges.mul(most, emitMost(term.factors.front()));
    last = ranges.add(last, most);
  }
  return last;
}

ArrayRange TileIterations::Emitter::emitRange(const BoxAccess &box) {
  return ranges.emit(
      box, [&](const BoxDim &dim) { return emitLastIndex(dim); },
      [&](unsigned symbol) { return kernel.getArgument(symbol); });
}

/// True if a row of an array ends before the next one begins.
Value TileIterations::Emitter::emitAreDivided(const Cells &cells) {
  Value width =
      cells.extent ? evaluate(cells.extent) : ranges.mul(columns, ranges.number(cells.columns));
  return ranges.compare(arith::CmpIPredicate::sle, width, evaluate(cells.stride));
}

Value TileIterations::emitMayChange(OpBuilder &builder, Location loc) const {
  Emitter emit(builder, loc, *this);
  ArrayRangeBuilder ranges(builder, loc);
  Value programs = tile::NumProgramsOp::create(builder, loc, builder.getI32Type(), 0);
  Value may = ranges.compare(arith::CmpIPredicate::eq, scf::ForOp(loop).getStep(), programs);
  for (const Cells &cells : arrays)
    may = ranges.both(may, emit.emitAreDivided(cells));
  std::vector<std::optional<ArrayRange>> ofBoxes(boxes.size());
  auto getRange = [&](unsigned box) {
    if (!ofBoxes[box])
      ofBoxes[box] = emit.emitRange(boxes[box]);
    return *ofBoxes[box];
  };
  for (auto [first, second] : others) {
    ArrayRange a = getRange(first), b = getRange(second);
    may = ranges.both(may, ranges.areApart(a, b));
  }
  return may;
}
