// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopIteration.h"

#include "Programs/LoopDots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static Value makeNumber(OpBuilder &builder, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

Value LoopCounter::emitRuns(OpBuilder &builder) const {
  scf::ForOp of = loop;
  auto predicate = of.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(builder, of.getLoc(), predicate, of.getLowerBound(),
                               of.getUpperBound());
}

/// From an iteration to the one `ahead` of it. Any step will do for the next one.
Value LoopCounter::emitDistance(OpBuilder &builder, int64_t ahead) const {
  scf::ForOp of = loop;
  if (std::optional<int64_t> step = getSmallStep(of))
    return makeNumber(builder, of.getLoc(), of.getStep().getType(), *step * ahead);
  assert(ahead == 1 && "iterations further ahead are of loops with small steps");
  return of.getStep();
}

/// The difference to the bound is positive, and so is compared as an unsigned number.
Value LoopCounter::emitHasMore(OpBuilder &builder, Value variable, unsigned ahead) const {
  scf::ForOp of = loop;
  Location loc = of.getLoc();
  Value left = arith::SubIOp::create(builder, loc, of.getUpperBound(), variable);
  Value way = emitDistance(builder, ahead);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, way);
}

Value LoopCounter::emitAhead(OpBuilder &builder, Value variable, int ahead) const {
  return arith::AddIOp::create(builder, scf::ForOp(loop).getLoc(), variable,
                               emitDistance(builder, ahead));
}

Value LoopCounter::emitLast(OpBuilder &builder) const {
  scf::ForOp of = loop;
  Location loc = of.getLoc();
  Value way = arith::SubIOp::create(builder, loc, of.getUpperBound(), of.getLowerBound());
  Value one = makeNumber(builder, loc, way.getType(), 1);
  way = arith::SubIOp::create(builder, loc, way, one);
  Value steps = arith::DivUIOp::create(builder, loc, way, of.getStep());
  way = arith::MulIOp::create(builder, loc, steps, of.getStep());
  return arith::AddIOp::create(builder, loc, of.getLowerBound(), way);
}
