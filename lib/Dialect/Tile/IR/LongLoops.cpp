// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops whose constant bounds are further apart than their type can count: from the least i32
// to the largest one, say. Upstream's patterns take the difference of the bounds as signed, find
// that it is negative, and drop the loop. Here it counts its iterations instead, and the index
// is computed from their number:
//
//     for i from -2^31 to 2^31 - 1 step 2^30     for k from 0 to 4 step 1 { i = -2^31 + k * 2^30 }

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tessera::tile;

namespace {

struct CountLongLoop : OpRewritePattern<scf::ForOp> {
  /// Not of a GPU: tried before upstream's.
  explicit CountLongLoop(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/PatternBenefit(100)) {}

  LogicalResult matchAndRewrite(scf::ForOp loop, PatternRewriter &rewriter) const final {
    APInt lower, upper, step;
    auto type = dyn_cast<IntegerType>(loop.getInductionVar().getType());
    if (!type || !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
        !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
        !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
      return rewriter.notifyMatchFailure(loop, "bounds are not constants");
    bool isEmpty = loop.getUnsignedCmp() ? lower.uge(upper) : lower.sge(upper);
    APInt distance = upper - lower;
    if (isEmpty || distance.isNonNegative())
      return rewriter.notifyMatchFailure(loop, "the distance of the bounds is in the type");
    // Not of a GPU: the widest integer of the language.
    constexpr unsigned kCounterWidth = 64;
    if (type.getWidth() > kCounterWidth)
      return rewriter.notifyMatchFailure(loop, "no counter is as wide");
    APInt count = ((distance - 1).udiv(step) + 1).zext(std::max(kCounterWidth, type.getWidth()));
    if (count.isNegative())
      return rewriter.notifyMatchFailure(loop, "nothing counts that far");

    Location loc = loop.getLoc();
    auto counter = rewriter.getIntegerType(kCounterWidth);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(counter, value));
    };
    auto counted = scf::ForOp::create(rewriter, loc, constant(0), constant(count.getSExtValue()),
                                      constant(1), loop.getInitArgs());
    counted->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    Block *body = counted.getBody();
    if (!body->empty())
      rewriter.eraseOp(body->getTerminator());
    rewriter.setInsertionPointToEnd(body);
    Value number = counted.getInductionVar();
    if (type != counter)
      number = arith::TruncIOp::create(rewriter, loc, type, number);
    Value moved = arith::MulIOp::create(rewriter, loc, number, loop.getStep());
    SmallVector<Value> arguments{arith::AddIOp::create(rewriter, loc, loop.getLowerBound(), moved)};
    llvm::append_range(arguments, counted.getRegionIterArgs());
    rewriter.inlineBlockBefore(loop.getBody(), body, body->end(), arguments);
    rewriter.replaceOp(loop, counted.getResults());
    return success();
  }
};

} // namespace

void TileDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<CountLongLoop>(patterns.getContext());
}
