// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Algebra on tiles. Rewrites of a single op are in its folder. Here are those that need two ops and
// are not always an improvement.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILECOMBINEPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

/// dot(a, b, 0) + c -> dot(a, b, c). The order in which a dot adds is not defined, so c may
/// come first.
template <typename AddOp> struct AddIntoAccumulator : public OpRewritePattern<AddOp> {
  using OpRewritePattern<AddOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const final {
    for (auto [value, other] :
         {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto dot = value.template getDefiningOp<DotOp>();
      // In another block the dot could end up in a loop that it was hoisted from.
      if (!dot || !dot->hasOneUse() || dot->getBlock() != op->getBlock())
        continue;
      if (!matchPattern(dot.getAcc(), m_Zero()) && !matchPattern(dot.getAcc(), m_AnyZeroFloat()))
        continue;
      // The bound on imprecise accumulation counts from an accumulator of 0.
      if (dot.getMaxImpreciseAcc() != 0)
        continue;
      auto combined = DotOp::create(rewriter, dot.getLoc(), op.getType(), dot.getA(), dot.getB(),
                                    other, dot.getPrecision(), dot.getMaxImpreciseAcc());
      rewriter.replaceOp(op, combined);
      rewriter.eraseOp(dot);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no operand is a dot without accumulator");
  }
};

/// True if two masks are one, be it that one is the splat of the other.
bool isSameMask(Value a, Value b) {
  auto strip = [](Value mask) {
    auto splat = mask.getDefiningOp<SplatOp>();
    return splat ? splat.getSource() : mask;
  };
  return a == b || strip(a) == strip(b);
}

/// select(m, load(p, m), x) -> load(p, m, x)
struct SelectOfLoad : public OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const final {
    auto load = op.getTrueValue().getDefiningOp<LoadOp>();
    if (!load || !load.getMask() || !load->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the first choice is no masked load of one use");
    if (!isSameMask(op.getCondition(), load.getMask()))
      return rewriter.notifyMatchFailure(op, "the load has another mask");
    // The load stays where it is among stores: the other choice must be there already.
    if (!DominanceInfo().properlyDominates(op.getFalseValue(), load))
      return rewriter.notifyMatchFailure(op, "the second choice comes after the load");
    rewriter.modifyOpInPlace(load, [&] { load.getOtherMutable().assign(op.getFalseValue()); });
    rewriter.replaceOp(op, load.getResult());
    return success();
  }
};

/// store(p, select(m, x, y), m) -> store(p, x, m)
struct StoreOfSelect : public OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const final {
    auto select = op.getValue().getDefiningOp<arith::SelectOp>();
    if (!select || !op.getMask() || !isSameMask(select.getCondition(), op.getMask()))
      return rewriter.notifyMatchFailure(op, "the value is no select under the same mask");
    rewriter.modifyOpInPlace(op, [&] { op.getValueMutable().assign(select.getTrueValue()); });
    return success();
  }
};

/// p + c1 + c2 -> p + (c1 + c2), if the sum of the constants does not wrap. An address has 64 bits
/// even if the offsets have fewer.
struct PointerChain : public OpRewritePattern<AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddPtrOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getPtr().getDefiningOp<AddPtrOp>();
    APInt first, second;
    if (!inner || inner.getOffset().getType() != op.getOffset().getType() ||
        !matchPattern(op.getOffset(), m_ConstantInt(&second)) ||
        !matchPattern(inner.getOffset(), m_ConstantInt(&first)))
      return rewriter.notifyMatchFailure(op, "not moved twice by constants of one type");
    bool wraps = false;
    APInt sum = first.sadd_ov(second, wraps);
    if (wraps)
      return rewriter.notifyMatchFailure(op, "the sum of the offsets wraps");
    Type type = op.getOffset().getType();
    TypedAttr value = rewriter.getIntegerAttr(getElementTypeOrSelf(type), sum);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      value = DenseElementsAttr::get(tile, sum);
    Value offset = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    rewriter.replaceOpWithNewOp<AddPtrOp>(op, inner.getPtr(), offset);
    return success();
  }
};

/// x - x / c * c -> x % c, for any constant c. Then it is known to be not negative if x is not.
struct RestOfQuotient : public OpRewritePattern<arith::SubIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SubIOp op, PatternRewriter &rewriter) const final {
    auto product = op.getRhs().getDefiningOp<arith::MulIOp>();
    if (!product)
      return rewriter.notifyMatchFailure(op, "no product is subtracted");
    for (auto [value, divisor] : {std::pair(product.getLhs(), product.getRhs()),
                                  std::pair(product.getRhs(), product.getLhs())}) {
      auto quotient = value.getDefiningOp<DivIntOp>();
      if (!quotient || quotient.getLhs() != op.getLhs() || quotient.getRhs() != divisor ||
          !matchPattern(divisor, m_Constant()))
        continue;
      rewriter.replaceOpWithNewOp<RemIntOp>(op, quotient.getSignedness(), op.getLhs(), divisor);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "the product is not of its quotient");
  }
};

/// x * c1 % c2 -> 0, if c1 is a multiple of c2, and c2 a power of two: the product may wrap.
struct RestOfMultiple : public OpRewritePattern<RemIntOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RemIntOp op, PatternRewriter &rewriter) const final {
    auto product = op.getLhs().getDefiningOp<arith::MulIOp>();
    APInt factor, divisor;
    if (!product || !matchPattern(op.getRhs(), m_ConstantInt(&divisor)) || !divisor.isPowerOf2() ||
        !(matchPattern(product.getRhs(), m_ConstantInt(&factor)) ||
          matchPattern(product.getLhs(), m_ConstantInt(&factor))) ||
        !factor.urem(divisor).isZero())
      return rewriter.notifyMatchFailure(op, "not known to be a multiple of a power of two");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, rewriter.getZeroAttr(op.getType()));
    return success();
  }
};

struct CombinePass : public tessera::tile::impl::TileCombinePassBase<CombinePass> {
  void runOnOperation() final {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<AddIntoAccumulator<arith::AddFOp>, AddIntoAccumulator<arith::AddIOp>, SelectOfLoad,
                 StoreOfSelect, PointerChain, RestOfQuotient, RestOfMultiple>(context);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
