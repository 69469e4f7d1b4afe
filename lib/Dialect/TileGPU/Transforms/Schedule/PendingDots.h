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

  void beginIteration();
  /// A dot begins in this iteration.
  void begin(mlir::Operation *dot);
  /// Waits for a dot. Returns how many dots may still be under way then: those that were begun
  /// later, unless an earlier wait has waited for some of them.
  unsigned wait(mlir::Operation *dot);
  /// True if a dot is in flight over the end of an iteration.
  bool areAcrossIterations() const;

private:
  unsigned countBegunAfter(mlir::Operation *dot) const;

  const LoopSchedule &schedule;
  mlir::SmallVector<mlir::Operation *> begun;
  /// The dots that may be under way here, if this iteration has waited for one.
  std::optional<unsigned> pending;
  /// The dots of each iteration that can be the one before, in the order in which they begin. The
  /// first is that of the steady state.
  mlir::SmallVector<mlir::SmallVector<mlir::Operation *>> before;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PENDINGDOTS_H
