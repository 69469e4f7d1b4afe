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

bool TileIterations::addAccesses(Value row, Value column, AccessAnalysis &analysis) {
  SmallVector<tile::LoadOp> loads;
  SmallVector<tile::StoreOp> stores;
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    if (!isPlainAccess(op))
      return WalkResult::interrupt();
    if (auto load = dyn_cast<tile::LoadOp>(op))
      loads.push_back(load);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      stores.push_back(store);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return false;

  llvm::MapVector<BlockArgument, CellAccesses> stored;
  auto getBase = [](auto access) { return getPointerBases(access.getPtr()).getSingle(); };
  auto addToCells = [&](auto access, BlockArgument base) {
    std::optional<BoxAccess> box = getBoxAccess(access, analysis);
    if (!box || box->getBase() != base || !stored[base].add(*box, {row, column}, loop))
      return false;
    boxes.push_back(std::move(*box));
    return true;
  };
  for (tile::StoreOp store : stores)
    if (BlockArgument base = getBase(store); !base || !addToCells(store, base))
      return false;
  MemoryOrder order(analysis);
  auto mayPassStores = [&](Operation *op, BlockArgument base) {
    AccessPair why;
    return llvm::all_of(stores, [&](tile::StoreOp store) {
      return base == getBase(store) ||
             conditions.add(order.mayPass(op, store, loop), analysis, why);
    });
  };
  for (tile::LoadOp load : loads) {
    BlockArgument base = getBase(load);
    if (!base || (stored.contains(base) && !addToCells(load, base)) || !mayPassStores(load, base))
      return false;
  }
  for (tile::StoreOp store : stores)
    if (!mayPassStores(store, getBase(store)))
      return false;
  for (auto &[base, accesses] : stored) {
    const BoxDim &ofRow = accesses.inner[0], &ofColumn = accesses.inner[1];
    auto stride = dyn_cast<AffineConstantExpr>(ofColumn.stride);
    if (!stride || stride.getValue() != 1)
      return false;
    arrays.push_back({accesses.scale[1], ofRow.stride,
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
  TileIterations iterations(loop);
  AccessAnalysis analysis;
  if (!iterations.addAccesses(row, column, analysis))
    return std::nullopt;
  return iterations;
}

bool TileIterations::addConditions(bool assumeApart) const {
  auto isAlways = [](const BoxAccess &box) {
    return box.getConditions().empty() && box.getProgramBounds().empty() &&
           box.getMostPrograms() == 0;
  };
  if (!assumeApart && !(conditions.apart.empty() && conditions.notNegative.empty() &&
                        llvm::all_of(boxes, isAlways)))
    return false;
  auto kernel = cast<tile::FuncOp>(scf::ForOp(loop)->getParentOp());
  addLaunchConditions(kernel, conditions);
  for (const BoxAccess &box : boxes)
    addLaunchConditions(kernel, box);
  return true;
}

//===----------------------------------------------------------------------===//
// What the kernel finds out
//===----------------------------------------------------------------------===//

/// In 64 bits, in which products of two arguments cannot wrap.
static Value evaluate(OpBuilder &builder, Location loc, LaunchExpr expr, tile::FuncOp kernel) {
  Type type = builder.getI64Type();
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(constant.getValue()));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    Value value = kernel.getArgument(symbol.getPosition());
    return value.getType() == type ? value : arith::ExtSIOp::create(builder, loc, type, value);
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = evaluate(builder, loc, binary.getLHS(), kernel),
        rhs = evaluate(builder, loc, binary.getRHS(), kernel);
  if (binary.getKind() == AffineExprKind::Add)
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  assert(binary.getKind() == AffineExprKind::Mul && "not an expression of a box");
  return arith::MulIOp::create(builder, loc, lhs, rhs);
}

Value TileIterations::emitMayChange(OpBuilder &builder, Location loc, Value columns) const {
  auto kernel = cast<tile::FuncOp>(scf::ForOp(loop)->getParentOp());
  Type i64 = builder.getI64Type();
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  };
  Value programs = tile::NumProgramsOp::create(builder, loc, builder.getI32Type(), 0);
  Value may = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                    scf::ForOp(loop).getStep(), programs);
  for (const Cells &cells : arrays) {
    Value stride = evaluate(builder, loc, cells.stride, kernel);
    Value width = cells.extent
                      ? evaluate(builder, loc, cells.extent, kernel)
                      : arith::MulIOp::create(builder, loc,
                                              arith::ExtSIOp::create(builder, loc, i64, columns),
                                              number(cells.columns));
    Value isApart = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, width, stride);
    may = arith::AndIOp::create(builder, loc, may, isApart);
  }
  return may;
}
