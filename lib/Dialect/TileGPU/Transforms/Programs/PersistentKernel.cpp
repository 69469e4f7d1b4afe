// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PersistentKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Analysis/Boxes/ProgramTrend.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr unsigned kGridAxes = 3;

bool tessera::tilegpu::dependsOnProgram(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Value, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op)
      continue;
    if (isa<tile::ProgramIdOp, tile::LoadOp>(op) || op->getNumRegions() != 0)
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

/// True if how long a loop lasts may depend on what it reads, and so on another program.
static bool mayWait(scf::WhileOp loop) {
  SmallVector<Value> work{loop.getConditionOp().getCondition()};
  llvm::SmallDenseSet<Value, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      unsigned number = argument.getArgNumber();
      if (argument.getOwner() == loop.getBeforeBody())
        work.push_back(loop.getYieldOp().getOperand(number));
      else if (argument.getOwner() == loop.getAfterBody())
        work.push_back(loop.getConditionOp().getArgs()[number]);
      else if (loop->isAncestor(argument.getOwner()->getParentOp()))
        return true; // Loops within that the condition depends on.
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!loop->isProperAncestor(op))
      continue;
    if (!isPure(op) || op->getNumRegions() != 0)
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

bool tessera::tilegpu::mayReorderPrograms(tile::FuncOp kernel) {
  if (mayMeetOtherPrograms(kernel) || maySeeMachine(kernel))
    return false;
  WalkResult result = kernel.walk([](Operation *op) {
    auto loop = dyn_cast<scf::WhileOp>(op);
    // Called functions and prints read the id of the program themselves.
    return isa<tile::CallOp, tile::PrintOp>(op) || (loop && mayWait(loop)) ? WalkResult::interrupt()
                                                                           : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

bool PersistentKernel::isPossible(tile::FuncOp kernel) {
  // Blocks of a cluster meet in each program, where a producer would not come.
  if (getNumBlocks(kernel) > 1 || !mayReorderPrograms(kernel))
    return false;
  WalkResult result = kernel.walk([](scf::WhileOp) { return WalkResult::interrupt(); });
  return !result.wasInterrupted();
}

/// How the number of a loop's iterations follows from the program's number along axis 0, if no
/// other one makes a difference.
static ProgramTrend getTrendAlongRows(scf::ForOp loop) {
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  auto getTrend = [&](unsigned axis) { return getProgramTrendOfDifference(upper, lower, axis); };
  if (dependsOnProgram(loop.getStep()))
    return ProgramTrend::Unknown;
  if (!dependsOnProgram(lower) && !dependsOnProgram(upper))
    return ProgramTrend::Same;
  bool isOfRows = getTrend(1) == ProgramTrend::Same && getTrend(2) == ProgramTrend::Same;
  return isOfRows ? getTrend(0) : ProgramTrend::Unknown;
}

/// True if a program may leave out a loop, as one that returns early does.
static bool mayLeaveOut(scf::IfOp branch) {
  return dependsOnProgram(branch.getCondition()) &&
         branch.walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

std::optional<ProgramOrder> PersistentKernel::findOrder(tile::FuncOp kernel) {
  WalkResult branches = kernel.walk([](scf::IfOp branch) {
    return mayLeaveOut(branch) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (branches.wasInterrupted())
    return std::nullopt;
  ProgramOrder order = ProgramOrder::Grid;
  WalkResult result = kernel.walk([&](scf::ForOp loop) {
    ProgramTrend trend = getTrendAlongRows(loop);
    if (trend == ProgramTrend::Same)
      return WalkResult::advance();
    if (trend != ProgramTrend::Grows)
      return WalkResult::interrupt();
    order = ProgramOrder::Balanced;
    return WalkResult::advance();
  });
  return result.wasInterrupted() ? std::nullopt : std::optional(order);
}

PersistentKernel::PersistentKernel(tile::FuncOp kernel, ProgramOrder order, unsigned group)
    : kernel(kernel), order(order), group(group) {
  kernel.walk([&](tile::ProgramIdOp op) { ids.push_back(op); });
  kernel.walk([&](tile::NumProgramsOp op) { counts.push_back(op); });
  // Tensor maps come last.
  unsigned at = 0;
  while (at < kernel.getNumArguments() && !isa<TensorMapType>(kernel.getArgument(at).getType()))
    ++at;
  Builder builder(kernel.getContext());
  auto isExtent = DictionaryAttr::get(
      builder.getContext(), builder.getNamedAttr(tile::kGridExtentAttr, builder.getUnitAttr()));
  for (unsigned axis = 0; axis < kGridAxes; ++axis) {
    (void)kernel.insertArgument(at + axis, builder.getI32Type(), isExtent, kernel.getLoc());
    extents.push_back(kernel.getArgument(at + axis));
  }
  kernel->setAttr(kPersistentProgramsAttr, builder.getI32IntegerAttr(1));
  // The assignment of programs to blocks is decided here, so earlier orders are dropped.
  kernel->removeAttr(kReversedAxesAttr);
  kernel->removeAttr(kGroupedRowsAttr);
}

void PersistentKernel::emitBounds(OpBuilder &builder) {
  Location loc = kernel.getLoc();
  first = tile::ProgramIdOp::create(builder, loc, builder.getI32Type(), 0);
  step = tile::NumProgramsOp::create(builder, loc, builder.getI32Type(), 0);
  count = extents[0];
  for (unsigned axis = 1; axis < kGridAxes; ++axis)
    count = arith::MulIOp::create(builder, loc, count, extents[axis]);
  if (order == ProgramOrder::Balanced)
    deal.emplace(builder, loc, count, /*width=*/extents[0], /*blocks=*/step);
}

scf::ForOp PersistentKernel::emitLoop(OpBuilder &builder, ValueRange inits) const {
  auto loop = scf::ForOp::create(builder, tile::FuncOp(kernel).getLoc(), first, count, step, inits);
  loop->setAttr(kOverProgramsAttr, builder.getUnitAttr());
  if (!loop.getBody()->empty())
    loop.getBody()->back().erase();
  return loop;
}

/// Which program of the grid comes in this iteration, if there are no groups.
Value PersistentKernel::emitNumber(OpBuilder &builder, scf::ForOp loop) const {
  Value number = loop.getInductionVar();
  if (order == ProgramOrder::Grid)
    return number;
  Location loc = loop.getLoc();
  Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
  Value last = arith::SubIOp::create(builder, loc, count, one);
  return arith::SubIOp::create(builder, loc, last, number);
}

/// A group has `group` programs along axis 0, or the remaining ones there, and all along axis 1.
SmallVector<Value, 3> PersistentKernel::emitGroupedIds(OpBuilder &builder, Value number) const {
  Location loc = kernel.getLoc();
  Value most = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(group));
  Value inPlane = arith::MulIOp::create(builder, loc, extents[0], extents[1]);
  Value plane = arith::DivUIOp::create(builder, loc, number, inPlane);
  Value rest = arith::RemUIOp::create(builder, loc, number, inPlane);
  Value inGroup = arith::MulIOp::create(builder, loc, most, extents[1]);
  Value before = arith::DivUIOp::create(builder, loc, rest, inGroup);
  Value first = arith::MulIOp::create(builder, loc, before, most);
  Value left = arith::SubIOp::create(builder, loc, extents[0], first);
  Value width = arith::MinUIOp::create(builder, loc, left, most);
  Value inside = arith::RemUIOp::create(builder, loc, rest, inGroup);
  Value along = arith::RemUIOp::create(builder, loc, inside, width);
  return {arith::AddIOp::create(builder, loc, first, along),
          arith::DivUIOp::create(builder, loc, inside, width), plane};
}

void PersistentKernel::mapIds(OpBuilder &builder, scf::ForOp loop, IRMapping &mapping) const {
  Location loc = loop.getLoc();
  SmallVector<Value, 3> places(kGridAxes);
  Value rest;
  unsigned axis = 0;
  if (deal) {
    PlaceInGrid place = emitBalancedPlace(builder, loc, *deal, loop.getInductionVar());
    places[axis++] = place.inRow;
    rest = place.row;
  } else {
    rest = emitNumber(builder, loop);
  }
  if (group != 0) {
    places = emitGroupedIds(builder, rest);
    axis = kGridAxes;
  }
  // Two axes are rarely in use.
  for (; axis < kGridAxes; ++axis) {
    bool isUsed = llvm::any_of(ids, [&](tile::ProgramIdOp op) { return op.getAxis() >= axis; });
    if (!isUsed)
      break;
    places[axis] = arith::RemUIOp::create(builder, loc, rest, extents[axis]);
    rest = arith::DivUIOp::create(builder, loc, rest, extents[axis]);
  }
  for (tile::ProgramIdOp op : ids)
    mapping.map(op.getResult(), places[op.getAxis()]);
  for (tile::NumProgramsOp op : counts)
    mapping.map(op.getResult(), extents[op.getAxis()]);
}

void PersistentKernel::replaceIds(const IRMapping &mapping) const {
  auto replace = [&](Operation *op) {
    op->getResult(0).replaceAllUsesWith(mapping.lookup(op->getResult(0)));
    op->erase();
  };
  llvm::for_each(ids, replace);
  llvm::for_each(counts, replace);
}
