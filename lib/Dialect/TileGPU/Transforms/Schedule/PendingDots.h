// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The asynchronous dots that are in flight where one of them is waited for.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PENDINGDOTS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PENDINGDOTS_H

#include "LoopSchedule.h"

namespace tessera::tilegpu {

class PendingDots {
public:
  explicit PendingDots(const LoopSchedule &schedule);

  void beginIteration() { begun.clear(); }
  /// A dot begins in this iteration.
  void begin(mlir::Operation *dot) { begun.push_back(dot); }
  /// How many dots that were begun later may still be under way when one has to be done.
  unsigned count(mlir::Operation *dot) const;
  /// True if a dot is in flight over the end of an iteration.
  bool areAcrossIterations() const;

private:
  const LoopSchedule &schedule;
  mlir::SmallVector<mlir::Operation *> begun;
  /// The dots of each iteration that can be the one before, in the order in which they begin. The
  /// first is that of the steady state.
  mlir::SmallVector<mlir::SmallVector<mlir::Operation *>> before;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PENDINGDOTS_H
