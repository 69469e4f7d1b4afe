// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that move a tile of pointers by equal amounts (every matmul does) hide
// what the pointers look like behind a carried value. With the amount carried instead,
// the pointers of each iteration are an expression of values from outside the loop. A scalar that
// goes beside the loop's own variable, one step behind, becomes an expression of that.
//
// A loop over tiles may compute where its next tile is at the end of an iteration. If what is
// carried is the same expression of the loop's variable before the loop and there, each iteration
// computes it from its own variable.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "tile-rewrite-inductions"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEREWRITEINDUCTIONSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

/// A carried tile that each iteration moves by equal amounts.
struct Induction {
  /// Its place among what the loop carries.
  unsigned number;
  /// Its place among what the condition of a `while` hands on; `number` in a `for`.
  unsigned handedOn;
  /// i64 for pointers; the element type for integers, which wrap alike.
  Type scalarType;
};

struct RewriteInductionsPass
    : public tessera::tile::impl::TileRewriteInductionsPassBase<RewriteInductionsPass> {
  void runOnOperation() final;
  std::optional<Induction> findInduction(Value carried, Value next, unsigned number,
                                         unsigned handedOn);
  void rewriteFollowers(scf::ForOp loop);
  void rewriteAdvanced(scf::ForOp loop);
  void rewriteRecomputed(scf::ForOp loop);
  void rewriteFor(scf::ForOp loop);
  void rewriteWhile(scf::WhileOp loop);
};

//===----------------------------------------------------------------------===//
// Tiles that are another one plus a scalar
//===----------------------------------------------------------------------===//

bool isUniformTile(Value tile) {
  SplatElementsAttr constant;
  return tile.getDefiningOp<SplatOp>() || matchPattern(tile, m_Constant(&constant));
}

/// True if a tile is `base` plus a uniform amount, which branches of a conditional may choose.
bool isMoved(Value tile, Value base, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 16;
  if (tile == base)
    return true;
  if (depth == kMaxDepth)
    return false;
  if (auto hint = tile.getDefiningOp<HintOp>())
    return isMoved(hint.getSource(), base, depth + 1);
  if (auto add = tile.getDefiningOp<AddPtrOp>())
    return isUniformTile(add.getOffset()) && isMoved(add.getPtr(), base, depth + 1);
  if (auto add = tile.getDefiningOp<arith::AddIOp>())
    return (isUniformTile(add.getRhs()) && isMoved(add.getLhs(), base, depth + 1)) ||
           (isUniformTile(add.getLhs()) && isMoved(add.getRhs(), base, depth + 1));
  if (auto ifOp = tile.getDefiningOp<scf::IfOp>()) {
    unsigned number = cast<OpResult>(tile).getResultNumber();
    return isMoved(ifOp.thenYield().getOperand(number), base, depth + 1) &&
           isMoved(ifOp.elseYield().getOperand(number), base, depth + 1);
  }
  return false;
}

bool areEqual(Value a, Value b) {
  APInt left, right;
  return a == b || (matchPattern(a, m_ConstantInt(&left)) &&
                    matchPattern(b, m_ConstantInt(&right)) && left == right);
}

/// The scalar of which a tile is the splat, made where the builder stands, in `type`.
Value getUniformScalar(OpBuilder &builder, Location loc, Value tile, Type type) {
  SplatElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant)))
    return arith::ConstantOp::create(
        builder, loc,
        builder.getIntegerAttr(
            type, constant.getSplatValue<APInt>().sextOrTrunc(type.getIntOrFloatBitWidth())));
  Value scalar = tile.getDefiningOp<SplatOp>().getSource();
  if (scalar.getType() == type)
    return scalar;
  return arith::ExtSIOp::create(builder, loc, type, scalar);
}

/// For a tile with `isMoved(tile, base)`: how far it is from where `base` was when
/// `moved` was 0.
Value getDistance(Value tile, Value base, Value moved) {
  if (tile == base)
    return moved;
  Operation *op = tile.getDefiningOp();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  auto add = [&](Value next, Value amount) -> Value {
    Value distance = getDistance(next, base, moved);
    Value by = getUniformScalar(builder, op->getLoc(), amount, moved.getType());
    return arith::AddIOp::create(builder, op->getLoc(), distance, by);
  };
  if (auto hint = dyn_cast<HintOp>(op))
    return getDistance(hint.getSource(), base, moved);
  if (auto addPtr = dyn_cast<AddPtrOp>(op))
    return add(addPtr.getPtr(), addPtr.getOffset());
  if (auto sum = dyn_cast<arith::AddIOp>(op)) {
    if (isUniformTile(sum.getRhs()) && isMoved(sum.getLhs(), base))
      return add(sum.getLhs(), sum.getRhs());
    return add(sum.getRhs(), sum.getLhs());
  }
  // A conditional gives the distance beside the tile.
  auto ifOp = cast<scf::IfOp>(op);
  unsigned number = cast<OpResult>(tile).getResultNumber();
  Value yes = getDistance(ifOp.thenYield().getOperand(number), base, moved);
  Value no = getDistance(ifOp.elseYield().getOperand(number), base, moved);
  SmallVector<Type> types(ifOp.getResultTypes());
  types.push_back(moved.getType());
  auto wider = scf::IfOp::create(builder, ifOp.getLoc(), types, ifOp.getCondition(),
                                 /*addThenBlock=*/false, /*addElseBlock=*/false);
  wider.getThenRegion().takeBody(ifOp.getThenRegion());
  wider.getElseRegion().takeBody(ifOp.getElseRegion());
  wider.thenYield().getResultsMutable().append(yes);
  wider.elseYield().getResultsMutable().append(no);
  ifOp.replaceAllUsesWith(wider.getResults().drop_back());
  ifOp.erase();
  return wider.getResults().back();
}

/// A tile moved by a scalar.
Value moveBy(OpBuilder &builder, Location loc, Value tile, Value scalar) {
  auto type = cast<RankedTensorType>(tile.getType());
  Value by = SplatOp::create(builder, loc, type.clone(scalar.getType()), scalar);
  if (isa<PointerType>(type.getElementType()))
    return AddPtrOp::create(builder, loc, tile, by);
  return arith::AddIOp::create(builder, loc, tile, by);
}

Value makeZero(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, 0));
}

} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

std::optional<Induction> RewriteInductionsPass::findInduction(Value carried, Value next,
                                                              unsigned number, unsigned handedOn) {
  auto type = dyn_cast<RankedTensorType>(carried.getType());
  if (!type || !isa<PointerType, IntegerType>(type.getElementType()) || next == carried ||
      !isMoved(next, carried))
    return std::nullopt;
  LDBG() << "carried tile #" << number << " becomes a scalar: " << type;
  return Induction{number, handedOn,
                   isa<PointerType>(type.getElementType()) ? IntegerType::get(&getContext(), 64)
                                                           : type.getElementType()};
}

/// The number of which `value` is `amount` less; null if it is not written so.
static Value findMore(Value value, Value amount) {
  APInt constant, added;
  if (auto sub = value.getDefiningOp<arith::SubIOp>())
    return areEqual(sub.getRhs(), amount) ? sub.getLhs() : Value();
  auto add = value.getDefiningOp<arith::AddIOp>();
  bool isLess = add && matchPattern(amount, m_ConstantInt(&constant)) &&
                matchPattern(add.getRhs(), m_ConstantInt(&added)) && added == -constant;
  return isLess ? add.getLhs() : Value();
}

/// The amount that an iteration adds to a carried value; null if it does something else.
static Value getAmount(Value carried, arith::AddIOp next) {
  if (!next)
    return Value();
  return next.getLhs() == carried   ? next.getRhs()
         : next.getRhs() == carried ? next.getLhs()
                                    : Value();
}

/// A carried value that is always one step behind the loop's variable is the variable minus the
/// step. Kernels that loop over tiles count the tile that they store so.
void RewriteInductionsPass::rewriteFollowers(scf::ForOp loop) {
  OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
  for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    auto next = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
    Value amount = getAmount(carried, next);
    if (!amount || carried.getType() != loop.getInductionVar().getType() ||
        !loop.getResult(number).use_empty() || !areEqual(amount, loop.getStep()) ||
        findMore(loop.getInitArgs()[number], loop.getStep()) != loop.getLowerBound())
      continue;
    Value behind = arith::SubIOp::create(builder, next.getLoc(), loop.getInductionVar(), amount);
    carried.replaceAllUsesWith(behind);
    loop.getBody()->getTerminator()->setOperand(number, carried);
  }
}

/// A number that each iteration increases before its use, from one that is as much less: what is
/// used is carried. If that is the place of a program, it is known not to be negative.
void RewriteInductionsPass::rewriteAdvanced(scf::ForOp loop) {
  for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    auto next = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
    Value amount = getAmount(carried, next);
    if (!amount || !carried.hasOneUse() || !carried.getType().isInteger() ||
        !loop.getResult(number).use_empty() || !loop.isDefinedOutsideOfLoop(amount))
      continue;
    if (Value first = findMore(loop.getInitArgs()[number], amount)) {
      loop.getInitArgsMutable()[number].set(first);
      next.getResult().replaceAllUsesExcept(carried, loop.getBody()->getTerminator());
    }
  }
}

namespace {

/// Two expressions that are the same but for the loop's variable: one has its first value, and the
/// other one that of the next iteration.
class SameExpression {
public:
  explicit SameExpression(scf::ForOp loop) : loop(loop) {}

  /// Compares a value from outside of the loop with one that the loop computes.
  bool matches(Value first, Value next, unsigned depth = 0);
  /// The same expression of the variable itself.
  Value emit(Value next, IRMapping &mapping, OpBuilder &builder);

private:
  bool isNextVariable(Value value);

  scf::ForOp loop;
  llvm::DenseMap<Value, Value> known; ///< by what the loop computes
};

} // namespace

bool SameExpression::isNextVariable(Value value) {
  auto add = value.getDefiningOp<arith::AddIOp>();
  if (!add)
    return false;
  Value variable = loop.getInductionVar();
  return (add.getLhs() == variable && areEqual(add.getRhs(), loop.getStep())) ||
         (add.getRhs() == variable && areEqual(add.getLhs(), loop.getStep()));
}

bool SameExpression::matches(Value first, Value next, unsigned depth) {
  constexpr unsigned kMaxDepth = 64;
  if (first == next)
    return loop.isDefinedOutsideOfLoop(next);
  if (first == loop.getLowerBound() && isNextVariable(next))
    return true;
  if (auto it = known.find(next); it != known.end())
    return it->second == first;
  Operation *before = first.getDefiningOp(), *inside = next.getDefiningOp();
  if (!before || !inside || depth == kMaxDepth || first.getType() != next.getType() ||
      before->getName() != inside->getName() || before->getNumRegions() != 0 ||
      before->getNumOperands() != inside->getNumOperands() || !isPure(inside) ||
      before->getAttrDictionary() != inside->getAttrDictionary() ||
      before->getPropertiesAsAttribute() != inside->getPropertiesAsAttribute() ||
      cast<OpResult>(first).getResultNumber() != cast<OpResult>(next).getResultNumber())
    return false;
  for (auto [left, right] : llvm::zip_equal(before->getOperands(), inside->getOperands()))
    if (!matches(left, right, depth + 1))
      return false;
  known[next] = first;
  return true;
}

Value SameExpression::emit(Value next, IRMapping &mapping, OpBuilder &builder) {
  if (loop.isDefinedOutsideOfLoop(next))
    return next;
  if (Value made = mapping.lookupOrNull(next))
    return made;
  if (isNextVariable(next))
    return loop.getInductionVar();
  Operation *op = next.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, emit(operand, mapping, builder));
  builder.clone(*op, mapping);
  return mapping.lookup(next);
}

/// Values that are used behind the loop stay, since those are of one iteration more.
void RewriteInductionsPass::rewriteRecomputed(scf::ForOp loop) {
  SameExpression same(loop);
  IRMapping mapping;
  OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value next = yield->getOperand(number);
    // Places cost little; what is computed with loaded elements may cost more than to carry it.
    bool isPlace = isa<IntegerType, PointerType>(getElementTypeOrSelf(carried.getType()));
    if (!isPlace || !loop.getResult(number).use_empty() || loop.isDefinedOutsideOfLoop(next) ||
        !same.matches(loop.getInitArgs()[number], next))
      continue;
    LDBG() << "carried value #" << number << " is computed anew: " << carried.getType();
    carried.replaceAllUsesWith(same.emit(next, mapping, builder));
    yield->setOperand(number, carried);
  }
}

void RewriteInductionsPass::rewriteFor(scf::ForOp loop) {
  SmallVector<Induction> inductions;
  for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs()))
    if (auto induction = findInduction(carried, loop.getYieldedValues()[number], number, number))
      inductions.push_back(*induction);
  if (inductions.empty())
    return;

  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> starts;
  for (const Induction &induction : inductions)
    starts.push_back(makeZero(rewriter, loc, induction.scalarType));
  unsigned first = loop.getNumRegionIterArgs();
  auto rewritten = cast<scf::ForOp>(
      *loop.replaceWithAdditionalYields(rewriter, starts, /*replaceInitOperandUsesInLoop=*/false,
                                        [](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
                                          return SmallVector<Value>(carried.begin(), carried.end());
                                        })
           ->getOperation());
  Operation *yield = rewritten.getBody()->getTerminator();
  for (auto [index, induction] : llvm::enumerate(inductions)) {
    Value init = rewritten.getInitArgs()[induction.number];
    BlockArgument carried = rewritten.getRegionIterArg(induction.number);
    BlockArgument moved = rewritten.getRegionIterArg(first + index);
    yield->setOperand(first + index,
                      getDistance(yield->getOperand(induction.number), carried, moved));
    // The carried tile stays as it was initially, and canonicalization takes it away.
    rewriter.setInsertionPointToStart(rewritten.getBody());
    carried.replaceAllUsesWith(moveBy(rewriter, loc, init, moved));
    yield->setOperand(induction.number, carried);
    rewriter.setInsertionPointAfter(rewritten);
    OpResult result = rewritten->getResult(induction.number);
    if (!result.use_empty())
      result.replaceAllUsesWith(moveBy(rewriter, loc, init, rewritten->getResult(first + index)));
  }
}

void RewriteInductionsPass::rewriteWhile(scf::WhileOp loop) {
  SmallVector<Induction> inductions;
  for (auto [number, carried] : llvm::enumerate(loop.getBeforeArguments())) {
    auto handedOn = llvm::find(loop.getConditionOp().getArgs(), carried);
    if (handedOn == loop.getConditionOp().getArgs().end())
      continue;
    unsigned place = std::distance(loop.getConditionOp().getArgs().begin(), handedOn);
    if (auto induction = findInduction(loop.getAfterArguments()[place],
                                       loop.getYieldOp().getOperand(number), number, place))
      inductions.push_back(*induction);
  }
  if (inductions.empty())
    return;

  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> inits(loop.getInits());
  SmallVector<Type> types(loop.getResultTypes());
  for (const Induction &induction : inductions) {
    inits.push_back(makeZero(builder, loc, induction.scalarType));
    types.push_back(induction.scalarType);
  }
  auto rewritten = scf::WhileOp::create(builder, loc, types, inits);
  rewritten->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rewritten.getBefore().takeBody(loop.getBefore());
  rewritten.getAfter().takeBody(loop.getAfter());
  scf::ConditionOp condition = rewritten.getConditionOp();
  scf::YieldOp yield = rewritten.getYieldOp();
  unsigned firstResult = loop.getNumResults();
  loop.replaceAllUsesWith(rewritten.getResults().take_front(firstResult));
  loop.erase();
  for (auto [index, induction] : llvm::enumerate(inductions)) {
    Value init = rewritten.getInits()[induction.number];
    BlockArgument tested = rewritten.getBeforeArguments()[induction.number];
    BlockArgument carried = rewritten.getAfterArguments()[induction.handedOn];
    Value movedBefore = rewritten.getBeforeBody()->addArgument(induction.scalarType, loc);
    Value moved = rewritten.getAfterBody()->addArgument(induction.scalarType, loc);
    condition.getArgsMutable().append(movedBefore);
    yield.getResultsMutable().append(
        getDistance(yield.getOperand(induction.number), carried, moved));
    // As in a `for`: what is carried is the initial tile, until it is taken away.
    condition.getArgsMutable()[induction.handedOn].set(init);
    yield->setOperand(induction.number, init);
    if (!tested.use_empty()) {
      builder.setInsertionPointToStart(rewritten.getBeforeBody());
      tested.replaceAllUsesWith(moveBy(builder, loc, init, movedBefore));
    }
    builder.setInsertionPointToStart(rewritten.getAfterBody());
    carried.replaceAllUsesWith(moveBy(builder, loc, init, moved));
    builder.setInsertionPointAfter(rewritten);
    OpResult result = rewritten->getResult(induction.handedOn);
    if (!result.use_empty())
      result.replaceAllUsesWith(
          moveBy(builder, loc, init, rewritten->getResult(firstResult + index)));
  }
}

void RewriteInductionsPass::runOnOperation() {
  // Inner loops first: the sum of an inner loop is the step of an iteration of the outer one.
  SmallVector<Operation *> loops;
  getOperation()->walk([&](Operation *op) {
    if (isa<scf::ForOp, scf::WhileOp>(op))
      loops.push_back(op);
  });
  for (Operation *loop : loops) {
    if (auto forOp = dyn_cast<scf::ForOp>(loop)) {
      rewriteFollowers(forOp);
      rewriteAdvanced(forOp);
      rewriteRecomputed(forOp);
      rewriteFor(forOp);
    } else {
      rewriteWhile(cast<scf::WhileOp>(loop));
    }
  }
}

#undef DEBUG_TYPE
