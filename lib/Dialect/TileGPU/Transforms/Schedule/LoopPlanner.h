// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first two steps of the planner for one loop (SchedulePlanner.h): the copies that a transport
// makes of its loads, with their channels, and the order of its dots.
//
//     two dots, of which one needs the other   by TMA: the second one is late
//                                              by threads: the first one is an iteration ahead
//     three dots or more                       DotOrder.h
//     one dot that the loop carries            in flight while the next iteration begins
//     numbers that the results are scaled by   loaded an iteration ahead (LoadsAhead.h)
//
// Threads that copy have addresses in the registers that a late accumulator would take.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPPLANNER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPPLANNER_H

#include "SchedulePlan.h"

namespace tessera::tilegpu {

class LoopPlanner {
public:
  LoopPlanner(SchedulePlan &plan, MemoryOrder &order, AccessAnalysis &analysis, PlanKind kind)
      : plan(plan), order(order), analysis(analysis), kind(kind) {}

  /// Adds a loop to the plan. False if it has no copies, or none are legal; then a remark gives the
  /// reason.
  bool add(mlir::scf::ForOp loop);

private:
  bool planStages(PlannedLoop &planned) const;
  bool planCopies(PlannedLoop &planned);
  bool planMessages(PlannedLoop &planned);
  void planChannels(PlannedLoop &planned);
  void joinChannels(PlannedLoop &planned);
  void planDots(PlannedLoop &planned);
  bool planLoadsAhead(PlannedLoop &planned);
  void planTilesAhead(PlannedLoop &planned);
  void planDotAhead(PlannedLoop &planned);
  void planLateDot(PlannedLoop &planned);

  SchedulePlan &plan;
  MemoryOrder &order;
  AccessAnalysis &analysis;
  PlanKind kind;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPPLANNER_H
