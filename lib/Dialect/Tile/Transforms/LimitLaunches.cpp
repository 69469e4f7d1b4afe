// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which limits of launches a kernel relies on: those without which an index might wrap, and
// code for indices that do not is faster.

#include "tessera/Analysis/IntegerRanges.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILELIMITLAUNCHESPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

struct LimitLaunchesPass
    : public tessera::tile::impl::TileLimitLaunchesPassBase<LimitLaunchesPass> {
  using TileLimitLaunchesPassBase::TileLimitLaunchesPassBase;

  void runOnOperation() final;

private:
  void visit(FuncOp func, Operation *op);
  bool makeNonNegative(FuncOp func, Value index);
  void relyOn(FuncOp kernel, const LaunchLimits &taken);
  void recordForLauncher();

  /// By the limits that the kernels have so far.
  IntegerRanges ranges;
};

/// Whether an index is wide enough not to wrap in most programs.
bool isIndex(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  return type.isInteger(32) || type.isInteger(64);
}

} // namespace

void LimitLaunchesPass::relyOn(FuncOp kernel, const LaunchLimits &taken) {
  Builder builder(&getContext());
  for (auto [number, interval] : taken.ofArgument) {
    int64_t least = interval.least, most = interval.most;
    if (auto known = kernel.getArgAttrOfType<DenseI64ArrayAttr>(number, kLimitedArgumentAttr)) {
      least = std::max(least, known[0]);
      most = std::min(most, known[1]);
    }
    kernel.setArgAttr(number, kLimitedArgumentAttr, builder.getDenseI64ArrayAttr({least, most}));
  }
  if (int64_t most = taken.mostPrograms) {
    if (auto known = kernel->getAttrOfType<IntegerAttr>(kLimitedProgramsAttr))
      most = std::min(most, known.getInt());
    kernel->setAttr(kLimitedProgramsAttr, builder.getI64IntegerAttr(most));
  }
}

/// Whether an index is not negative, if need be by limits that the kernel relies on from here on.
bool LimitLaunchesPass::makeNonNegative(FuncOp func, Value index) {
  if (ranges.isNonNegative(index))
    return true;
  if (!limits || !func.isKernel())
    return false;
  for (LaunchLimits::Level level : LaunchLimits::kLevels) {
    LaunchLimits taken = findLimits(index, level);
    if (!IntegerRanges(taken).isNonNegative(index))
      continue;
    relyOn(func, taken);
    ranges = IntegerRanges();
    return true;
  }
  return false;
}

void LimitLaunchesPass::visit(FuncOp func, Operation *op) {
  if (auto bound = dyn_cast<arith::CmpIOp>(op); bound && bound->hasAttr(kLowerBoundAttr)) {
    bound->removeAttr(kLowerBoundAttr);
    if (!makeNonNegative(func, bound.getLhs()))
      return;
    // Of a block whose extent is 1 the comparison may be one of scalars.
    OpBuilder builder(bound);
    TypedAttr holds = builder.getOneAttr(bound.getType());
    bound.replaceAllUsesWith(arith::ConstantOp::create(builder, bound.getLoc(), holds).getResult());
    return;
  }
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return;
  if (auto quotient = dyn_cast<DivIntOp>(op)) {
    if (isIndex(quotient.getLhs()) && quotient.getSignedness() == Signedness::Signed)
      makeNonNegative(func, quotient.getLhs());
  } else if (auto remainder = dyn_cast<RemIntOp>(op)) {
    if (isIndex(remainder.getLhs()) && remainder.getSignedness() == Signedness::Signed)
      makeNonNegative(func, remainder.getLhs());
  } else if (auto extension = dyn_cast<arith::ExtUIOp>(op)) {
    if (isIndex(extension.getIn()))
      makeNonNegative(func, extension.getIn());
  }
}

void LimitLaunchesPass::recordForLauncher() {
  Builder builder(&getContext());
  for (FuncOp kernel : getOperation().getOps<FuncOp>()) {
    if (!kernel.isKernel())
      continue;
    if (Attribute programs = kernel->getAttr(kLimitedProgramsAttr))
      getOperation()->setAttr(kLimitedProgramsAttr, programs);
    SmallVector<Attribute> arguments;
    for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
      if (auto limit = kernel.getArgAttrOfType<DenseI64ArrayAttr>(number, kLimitedArgumentAttr))
        arguments.push_back(builder.getDenseI64ArrayAttr({number, limit[0], limit[1]}));
    if (!arguments.empty())
      getOperation()->setAttr(kLaunchLimitsAttr, builder.getArrayAttr(arguments));
  }
}

void LimitLaunchesPass::runOnOperation() {
  ranges = IntegerRanges();
  for (FuncOp func : getOperation().getOps<FuncOp>())
    func.walk([&](Operation *op) { visit(func, op); });
  recordForLauncher();
}
