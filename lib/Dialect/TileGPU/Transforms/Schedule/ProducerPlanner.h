// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of the planner for kernels whose tiles TMA copies (SchedulePlanner.h): a producer warp
// issues the copies, or the program's first thread does.
//
//     threads compute longer than tensor cores multiply    the first thread
//     more programs share an SM without producer warps,    the first thread
//         and iterations take no longer
//     a producer cannot receive a value that it needs      the first thread
//     ptxas spilled registers of a schedule with one       the first thread
//     otherwise                                            a producer warp

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPLANNER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPLANNER_H

#include "SchedulePlan.h"

namespace tessera::tilegpu {

class ProducerPlanner {
public:
  explicit ProducerPlanner(SchedulePlan &plan) : plan(plan) {}

  /// False if the first thread would have to copy and cannot; a remark gives the reason.
  bool run();

private:
  bool isBoundByDots() const;
  void planSharedPrograms();
  void planMessages();
  bool planOwnCopies();

  SchedulePlan &plan;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPLANNER_H
