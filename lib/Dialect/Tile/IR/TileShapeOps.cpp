// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every shape op keeps the order of elements (docs/Dialects/RationaleTile.md).

#include "tessera/Dialect/Tile/IR/SourceMaps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The splat constant among the operands, with another type.
static OpFoldResult foldSplatTo(Attribute source, Type type) {
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(source))
    return splat.resizeSplat(cast<ShapedType>(type));
  return {};
}

/// The tile type with what `infer` makes of the encoding, if the operand has one.
static FailureOr<RankedTensorType>
inferTile(std::optional<Location> loc, StringRef op, RankedTensorType source,
          ArrayRef<int64_t> shape,
          function_ref<FailureOr<Attribute>(TileEncodingInterface)> infer) {
  Attribute encoding = source.getEncoding();
  if (!encoding)
    return RankedTensorType::get(shape, source.getElementType());
  auto interface = dyn_cast<TileEncodingInterface>(encoding);
  FailureOr<Attribute> inferred = interface ? infer(interface) : FailureOr<Attribute>(failure());
  if (failed(inferred))
    return emitOptionalError(loc, "'", op, "' op would have to move elements of ", source);
  return RankedTensorType::get(shape, source.getElementType(), *inferred);
}

namespace {
/// A splat under another shape is a splat: all its elements are one scalar, wherever they come
/// from.
template <typename Op> struct ShapeOfSplat : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    auto splat = op.getSource().template getDefiningOp<SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "the operand is no splat");
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSource());
    return success();
  }
};

/// Two shapes say all about a broadcast.
struct BroadcastOfBroadcast : public OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getSource().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is no broadcast");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

/// Repeating comes last, where patterns of its users find it. A broadcast keeps the number of each
/// dimension, and so the axis.
struct ExpandDimsOfBroadcast : public OpRewritePattern<ExpandDimsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandDimsOp op, PatternRewriter &rewriter) const final {
    auto broadcast = op.getSource().getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return rewriter.notifyMatchFailure(op, "the operand is no broadcast");
    Value expanded =
        ExpandDimsOp::create(rewriter, op.getLoc(), broadcast.getSource(), op.getAxis());
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), expanded);
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// BroadcastOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> from = getShape(getSource().getType()), to = getShape(getType());
  if (from.size() != to.size())
    return emitOpError("changes the rank from ") << from.size() << " to " << to.size();
  for (auto [dim, extents] : llvm::enumerate(llvm::zip_equal(from, to))) {
    auto [f, t] = extents;
    if (f != 1 && f != t)
      return emitOpError("repeats dimension ")
             << dim << ", whose extent is " << f << " and not 1, to " << t;
  }
  auto source = cast<RankedTensorType>(getSource().getType());
  Attribute encoding = getEncoding(getType());
  if (encoding == source.getEncoding() && !encoding)
    return success();
  auto interface = dyn_cast_or_null<TileEncodingInterface>(encoding);
  FailureOr<Attribute> wanted =
      interface ? interface.inferBroadcastSource(from) : FailureOr<Attribute>(failure());
  if (failed(wanted) || *wanted != source.getEncoding())
    return emitOpError("would have to move elements of ") << source << " to give " << getType();
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return foldSplatTo(adaptor.getSource(), getType());
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<BroadcastOp>, BroadcastOfBroadcast>(context);
}

//===----------------------------------------------------------------------===//
// ExpandDimsOp
//===----------------------------------------------------------------------===//

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                             Adaptor adaptor, SmallVectorImpl<Type> &results) {
  auto source = cast<RankedTensorType>(adaptor.getSource().getType());
  int32_t axis = adaptor.getAxis();
  if (axis < 0 || axis > source.getRank())
    return emitOptionalError(loc, "'tile.expand_dims' op has axis ", axis, " for a tile of rank ",
                             source.getRank());
  SmallVector<int64_t> shape(source.getShape());
  shape.insert(shape.begin() + axis, 1);
  FailureOr<RankedTensorType> result =
      inferTile(loc, getOperationName(), source, shape,
                [&](TileEncodingInterface encoding) { return encoding.inferExpandDims(axis); });
  if (failed(result))
    return failure();
  results.push_back(*result);
  return success();
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) {
  return foldSplatTo(adaptor.getSource(), getType());
}

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ExpandDimsOp>, ExpandDimsOfBroadcast>(context);
}

//===----------------------------------------------------------------------===//
// ReshapeOp
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getType());
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("makes ") << to.getNumElements() << " elements of " << from.getNumElements();
  FailureOr<RankedTensorType> wanted = inferTile(
      getLoc(), getOperationName(), from, to.getShape(),
      [&](TileEncodingInterface encoding) { return encoding.inferReshape(to.getShape()); });
  if (failed(wanted))
    return failure();
  if (*wanted != to)
    return emitOpError("gives ") << to << ", but " << *wanted << " is where the elements are";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return foldSplatTo(adaptor.getSource(), getType());
}

namespace {
/// Two shapes say all about a reshape.
struct ReshapeOfReshape : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getSource().getDefiningOp<ReshapeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is no reshape");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

struct TransOfTrans : public OpRewritePattern<TransOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getSource().getDefiningOp<TransOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is no trans");
    AffineMap both =
        getSourceMap(inner->getOpOperand(0)).compose(getSourceMap(op->getOpOperand(0)));
    SmallVector<int32_t> order;
    for (unsigned dim = 0; dim < both.getNumDims(); ++dim)
      order.push_back(*getSourceDim(both, dim));
    rewriter.replaceOpWithNewOp<TransOp>(op, op.getType(), inner.getSource(), order);
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ReshapeOp>, ReshapeOfReshape>(context);
}

//===----------------------------------------------------------------------===//
// TransOp
//===----------------------------------------------------------------------===//

LogicalResult TransOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  auto source = cast<RankedTensorType>(adaptor.getSource().getType());
  ArrayRef<int32_t> order = adaptor.getOrder();
  llvm::SmallBitVector seen(source.getRank());
  for (int32_t dim : order)
    if (dim >= 0 && dim < source.getRank())
      seen.set(dim);
  if (static_cast<int64_t>(order.size()) != source.getRank() || !seen.all())
    return emitOptionalError(loc, "'tile.trans' op order is no permutation of the ",
                             source.getRank(), " dimensions");
  SmallVector<int64_t> shape;
  for (int32_t dim : order)
    shape.push_back(source.getDimSize(dim));
  FailureOr<RankedTensorType> result =
      inferTile(loc, getOperationName(), source, shape,
                [&](TileEncodingInterface encoding) { return encoding.inferTrans(order); });
  if (failed(result))
    return failure();
  results.push_back(*result);
  return success();
}

OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  if (getSourceMap(/*operand=*/0, /*result=*/0).isIdentity())
    return getSource();
  return foldSplatTo(adaptor.getSource(), getType());
}

void TransOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<TransOp>, TransOfTrans>(context);
}

//===----------------------------------------------------------------------===//
// JoinOp, SplitOp, CatOp
//===----------------------------------------------------------------------===//

LogicalResult JoinOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  Type source = adaptor.getLhs().getType();
  SmallVector<int64_t> shape(getShape(source));
  shape.push_back(2);
  auto tile = dyn_cast<RankedTensorType>(source);
  if (!tile) {
    results.push_back(RankedTensorType::get(shape, source));
    return success();
  }
  FailureOr<RankedTensorType> result =
      inferTile(loc, getOperationName(), tile, shape,
                [&](TileEncodingInterface encoding) { return encoding.inferJoin(); });
  if (failed(result))
    return failure();
  results.push_back(*result);
  return success();
}

/// Two scalars can be joined to a tile that lives anywhere.
bool JoinOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  if (inferred == actual)
    return true;
  return inferred.size() == 1 && actual.size() == 1 && getShape(inferred[0]).size() == 1 &&
         getShape(actual[0]) == getShape(inferred[0]) &&
         getElementTypeOrSelf(actual[0]) == getElementTypeOrSelf(inferred[0]) &&
         !getEncoding(inferred[0]);
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  auto source = cast<RankedTensorType>(adaptor.getSource().getType());
  if (source.getRank() == 0 || source.getShape().back() != 2)
    return emitOptionalError(loc, "'tile.split' op needs a last extent of 2, has ", source);
  Type half = source.getElementType();
  if (source.getRank() > 1) {
    FailureOr<RankedTensorType> tile =
        inferTile(loc, getOperationName(), source, source.getShape().drop_back(),
                  [&](TileEncodingInterface encoding) { return encoding.inferSplit(); });
    if (failed(tile))
      return failure();
    half = *tile;
  }
  results.assign(2, half);
  return success();
}

LogicalResult CatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  auto source = cast<RankedTensorType>(adaptor.getLhs().getType());
  int32_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= source.getRank())
    return emitOptionalError(loc, "'tile.cat' op has axis ", axis, " for tiles of rank ",
                             source.getRank());
  SmallVector<int64_t> shape(source.getShape());
  shape[axis] *= 2;
  FailureOr<RankedTensorType> result =
      inferTile(loc, getOperationName(), source, shape,
                [&](TileEncodingInterface encoding) { return encoding.inferCat(axis); });
  if (failed(result))
    return failure();
  results.push_back(*result);
  return success();
}
