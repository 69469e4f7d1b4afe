// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unrolling as hinted. Bounds are any integers, also near the ends of their type: no
// bound computed here lies outside [lower, upper] where the loop makes an iteration.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEUNROLLLOOPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

struct UnrollLoopsPass : public tessera::tile::impl::TileUnrollLoopsPassBase<UnrollLoopsPass> {
  void runOnOperation() final;
  void unroll(scf::ForOp loop, int64_t factor);
};

/// Integer arithmetic on loop bounds, folded where they are constants.
struct BoundBuilder {
  OpBuilder &builder;
  Location loc;
  Type type;

  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  }
  template <typename Op, typename... Args> Value make(Args... args) {
    return builder.createOrFold<Op>(loc, args...);
  }
};

} // namespace

/// lower, lower + step, ... in groups of `factor` iterations, then the rest one by one.
void UnrollLoopsPass::unroll(scf::ForOp loop, int64_t factor) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  BoundBuilder bound{builder, loc, lower.getType()};
  Value one = bound.constant(1), zero = bound.constant(0);

  // iterations = (upper - lower - 1) / step + 1, unsigned, if there is one at all.
  auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs = bound.make<arith::CmpIOp>(less, lower, upper);
  Value last = bound.make<arith::SubIOp>(bound.make<arith::SubIOp>(upper, lower), one);
  Value iterations = bound.make<arith::SelectOp>(
      runs, bound.make<arith::AddIOp>(bound.make<DivIntOp>(Signedness::Unsigned, last, step), one),
      zero);
  Value rest = bound.make<RemIntOp>(Signedness::Unsigned, iterations, bound.constant(factor));
  // If the step of a whole group would overflow the type, all iterations run one by one: the type
  // holds hardly more than `factor` of them.
  unsigned width = lower.getType().isIndex() ? 64 : lower.getType().getIntOrFloatBitWidth();
  APInt largest = APInt::getSignedMaxValue(width);
  Value isCountable = bound.make<arith::CmpIOp>(
      arith::CmpIPredicate::ule, step, bound.constant(largest.udiv(factor).getSExtValue()));
  rest = bound.make<arith::SelectOp>(isCountable, rest, iterations);
  Value unrolledIterations = bound.make<arith::SubIOp>(iterations, rest);
  Value covered = bound.make<arith::MulIOp>(unrolledIterations, step);
  // The end of the groups. One past the first iteration of the last group suffices. The first index
  // of the rest is in range only if there is a rest.
  Value hasRest = bound.make<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, zero);
  Value restLower =
      bound.make<arith::SelectOp>(hasRest, bound.make<arith::AddIOp>(lower, covered), upper);
  Value end = bound.make<arith::SelectOp>(runs, restLower, lower);
  Value stride = bound.make<arith::SelectOp>(
      isCountable, bound.make<arith::MulIOp>(step, bound.constant(factor)), step);

  // An index of the loop is within its bounds: addresses may be sums with a constant.
  auto within =
      loop.getUnsignedCmp() ? arith::IntegerOverflowFlags::nuw : arith::IntegerOverflowFlags::nsw;
  auto unrolled = scf::ForOp::create(builder, loc, lower, end, stride, loop.getInitArgs(),
                                     /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  unrolled->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  unrolled->removeAttr(kUnrollFactorAttr);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *body = unrolled.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    builder.setInsertionPointToEnd(body);
    SmallVector<Value> carried(unrolled.getRegionIterArgs());
    for (int64_t copy = 0; copy < factor; ++copy) {
      IRMapping mapping;
      Value index = unrolled.getInductionVar();
      if (copy != 0)
        index = bound.make<arith::AddIOp>(
            index, bound.make<arith::MulIOp>(step, bound.constant(copy), within), within);
      mapping.map(loop.getInductionVar(), index);
      mapping.map(loop.getRegionIterArgs(), carried);
      for (Operation &op : loop.getBody()->without_terminator())
        builder.clone(op, mapping);
      for (auto [next, yielded] : llvm::zip_equal(carried, loop.getYieldedValues()))
        next = mapping.lookupOrDefault(yielded);
    }
    scf::YieldOp::create(builder, loc, carried);
  }

  // The old loop runs the remaining iterations, if there are any.
  loop->removeAttr(kUnrollFactorAttr);
  if (matchPattern(rest, m_Zero())) {
    loop.replaceAllUsesWith(unrolled.getResults());
    loop.erase();
  } else {
    loop.setLowerBound(end);
    loop.getInitArgsMutable().assign(unrolled.getResults());
  }
}

void UnrollLoopsPass::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](scf::ForOp loop) {
    if (loop->hasAttr(kUnrollFactorAttr))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    auto factor = loop->getAttrOfType<IntegerAttr>(kUnrollFactorAttr);
    if (factor.getInt() < 2)
      loop->removeAttr(kUnrollFactorAttr);
    else
      unroll(loop, factor.getInt());
  }
}
