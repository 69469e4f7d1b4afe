// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which limits of launches a kernel relies on: those without which an index might wrap, and
// code for indices that do not is faster.

#include "tessera/Analysis/Access/IntegerRanges.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

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
  bool boundBy(FuncOp kernel, Value index, ArrayRef<std::string> bounds, bool needsLimits);
  void boundCarriedTiles(FuncOp kernel);
  void recordForLauncher();

  /// By the limits that the kernels have so far.
  IntegerRanges ranges;
};

/// True if an index is wide enough not to wrap in most programs.
bool isIndex(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  return type.isInteger(32) || type.isInteger(64);
}

/// The values that an index is computed from, with itself.
llvm::SetVector<Value> findSources(Value index) {
  llvm::SetVector<Value> sources;
  sources.insert(index);
  for (size_t next = 0; next < sources.size(); ++next) {
    Operation *op = sources[next].getDefiningOp();
    if (!op || op->getNumRegions() != 0 || !isPure(op))
      continue;
    sources.insert(op->operand_begin(), op->operand_end());
  }
  return sources;
}

/// The texts of bounds by which the divisors of an index are positive. They are scalars and not
/// constants. Kernels that go over tiles in groups divide by the height of a group, of which no
/// limit of sizes says so.
SmallVector<std::string> writeDivisorBounds(ArrayRef<Value> sources) {
  SmallVector<std::string> bounds;
  auto add = [&](auto op) {
    APInt constant;
    if (op && op.getSignedness() == Signedness::Signed && op.getType().isIntOrIndex() &&
        !matchPattern(op.getRhs(), m_ConstantInt(&constant)))
      if (std::optional<std::string> text = writeDivisorBound(op.getRhs()))
        bounds.push_back(*text);
  };
  for (Value source : sources) {
    add(source.getDefiningOp<DivIntOp>());
    add(source.getDefiningOp<RemIntOp>());
  }
  return bounds;
}

/// The texts of bounds by which the loops end early whose variables an index is computed from. A
/// loop may go over a product of sizes, whose limits do not limit the product.
SmallVector<std::string> writeEndBounds(ArrayRef<Value> sources) {
  SmallVector<std::string> bounds;
  for (Value source : sources) {
    auto variable = dyn_cast<BlockArgument>(source);
    auto loop = variable ? dyn_cast<scf::ForOp>(variable.getOwner()->getParentOp()) : scf::ForOp();
    if (loop && variable == loop.getInductionVar())
      if (std::optional<std::string> text = writeEndBound(loop))
        bounds.push_back(*text);
  }
  return bounds;
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

/// True if an index is not negative, if need be by limits that the kernel relies on from here on.
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
  if (!programBounds)
    return false;
  llvm::SetVector<Value> sources = findSources(index);
  SmallVector<std::string> bounds = writeDivisorBounds(sources.getArrayRef());
  if (boundBy(func, index, bounds, /*needsLimits=*/true))
    return true;
  SmallVector<std::string> ends = writeEndBounds(sources.getArrayRef());
  llvm::append_range(bounds, ends);
  return !ends.empty() && boundBy(func, index, bounds, /*needsLimits=*/false);
}

/// The same with launch conditions, and with limits of sizes, if the conditions do not suffice or
/// always need them.
bool LimitLaunchesPass::boundBy(FuncOp func, Value index, ArrayRef<std::string> texts,
                                bool needsLimits) {
  Builder builder(&getContext());
  Attribute known = func->getAttr(kProgramBoundsAttr);
  SmallVector<Attribute> bounds;
  if (auto list = dyn_cast_or_null<ArrayAttr>(known))
    llvm::append_range(bounds, list);
  size_t before = bounds.size();
  for (const std::string &text : texts)
    if (StringAttr bound = builder.getStringAttr(text); !llvm::is_contained(bounds, bound))
      bounds.push_back(bound);
  if (bounds.size() == before)
    return false;
  func->setAttr(kProgramBoundsAttr, builder.getArrayAttr(bounds));
  ranges = IntegerRanges();
  if (!needsLimits && ranges.isNonNegative(index))
    return true;
  for (LaunchLimits::Level level : LaunchLimits::kLevels) {
    LaunchLimits taken = findLimits(index, level);
    if (!IntegerRanges(taken).isNonNegative(index))
      continue;
    relyOn(func, taken);
    ranges = IntegerRanges();
    return true;
  }
  if (known)
    func->setAttr(kProgramBoundsAttr, known);
  else
    func->removeAttr(kProgramBoundsAttr);
  ranges = IntegerRanges();
  return false;
}

/// Add launch conditions that tile numbers, which loops carry, do not wrap. So they are not
/// negative, whatever the sizes. Split flat loops have such numbers.
void LimitLaunchesPass::boundCarriedTiles(FuncOp kernel) {
  SmallVector<Attribute> bounds;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kProgramBoundsAttr))
    llvm::append_range(bounds, known);
  size_t before = bounds.size();
  kernel.walk([&](scf::ForOp loop) {
    for (BlockArgument carried : loop.getRegionIterArgs())
      if (std::optional<std::string> text = writeCarriedBound(carried))
        bounds.push_back(StringAttr::get(&getContext(), *text));
  });
  if (bounds.size() != before)
    kernel->setAttr(kProgramBoundsAttr, ArrayAttr::get(&getContext(), bounds));
}

void LimitLaunchesPass::visit(FuncOp func, Operation *op) {
  if (auto bound = dyn_cast<arith::CmpIOp>(op); bound && bound->hasAttr(kLowerBoundAttr)) {
    bound->removeAttr(kLowerBoundAttr);
    if (!makeNonNegative(func, bound.getLhs()))
      return;
    // For a block of extent 1, the comparison may be one of scalars.
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
  for (FuncOp func : getOperation().getOps<FuncOp>())
    if (limits && programBounds && func.isKernel())
      boundCarriedTiles(func);
  ranges = IntegerRanges();
  for (FuncOp func : getOperation().getOps<FuncOp>())
    func.walk([&](Operation *op) { visit(func, op); });
  recordForLauncher();
}
