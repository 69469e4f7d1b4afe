// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileIterations.h"

#include "PersistentKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// What accesses of an array have in common. Index 0 is of rows of tiles, 1 of columns.
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

static bool isInvariant(const ScalarPolynomial &polynomial, scf::ForOp loop) {
  return llvm::all_of(polynomial.getTerms(), [&](const ScalarTerm &term) {
    return llvm::all_of(term.factors, [&](ScalarFactor factor) {
      return !factor.isIteration && loop.isDefinedOutsideOfLoop(factor.value);
    });
  });
}

/// A coordinate as a positive multiple of a number of tiles, and of nothing else that changes.
static std::optional<Multiple> asMultiple(const ScalarPolynomial &coordinate, Value number,
                                          scf::ForOp loop) {
  auto [own, rest] = coordinate.partition(
      [&](const ScalarFactor &factor) { return factor == ScalarFactor(number); });
  // A constant has no factor that would be of another kind.
  int64_t scale = 0;
  for (const ScalarTerm &term : own.getTerms()) {
    if (term.isConstant())
      rest = *rest.plus(term.scale);
    else if (term.factors.size() == 1)
      scale += term.scale;
    else
      return std::nullopt;
  }
  if (scale <= 0 || !isInvariant(rest, loop))
    return std::nullopt;
  return Multiple{scale, rest};
}

bool CellAccesses::add(const BoxAccess &box, ArrayRef<Value> numbers, scf::ForOp loop) {
  SmallVector<BoxDim> around, own;
  for (const BoxDim &dim : box.getDims())
    (dim.tileDim || !isInvariant(dim.coordinate, loop) ? own : around).push_back(dim);
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

/// Whether an op does nothing to memory but load or store plainly.
static bool isPlainAccess(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return !load.getIsVolatile() && load.getCache() != tile::CacheModifier::CV;
  return isa<tile::StoreOp>(op) || isMemoryEffectFree(op);
}

static bool isUnbounded(LaunchExpr extent) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant && constant.getValue() == kUnboundedExtent;
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

/// Whether it can be computed in front of the loop how far a box reaches in all iterations.
bool TileIterations::hasKnownEnd(const BoxAccess &box) const {
  scf::ForOp of = loop;
  auto isKnown = [&](const ScalarFactor &factor) {
    return factor == ScalarFactor(row) || factor == ScalarFactor(column) ||
           getKnownLoop(factor, of) ||
           (!factor.isIteration && of.isDefinedOutsideOfLoop(factor.value));
  };
  return llvm::all_of(box.getDims(), [&](const BoxDim &dim) {
    return !isUnbounded(dim.extent) ||
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
    std::optional<BoxAccess> box =
        load ? getBoxAccess(load, analysis) : getBoxAccess(store, analysis);
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
    arrays.push_back({cells.scale[1], ofRow.stride,
                      isUnbounded(ofColumn.extent) ? LaunchExpr() : ofColumn.extent});
  }
  return true;
}

/// Whether an iteration knows its program by nothing but the tile's number.
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
  // What programs store before the loop their own iterations see, and others' need not.
  for (Operation &op : kernel.getBody().front())
    if (&op != loop && !isa<tile::ReturnOp>(op) && mayWriteMemory(&op))
      return std::nullopt;
  TileIterations iterations(loop, row, column);
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
// What the kernel finds out
//===----------------------------------------------------------------------===//

/// Numbers of elements and addresses, in 64 bits.
class TileIterations::Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const TileIterations &of, Value columns)
      : builder(builder), loc(loc), of(of), loop(of.loop),
        kernel(cast<tile::FuncOp>(loop->getParentOp())), columns(widen(columns)) {}

  Value emitAreDivided(const Cells &cells);
  Value emitAreApart(const BoxAccess &a, const BoxAccess &b);
  Value both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }

private:
  struct Range {
    Value first, end, isKnown;
  };

  Value number(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  Value widen(Value value) {
    Type type = builder.getI64Type();
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(builder, loc, type, value);
    return value.getType() == type ? value : arith::ExtSIOp::create(builder, loc, type, value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  /// A quotient that is always there: a producer warp may compute it for itself.
  Value div(Value a, Value b) {
    b = arith::MaxSIOp::create(builder, loc, b, number(1));
    return tile::DivIntOp::create(builder, loc, tile::Signedness::Signed, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value isWithin(Value value, int64_t least, int64_t most) {
    return both(compare(arith::CmpIPredicate::sge, value, number(least)),
                compare(arith::CmpIPredicate::sle, value, number(most)));
  }
  Value evaluate(LaunchExpr expr);
  Value emitMost(const ScalarFactor &factor);
  Value emitLastIndex(const BoxDim &dim);
  Range emitRange(const BoxAccess &box);

  OpBuilder &builder;
  Location loc;
  const TileIterations &of;
  scf::ForOp loop;
  tile::FuncOp kernel;
  Value columns;
};

Value TileIterations::Emitter::evaluate(LaunchExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return number(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return widen(kernel.getArgument(symbol.getPosition()));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = evaluate(binary.getLHS()), rhs = evaluate(binary.getRHS());
  assert((binary.getKind() == AffineExprKind::Add || binary.getKind() == AffineExprKind::Mul) &&
         "not an expression of a box");
  return binary.getKind() == AffineExprKind::Add ? add(lhs, rhs) : mul(lhs, rhs);
}

/// The most that a factor is in any iteration.
Value TileIterations::Emitter::emitMost(const ScalarFactor &factor) {
  if (factor == ScalarFactor(of.row))
    return div(sub(widen(loop.getUpperBound()), number(1)), columns);
  if (factor == ScalarFactor(of.column))
    return sub(columns, number(1));
  scf::ForOp inner = getKnownLoop(factor, loop);
  if (!inner)
    return widen(factor.value);
  Value way = sub(widen(inner.getUpperBound()), widen(inner.getLowerBound()));
  return div(sub(way, number(1)), widen(inner.getStep()));
}

/// The greatest index along a dimension.
Value TileIterations::Emitter::emitLastIndex(const BoxDim &dim) {
  if (!isUnbounded(dim.extent))
    return sub(evaluate(dim.extent), number(1));
  Value last = number(dim.tileExtent - 1);
  for (const ScalarTerm &term : dim.coordinate.getTerms()) {
    Value most = number(term.scale);
    if (!term.isConstant())
      most = mul(most, emitMost(term.factors.front()));
    last = add(last, most);
  }
  return last;
}

/// From the first byte to the one behind the last, and whether that has been computed without
/// leaving 64 bits.
TileIterations::Emitter::Range TileIterations::Emitter::emitRange(const BoxAccess &box) {
  // Five products of at most 2^56 elements, of eight bytes each.
  constexpr int64_t kMostStride = (int64_t(1) << 32) - 1, kMostProduct = int64_t(1) << 56;
  Value last = number(0), isKnown;
  for (const BoxDim &dim : box.getDims()) {
    Value index = emitLastIndex(dim), stride = evaluate(dim.stride);
    Value product = mul(index, stride);
    Value fits = both(isWithin(index, 0, kUnboundedExtent), isWithin(stride, 0, kMostStride));
    fits = both(fits, isWithin(product, 0, kMostProduct));
    isKnown = isKnown ? both(isKnown, fits) : fits;
    last = add(last, product);
  }
  Value first = tile::PtrToIntOp::create(builder, loc, builder.getI64Type(), box.getBase());
  Value bytes = mul(add(last, number(1)), number(getElementBytes(box.getElementType())));
  return {first, add(first, bytes), isKnown};
}

Value TileIterations::Emitter::emitAreApart(const BoxAccess &a, const BoxAccess &b) {
  Range first = emitRange(a), second = emitRange(b);
  Value isBefore = compare(arith::CmpIPredicate::ule, first.end, second.first);
  Value isBehind = compare(arith::CmpIPredicate::ule, second.end, first.first);
  Value isApart = arith::OrIOp::create(builder, loc, isBefore, isBehind);
  return both(both(first.isKnown, second.isKnown), isApart);
}

/// Whether a row of an array ends before the next one begins.
Value TileIterations::Emitter::emitAreDivided(const Cells &cells) {
  Value width = cells.extent ? evaluate(cells.extent) : mul(columns, number(cells.columns));
  return compare(arith::CmpIPredicate::sle, width, evaluate(cells.stride));
}

Value TileIterations::emitMayChange(OpBuilder &builder, Location loc, Value columns) const {
  Emitter emit(builder, loc, *this, columns);
  Value programs = tile::NumProgramsOp::create(builder, loc, builder.getI32Type(), 0);
  Value may = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                    scf::ForOp(loop).getStep(), programs);
  for (const Cells &cells : arrays)
    may = emit.both(may, emit.emitAreDivided(cells));
  for (auto [first, second] : others)
    may = emit.both(may, emit.emitAreApart(boxes[first], boxes[second]));
  return may;
}
