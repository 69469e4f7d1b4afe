// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-split-loops: splits a loop that checks in each iteration whether its row is within bounds.
// The first part runs the rows within bounds without the check, the second the others.
//
// Masks along a dimension of strips are taken care of where its loop is written. Along others
// they are conditionals: rows of a matrix that is summed up over its columns, say. There a
// conditional for each row of four vectors costs a fourth of the speed (notes/Notebook.md).
//
//     for i in 0..16 { x = if first + i < n then load i else 0; ... }
//
//     end = number of rows from `first` to n, at most 16
//     for i in 0..end { x = load i; ... }      four an iteration
//     for i in end..16 { x = if first + i < n then load i else 0; ... }
//
// The second keeps the check: if `first + i` wraps around, rows after the bound are within it.
//
// Only loops that carry something are split, sums and the like: the next iteration waits for
// nothing else there.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSSPLITLOOPS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// One loop, which is split if all of its conditionals end at one iteration.
class LoopSplitter {
public:
  explicit LoopSplitter(scf::ForOp loop) : loop(loop), builder(loop), loc(loop.getLoc()) {}

  void run();

private:
  bool isInnermostOfConstantLength();
  bool findCondition();
  bool countsUp(Value value);
  Value buildFirst(Value value);
  Value buildEnd();

  scf::ForOp loop;
  OpBuilder builder;
  Location loc;
  int64_t length = 0;
  arith::CmpIOp condition;
  bool isSwapped = false; ///< the iteration's number is on the right
};

bool LoopSplitter::isInnermostOfConstantLength() {
  // Shorter loops are unrolled anyway, longer bodies have other things to wait for.
  constexpr int64_t kMinIterations = 4, kMaxOps = 96;
  auto begin = getConstantIntValue(loop.getLowerBound());
  auto end = getConstantIntValue(loop.getUpperBound());
  auto step = getConstantIntValue(loop.getStep());
  if (!begin || !end || !step || *begin != 0 || *step != 1 || *end < kMinIterations ||
      loop.getNumResults() == 0)
    return false;
  length = *end;
  int64_t ops = 0;
  WalkResult plain = loop.getBody()->walk([&](Operation *op) {
    bool isPlain = op->getNumRegions() == 0 || isa<scf::IfOp>(op);
    return isPlain && ++ops <= kMaxOps ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !plain.wasInterrupted();
}

/// True if a value is the iteration's number and what the loop does not change. Sums are of one
/// width: of one that wraps and is widened then, less than the bound would not mean no wrap.
bool LoopSplitter::countsUp(Value value) {
  if (value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getParentOp() != loop)
    return false;
  if (isa<arith::IndexCastOp>(op))
    return op->getOperand(0) == loop.getInductionVar();
  if (auto sum = dyn_cast<arith::AddIOp>(op)) {
    if (loop.isDefinedOutsideOfLoop(sum.getLhs()))
      return countsUp(sum.getRhs());
    return loop.isDefinedOutsideOfLoop(sum.getRhs()) && countsUp(sum.getLhs());
  }
  return false;
}

bool LoopSplitter::findCondition() {
  for (auto conditional : loop.getBody()->getOps<scf::IfOp>()) {
    auto compare = conditional.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || (condition && compare != condition))
      return false;
    condition = compare;
  }
  if (!condition || condition->getParentOp() != loop)
    return false;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = condition.getPredicate();
  isSwapped = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!isSwapped && predicate != Predicate::slt && predicate != Predicate::sle)
    return false;
  Value left = isSwapped ? condition.getRhs() : condition.getLhs();
  Value right = isSwapped ? condition.getLhs() : condition.getRhs();
  constexpr unsigned kMinBits = 32; // hold a loop's length
  bool isWide = right.getType().isIndex() || right.getType().getIntOrFloatBitWidth() >= kMinBits;
  return isWide && loop.isDefinedOutsideOfLoop(right) && countsUp(left);
}

/// The value of an induction in the first iteration, computed before the loop.
Value LoopSplitter::buildFirst(Value value) {
  if (value == loop.getInductionVar())
    return loop.getLowerBound();
  Operation *op = value.getDefiningOp();
  if (auto sum = dyn_cast<arith::AddIOp>(op)) {
    bool isLeft = loop.isDefinedOutsideOfLoop(sum.getLhs());
    Value other = isLeft ? sum.getLhs() : sum.getRhs();
    Value first = buildFirst(isLeft ? sum.getRhs() : sum.getLhs());
    return arith::AddIOp::create(builder, loc, other, first);
  }
  IRMapping mapping;
  mapping.map(op->getOperand(0), buildFirst(op->getOperand(0)));
  return builder.clone(*op, mapping)->getResult(0);
}

/// How many iterations the condition holds for, with nothing that could wrap.
Value LoopSplitter::buildEnd() {
  using Predicate = arith::CmpIPredicate;
  Value first = buildFirst(isSwapped ? condition.getRhs() : condition.getLhs());
  Value bound = isSwapped ? condition.getLhs() : condition.getRhs();
  Predicate predicate = condition.getPredicate();
  bool isInclusive = predicate == Predicate::sle || predicate == Predicate::sge;
  Value holds = isSwapped ? arith::CmpIOp::create(builder, loc, predicate, bound, first)
                          : arith::CmpIOp::create(builder, loc, predicate, first, bound);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(first.getType(), value));
  };
  Value iterations = arith::SubIOp::create(builder, loc, bound, first);
  iterations = arith::MinUIOp::create(builder, loc, iterations, constant(length - isInclusive));
  if (isInclusive)
    iterations = arith::AddIOp::create(builder, loc, iterations, constant(1));
  iterations = arith::SelectOp::create(builder, loc, holds, iterations, constant(0));
  Type type = loop.getUpperBound().getType();
  if (iterations.getType() == type)
    return iterations;
  if (isa<IndexType>(type) || isa<IndexType>(iterations.getType()))
    return arith::IndexCastOp::create(builder, loc, type, iterations);
  if (iterations.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(builder, loc, type, iterations);
  return arith::ExtUIOp::create(builder, loc, type, iterations);
}

void LoopSplitter::run() {
  constexpr uint64_t kIterations = 4;
  if (!isInnermostOfConstantLength() || !findCondition())
    return;
  Value end = buildEnd();
  auto within = cast<scf::ForOp>(builder.clone(*loop));
  within.setUpperBound(end);
  loop.setLowerBound(end);
  loop.getInitArgsMutable().assign(within.getResults());
  // Constant folding removes the conditionals.
  builder.setInsertionPointToStart(within.getBody());
  Value holds = arith::ConstantIntOp::create(builder, loc, true, 1);
  for (auto conditional : within.getBody()->getOps<scf::IfOp>())
    conditional.getConditionMutable().assign(holds);
  (void)loopUnrollByFactor(within, kIterations);
}

struct StripsSplitLoops : impl::StripsSplitLoopsBase<StripsSplitLoops> {
  using StripsSplitLoopsBase::StripsSplitLoopsBase;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      LoopSplitter(loop).run();
  }
};

} // namespace
} // namespace tessera
