// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops whose variable may leave its type. The next value of an `scf.for` is computed
// before it is compared with the bound; where it wraps, the loop would never end. Here
// the variable is compared before it is moved, with a limit a step below the bound: as
// many instructions an iteration, and nothing wraps.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEENDLOOPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;

namespace {

struct EndLoopsPass : public tessera::tile::impl::TileEndLoopsPassBase<EndLoopsPass> {
  void runOnOperation() final;
};

/// True if the value after the last that is below the bound may be past the type's largest.
bool mayWrap(scf::ForOp loop) {
  auto type = dyn_cast<IntegerType>(loop.getInductionVar().getType());
  // A loop over `index` is the compiler's own, over the elements of a tile.
  if (!type)
    return false;
  APInt step, upper;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return true;
  if (step.isOne())
    return false;
  if (!matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)))
    return true;
  bool overflows;
  if (loop.getUnsignedCmp())
    (void)(upper - 1).uadd_ov(step, overflows);
  else
    (void)(upper - 1).sadd_ov(step, overflows);
  return overflows;
}

/// The largest value of the variable from which another step stays below the bound, plus 1;
/// the smallest of the type where there is none.
Value buildLimit(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto type = cast<IntegerType>(loop.getInductionVar().getType());
  bool isUnsigned = loop.getUnsignedCmp();
  APInt least =
      isUnsigned ? APInt::getZero(type.getWidth()) : APInt::getSignedMinValue(type.getWidth());
  Value smallest = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, least));
  Value first = b.createOrFold<arith::AddIOp>(loc, smallest, loop.getStep());
  Value below = arith::CmpIOp::create(
      b, loc, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
      loop.getUpperBound(), first);
  Value limit = arith::SubIOp::create(b, loc, loop.getUpperBound(), loop.getStep());
  return arith::SelectOp::create(b, loc, below, smallest, limit);
}

void endLoop(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  bool isUnsigned = loop.getUnsignedCmp();
  auto less = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value lower = loop.getLowerBound(), step = loop.getStep();
  Value limit = buildLimit(b, loop);
  Value runs = arith::CmpIOp::create(b, loc, less, lower, loop.getUpperBound());
  auto guard = scf::IfOp::create(b, loc, loop.getResultTypes(), runs, /*withElseRegion=*/true);
  {
    OpBuilder no = guard.getElseBodyBuilder();
    if (loop.getNumResults())
      scf::YieldOp::create(no, loc, loop.getInitArgs());
  }
  OpBuilder yes = guard.getThenBodyBuilder();
  SmallVector<Value> inits{lower};
  llvm::append_range(inits, loop.getInitArgs());
  SmallVector<Type> types = llvm::map_to_vector(inits, [](Value v) { return v.getType(); });
  auto newLoop = scf::WhileOp::create(yes, loc, types, inits);
  newLoop->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  // The body, then whether there is another iteration.
  SmallVector<Location> locs(types.size(), loc);
  Block *body = b.createBlock(&newLoop.getBefore(), {}, types, locs);
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Value> passed{body->getArgument(0)};
  llvm::append_range(passed, yield->getOperands());
  yield->erase();
  for (auto [old, argument] : llvm::zip_equal(loop.getBody()->getArguments(), body->getArguments()))
    old.replaceAllUsesWith(argument);
  for (Value &value : passed)
    for (auto [old, argument] :
         llvm::zip_equal(loop.getBody()->getArguments(), body->getArguments()))
      if (value == old)
        value = argument;
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  b.setInsertionPointToEnd(body);
  Value again = arith::CmpIOp::create(b, loc, less, body->getArgument(0), limit);
  scf::ConditionOp::create(b, loc, again, passed);

  Block *next = b.createBlock(&newLoop.getAfter(), {}, types, locs);
  b.setInsertionPointToEnd(next);
  auto flags = isUnsigned ? arith::IntegerOverflowFlags::nuw : arith::IntegerOverflowFlags::nsw;
  SmallVector<Value> values(next->getArguments());
  values[0] = arith::AddIOp::create(b, loc, values[0], step, flags);
  scf::YieldOp::create(b, loc, values);

  if (loop.getNumResults())
    scf::YieldOp::create(yes, loc, newLoop.getResults().drop_front());
  loop.replaceAllUsesWith(guard.getResults());
  loop.erase();
}

} // namespace

void EndLoopsPass::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](scf::ForOp loop) {
    if (mayWrap(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    endLoop(loop);
}
