// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise ops commute with broadcasts. Before the broadcast they cost less, by the factor of
// the repetition. Strides then remain named scalars, which the access analysis needs
// (Analysis/Access/Access.h).

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEREORDERBROADCASTSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

/// True if equal operands of the op give equal results, and it may be done once for many.
static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && op->getNumOperands() > 0 && isPure(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

/// The value of a constant whose elements are all equal.
static TypedAttr getSplatConstant(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return {};
  return cast<TypedAttr>(splat.getSplatValue<Attribute>());
}

/// The same op on other operands. `like` has the shape of the result.
static Value cloneOn(PatternRewriter &rewriter, Operation *op, ArrayRef<Value> operands,
                     Type like) {
  Type result = withElementType(like, getElementTypeOrSelf(op->getResult(0).getType()));
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(result);
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return rewriter.create(state)->getResult(0);
}

namespace {

/// op(splat(a), splat(b)) -> splat(op(a, b))
struct ElementwiseOfSplats : public RewritePattern {
  ElementwiseOfSplats(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const final {
    if (!isElementwise(op))
      return rewriter.notifyMatchFailure(op, "not elementwise");
    bool anySplat = false;
    for (Value operand : op->getOperands()) {
      anySplat |= operand.getDefiningOp<SplatOp>() != nullptr;
      if (isa<RankedTensorType>(operand.getType()) && !operand.getDefiningOp<SplatOp>() &&
          !getSplatConstant(operand))
        return rewriter.notifyMatchFailure(op, "an operand is no splat");
    }
    // Constants alone are the folder's business.
    if (!anySplat)
      return rewriter.notifyMatchFailure(op, "no operand is a splat");
    SmallVector<Value> scalars;
    for (Value operand : op->getOperands()) {
      if (auto splat = operand.getDefiningOp<SplatOp>())
        scalars.push_back(splat.getSource());
      else if (!isa<RankedTensorType>(operand.getType()))
        scalars.push_back(operand);
      else
        scalars.push_back(
            arith::ConstantOp::create(rewriter, op->getLoc(), getSplatConstant(operand)));
    }
    Type type = op->getResult(0).getType();
    Value scalar = cloneOn(rewriter, op, scalars, getElementTypeOrSelf(type));
    rewriter.replaceOpWithNewOp<SplatOp>(op, type, scalar);
    return success();
  }
};

/// op(broadcast(a), broadcast(b), splat(c)) -> broadcast(op(a, b, splat(c)))
struct ElementwiseOfBroadcasts : public RewritePattern {
  ElementwiseOfBroadcasts(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const final {
    if (!isElementwise(op))
      return rewriter.notifyMatchFailure(op, "not elementwise");
    // Not an index map: broadcasts between the same shapes repeat alike.
    RankedTensorType small;
    for (Value operand : op->getOperands()) {
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>()) {
        auto source = cast<RankedTensorType>(broadcast.getSource().getType());
        if (small && small.getShape() != source.getShape())
          return rewriter.notifyMatchFailure(op, "operands are repeated from several shapes");
        small = source;
      } else if (isa<RankedTensorType>(operand.getType()) && !operand.getDefiningOp<SplatOp>() &&
                 !getSplatConstant(operand)) {
        return rewriter.notifyMatchFailure(op, "an operand is not repeated");
      }
    }
    if (!small)
      return rewriter.notifyMatchFailure(op, "no operand is a broadcast");
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type) {
        operands.push_back(operand);
        continue;
      }
      // Not an index map: the operand that the op above repeats.
      RankedTensorType smaller = small.clone(type.getElementType());
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
        operands.push_back(broadcast.getSource());
      else if (auto splat = operand.getDefiningOp<SplatOp>())
        operands.push_back(SplatOp::create(rewriter, op->getLoc(), smaller, splat.getSource()));
      else
        operands.push_back(arith::ConstantOp::create(
            rewriter, op->getLoc(),
            cast<TypedAttr>(DenseElementsAttr::get(smaller, getSplatConstant(operand)))));
    }
    Value result = cloneOn(rewriter, op, operands, small);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op->getResult(0).getType(), result);
    return success();
  }
};

/// addptr(addptr(p, x), splat(s)) -> addptr(addptr(p, splat(s)), x): the two additions
/// of 64-bit addresses commute, and p is a splat or a smaller tile in the end.
struct UniformOffsetToBase : public OpRewritePattern<AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddPtrOp op, PatternRewriter &rewriter) const final {
    auto isUniform = [](Value value) {
      return value.getDefiningOp<SplatOp>() || getSplatConstant(value);
    };
    auto inner = op.getPtr().getDefiningOp<AddPtrOp>();
    if (!isa<RankedTensorType>(op.getType()) || !inner || !isUniform(op.getOffset()) ||
        isUniform(inner.getOffset()))
      return rewriter.notifyMatchFailure(op, "no uniform offset after another one");
    Value base = AddPtrOp::create(rewriter, op.getLoc(), inner.getPtr(), op.getOffset());
    rewriter.replaceOpWithNewOp<AddPtrOp>(op, base, inner.getOffset());
    return success();
  }
};

struct ReorderBroadcastsPass
    : public tessera::tile::impl::TileReorderBroadcastsPassBase<ReorderBroadcastsPass> {
  void runOnOperation() final {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<ElementwiseOfSplats>(context);
    patterns.add<ElementwiseOfBroadcasts>(context);
    patterns.add<UniformOffsetToBase>(context);
    // Splats and broadcasts find each other through shape ops.
    BroadcastOp::getCanonicalizationPatterns(patterns, context);
    ExpandDimsOp::getCanonicalizationPatterns(patterns, context);
    ReshapeOp::getCanonicalizationPatterns(patterns, context);
    TransOp::getCanonicalizationPatterns(patterns, context);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
