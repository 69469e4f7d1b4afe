// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CarriedValues.h"

#include "Facts/LoopSlice.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// The stage in which a variable of the loop gets its next value.
int CarriedValues::getYieldedStage(unsigned index) const {
  Value value = scf::ForOp(loop).getYieldedValues()[index];
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == scf::ForOp(loop).getBody() ? schedule.getStage(value) : 0;
}

/// A value is carried by each iteration between the stage that has it and the one that uses it.
void CarriedValues::addCrossing(Value value, int from, int to) {
  for (int stage = from; stage < to; ++stage)
    if (std::pair<Value, int> carried(value, stage); !llvm::is_contained(crossing, carried))
      crossing.push_back(carried);
}

/// The accumulator of the dot that makes a variable is carried where its result was, if it is
/// computed one stage before.
void CarriedValues::planInPlace(llvm::function_ref<bool(Value, int)> isUsedFrom) {
  inPlace.resize(kept.size());
  for (auto [place, index] : llvm::enumerate(kept)) {
    int stage = getYieldedStage(index);
    if (stage <= 0 || isUsedFrom(loop.getRegionIterArg(index), stage))
      continue;
    auto dot = loop.getYieldedValues()[index].getDefiningOp<AsyncDotOp>();
    Operation *acc = dot ? dot.getAcc().getDefiningOp() : nullptr;
    if (acc && acc->getBlock() == loop.getBody() && schedule.getStage(dot.getAcc()) == stage - 1 &&
        !llvm::is_contained(inPlace, dot.getAcc()))
      inPlace[place] = dot.getAcc();
  }
}

CarriedValues::CarriedValues(const LoopSchedule &schedule)
    : schedule(schedule), loop(schedule.getLoop()) {
  kept = getLiveCarried(loop, schedule.getReplaced());
  for (unsigned index : kept)
    values.push_back(loop.getInitArgs()[index]);
  // The values of the body that the ops of each stage use.
  struct Use {
    int stage;
    Value value;
  };
  SmallVector<Use> uses;
  for (const ScheduleEvent &event : schedule.getEvents()) {
    if (event.kind != ScheduleEvent::Op || schedule.getReplaced().contains(event.op))
      continue;
    int stage = schedule.getOp(event.op).stage;
    event.op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentRegion() == &loop.getRegion() && operand != loop.getInductionVar() &&
            !(isa<MemDescType>(operand.getType()) && schedule.getCopy(operand)))
          uses.push_back({stage, operand});
    });
  }
  planInPlace([&](Value value, int stage) {
    return llvm::any_of(uses,
                        [&](const Use &use) { return use.value == value && use.stage >= stage; });
  });
  for (int stage = schedule.getLastStage(); stage >= schedule.getFirstStage(); --stage)
    for (auto [of, value] : uses) {
      if (of != stage)
        continue;
      auto argument = dyn_cast<BlockArgument>(value);
      int made = argument ? getYieldedStage(argument.getArgNumber() - 1) : schedule.getStage(value);
      // The stage after has it already.
      if (!argument && llvm::is_contained(inPlace, value))
        ++made;
      addCrossing(value, made, stage);
    }
  crossed.resize(crossing.size());
}

void CarriedValues::beginIteration(const LoopIteration &iteration, StageMappings &mappings) const {
  scf::ForOp of = loop;
  for (auto [index, value, other] : llvm::zip_equal(kept, values, inPlace)) {
    Value argument = of.getRegionIterArg(index);
    int stage = getYieldedStage(index);
    if (iteration.has(stage))
      mappings[stage].map(other ? other : argument, value);
    else if (iteration.drained == 0 && iteration.last == stage - 1)
      // The initial value.
      mappings[stage - 1].map(argument, value);
  }
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (value)
      mappings[from.second + 1].map(from.first, value);
}

void CarriedValues::endIteration(const LoopIteration &iteration, StageMappings &mappings) {
  for (auto [index, value, other] : llvm::zip_equal(kept, values, inPlace)) {
    int stage = getYieldedStage(index);
    Value yielded = loop.getYieldedValues()[index];
    if (other && iteration.has(stage - 1))
      value = mappings[stage - 1].lookup(other);
    else if (stage <= 0 && iteration.has(stage))
      value = mappings[0].lookupOrDefault(yielded);
    else if (iteration.has(stage))
      value = mappings[stage].lookup(yielded);
  }
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (iteration.has(from.second))
      value = mappings[from.second].lookup(from.first);
}

void CarriedValues::beginEarly(int last, StageMappings &mappings) const {
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (value && from.second < last)
      mappings[from.second + 1].map(from.first, value);
}

void CarriedValues::endEarly(int last, StageMappings &mappings) {
  for (auto [from, value] : llvm::zip_equal(crossing, crossed))
    if (from.second <= last)
      value = mappings[from.second].lookup(from.first);
}

void CarriedValues::map(Operation *op, StageMappings &mappings) const {
  scf::ForOp of = loop;
  int stage = schedule.getOp(op).stage;
  if (stage <= 0)
    return;
  for (auto [index, value] : llvm::enumerate(of.getYieldedValues()))
    if (value.getDefiningOp() == op)
      mappings[stage - 1].map(of.getRegionIterArg(index), mappings[stage].lookup(value));
}
