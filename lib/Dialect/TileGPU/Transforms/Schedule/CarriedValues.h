// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values that a scheduled loop carries from one iteration to the next: the old loop's own
// variables, and values that one stage computes and a later one uses.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CARRIEDVALUES_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CARRIEDVALUES_H

#include "LoopIteration.h"
#include "LoopSchedule.h"

namespace tessera::tilegpu {

class CarriedValues {
public:
  /// Decides which values are carried; the variables have their initial values.
  explicit CarriedValues(const LoopSchedule &schedule);

  /// Maps what comes from the iteration before.
  void beginIteration(const LoopIteration &iteration, StageMappings &mappings) const;
  /// Takes what the next iteration needs.
  void endIteration(const LoopIteration &iteration, StageMappings &mappings);
  /// The same for the ops before the loop, of stages up to `last`, which is negative.
  void beginEarly(int last, StageMappings &mappings) const;
  void endEarly(int last, StageMappings &mappings);
  /// Makes a variable that a late op computes available to earlier stages of this iteration.
  void map(mlir::Operation *op, StageMappings &mappings) const;

  /// The old loop's variables that are still needed, by their numbers, and what they are now.
  llvm::ArrayRef<unsigned> getKept() const { return kept; }
  llvm::ArrayRef<mlir::Value> getValues() const { return values; }
  void forEachValue(llvm::function_ref<void(mlir::Value &)> visit) {
    llvm::for_each(values, visit);
  }
  void forEachCrossing(llvm::function_ref<void(mlir::Value &)> visit) {
    llvm::for_each(crossed, visit);
  }

private:
  int getYieldedStage(unsigned index) const;
  void planInPlace(llvm::function_ref<bool(mlir::Value, int)> isUsedFrom);
  void addCrossing(mlir::Value value, int from, int to);

  const LoopSchedule &schedule;
  mlir::scf::ForOp loop;
  mlir::SmallVector<unsigned> kept;
  mlir::SmallVector<mlir::Value> values;
  /// For each of them, the value that the new loop carries in its place: null for itself, or an
  /// operand of the stage before that becomes it.
  mlir::SmallVector<mlir::Value> inPlace;
  /// Values of one stage that the next one has in the next iteration, and what they are now.
  mlir::SmallVector<std::pair<mlir::Value, int>> crossing;
  mlir::SmallVector<mlir::Value> crossed;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_CARRIEDVALUES_H
