// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source maps of the dialect's ops (IndexMapOpInterface): the one place with their rules.

#include "tessera/Dialect/Tile/IR/SourceMaps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// The index of a result, as expressions.
struct ResultIndex {
  ResultIndex(unsigned rank, MLIRContext *context) : context(context), rank(rank) {
    for (unsigned dim = 0; dim < rank; ++dim)
      index.push_back(getAffineDimExpr(dim, context));
  }
  explicit ResultIndex(Value result)
      : ResultIndex(getShape(result.getType()).size(), result.getContext()) {}

  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }
  AffineExpr all() const { return getAffineSymbolExpr(0, context); }
  AffineMap mapTo(ArrayRef<AffineExpr> source, unsigned symbols = 0) const {
    return AffineMap::get(rank, symbols, source, context);
  }

  MLIRContext *context;
  unsigned rank;
  SmallVector<AffineExpr> index;
};

} // namespace

/// Elements of an axis meet: the index along it is a symbol. `isDropped`: the result is without it.
static AffineMap mapAlongAxis(Value result, unsigned axis, bool isDropped) {
  ResultIndex to(result);
  SmallVector<AffineExpr> source(to.index);
  if (isDropped)
    source.insert(source.begin() + axis, to.all());
  else
    source[axis] = to.all();
  return to.mapTo(source, /*symbols=*/1);
}

AffineMap tile::getSameIndex(Type operand, Type result) {
  MLIRContext *context = result.getContext();
  unsigned rank = getShape(result).size();
  return isa<RankedTensorType>(operand) ? AffineMap::getMultiDimIdentityMap(rank, context)
                                        : AffineMap::get(rank, 0, context);
}

AffineMap BroadcastOp::getSourceMap(unsigned, unsigned) {
  ResultIndex to(getResult());
  ArrayRef<int64_t> from = getShape(getSource().getType());
  for (auto [index, extent, repeated] : llvm::zip_equal(to.index, from, getShape(getType())))
    if (extent != repeated)
      index = to.constant(0);
  return to.mapTo(to.index);
}

AffineMap ExpandDimsOp::getSourceMap(unsigned, unsigned) {
  ResultIndex to(getResult());
  to.index.erase(to.index.begin() + getAxis());
  return to.mapTo(to.index);
}

AffineMap TransOp::getSourceMap(unsigned, unsigned) {
  ResultIndex to(getResult());
  SmallVector<AffineExpr> source(to.rank);
  for (auto [index, from] : llvm::zip_equal(to.index, getOrder()))
    source[from] = index;
  return to.mapTo(source);
}

SmallVector<ReshapeGroup> tile::getReshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<ReshapeGroup> groups;
  unsigned f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    ReshapeGroup group{f, f, t, t};
    int64_t fromCount = f < from.size() ? from[f++] : 1, toCount = t < to.size() ? to[t++] : 1;
    while (fromCount != toCount) {
      if (fromCount < toCount)
        fromCount *= from[f++];
      else
        toCount *= to[t++];
    }
    group.fromEnd = f;
    group.toEnd = t;
    groups.push_back(group);
  }
  return groups;
}

AffineMap tile::getReshapeMap(ArrayRef<int64_t> from, ArrayRef<int64_t> to, MLIRContext *context) {
  ResultIndex result(to.size(), context);
  SmallVector<AffineExpr> source(from.size(), result.constant(0));
  for (ReshapeGroup group : getReshapeGroups(from, to)) {
    if (group.fromEnd - group.fromBegin == 1 && group.toEnd - group.toBegin == 1) {
      source[group.fromBegin] = result.index[group.toBegin];
      continue;
    }
    AffineExpr position = result.constant(0);
    int64_t stride = 1;
    for (unsigned dim = group.toBegin; dim < group.toEnd; ++dim) {
      if (to[dim] != 1)
        position = position * to[dim] + result.index[dim];
      stride *= to[dim];
    }
    // No index of the outermost dimension is too large.
    AffineExpr rest = position;
    for (unsigned dim = group.fromBegin; dim < group.fromEnd; ++dim) {
      if (from[dim] == 1)
        continue;
      stride /= from[dim];
      source[dim] = rest.floorDiv(stride);
      rest = position % stride;
    }
  }
  return result.mapTo(source);
}

AffineMap ReshapeOp::getSourceMap(unsigned, unsigned) {
  return getReshapeMap(getSource().getType().getShape(), getType().getShape(), getContext());
}

AffineMap JoinOp::getSourceMap(unsigned, unsigned) {
  ResultIndex to(getResult());
  return to.mapTo(ArrayRef(to.index).drop_back(getShape(getType()).size() -
                                               getShape(getLhs().getType()).size()));
}

AffineExpr JoinOp::getSourceOperand() { return ResultIndex(getResult()).index.back(); }

AffineMap SplitOp::getSourceMap(unsigned, unsigned result) {
  ResultIndex to(getLhs());
  to.index.push_back(to.constant(result));
  return to.mapTo(to.index);
}

AffineMap CatOp::getSourceMap(unsigned, unsigned) {
  ResultIndex to(getResult());
  AffineExpr &along = to.index[getAxis()];
  along = along % getShape(getLhs().getType())[getAxis()];
  return to.mapTo(to.index);
}

AffineExpr CatOp::getSourceOperand() {
  return ResultIndex(getResult())
      .index[getAxis()]
      .floorDiv(getShape(getLhs().getType())[getAxis()]);
}

AffineMap GatherOp::getSourceMap(unsigned operand, unsigned) {
  return operand == 0 ? mapAlongAxis(getResult(), getAxis(), /*isDropped=*/false)
                      : getSameIndex(getIndex().getType(), getType());
}

AffineMap ReduceOp::getSourceMap(unsigned, unsigned result) {
  return mapAlongAxis(getResult(result), getAxis(), /*isDropped=*/true);
}

AffineMap ScanOp::getSourceMap(unsigned, unsigned result) {
  return mapAlongAxis(getResult(result), getAxis(), /*isDropped=*/false);
}

AffineMap SortOp::getSourceMap(unsigned, unsigned result) {
  return mapAlongAxis(getResult(result), getAxis(), /*isDropped=*/false);
}

/// Rows of the first operand, columns of the second one.
AffineMap DotOp::getSourceMap(unsigned operand, unsigned) {
  unsigned rank = getShape(getType()).size();
  if (operand == 2)
    return getSameIndex(getAcc().getType(), getType());
  return mapAlongAxis(getResult(), operand == 0 ? rank - 1 : rank - 2, /*isDropped=*/false);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

AffineMap tile::getSourceMap(OpOperand &operand, unsigned result) {
  Operation *op = operand.getOwner();
  if (auto indexed = dyn_cast<IndexMapOpInterface>(op))
    return indexed.getSourceMap(operand.getOperandNumber(), result);
  if (op->hasTrait<OpTrait::Elementwise>() && result < op->getNumResults())
    return getSameIndex(operand.get().getType(), op->getResult(result).getType());
  return {};
}

std::optional<unsigned> tile::getSourceDim(AffineMap map, unsigned dim) {
  return map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
}

std::optional<unsigned> tile::getResultDim(AffineMap map, unsigned dim) {
  auto index = dyn_cast<AffineDimExpr>(map.getResult(dim));
  return index ? std::optional(index.getPosition()) : std::nullopt;
}

bool tile::movesDimensions(Operation *op) {
  std::optional<Motion> motion = getMotion(op);
  return motion && *motion <= Motion::Dimensions;
}

bool tile::permutesDimensions(Operation *op) {
  if (!movesOneTile(op))
    return false;
  AffineMap map = getSourceMap(op->getOpOperand(0));
  return map.isPermutation() && !map.isIdentity();
}

bool tile::onlyReshapes(Operation *op) {
  if (!movesOneTile(op) || keepsElements(op))
    return false;
  ArrayRef<int64_t> from = getShape(op->getOperand(0).getType());
  ArrayRef<int64_t> to = getShape(op->getResult(0).getType());
  if (ShapedType::getNumElements(from) != ShapedType::getNumElements(to))
    return false;
  // The index along an extent of 1 is 0, whichever dimension a map takes it from.
  ResultIndex result(op->getResult(0));
  SmallVector<AffineExpr> index(result.index);
  for (auto [expr, extent] : llvm::zip_equal(index, to))
    if (extent == 1)
      expr = result.constant(0);
  auto normalize = [&](AffineMap map) {
    return map.replaceDimsAndSymbols(index, {}, result.rank, 0);
  };
  return normalize(getSourceMap(op->getOpOperand(0))) ==
         normalize(getReshapeMap(from, to, op->getContext()));
}

OperandRange tile::getMovedOperands(MoveOpInterface move) {
  auto only = dyn_cast<AffineConstantExpr>(move.getSourceOperand());
  return only ? move->getOperands().slice(only.getValue(), 1) : move->getOperands();
}

std::optional<OperandChoice> tile::getOperandChoice(MoveOpInterface move) {
  AffineExpr which = move.getSourceOperand();
  if (isa<AffineConstantExpr>(which))
    return std::nullopt;
  int64_t border = 1;
  if (auto quotient = dyn_cast<AffineBinaryOpExpr>(which)) {
    which = quotient.getLHS();
    border = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
  }
  return OperandChoice{cast<AffineDimExpr>(which).getPosition(), border};
}
