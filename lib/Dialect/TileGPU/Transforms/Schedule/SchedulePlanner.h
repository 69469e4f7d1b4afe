// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The planner of schedules (tessera/Dialect/TileGPU/IR/Schedule.h). It runs once for each kind of
// transport (Transport.h): boxes by TMA, copies by all threads, and rows behind layouts. Its steps:
//
//     transport   LoopPlanner.h       each loop: which loads are copied, and by which channels
//     order       LoopPlanner.h       each loop: which dots are in flight, late or ahead
//     resources   ProducerPlanner.h   by TMA: a producer warp, or the program's first thread
//                 SlotPlanner.h       slots, programs that share an SM, persistence
//
// Loops whose tiles TMA copies are planned together, since a producer runs all of them. Other
// loops are planned one by one. ScheduleTrial.h has what happens if the verifier refuses a plan.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLANNER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLANNER_H

#include "SchedulePlan.h"

#include <memory>

namespace tessera::tilegpu {

class SchedulePlanner {
public:
  SchedulePlanner(tile::FuncOp function, const GPUMachine &machine, TransportKind transport,
                  const PlanOptions &options, PlanKind kind);

  /// Decides; nothing is changed. False if there is nothing to be done, or it cannot be.
  bool plan(mlir::ArrayRef<mlir::scf::ForOp> loops);
  /// Puts the schedules on the function and its loops.
  void propose();
  /// The loops that get schedules.
  LoopGroup getLoops() const;

private:
  void proposeKernel();
  void propose(PlannedLoop &planned);
  void proposeDots(PlannedLoop &planned);
  void proposeRead(PlannedLoop &planned, PlannedCopy &copy) const;
  NodeAttr getNode(const PlannedLoop &planned, const PlannedCopy &copy) const;
  IterationOverlap getOverlap(const PlannedLoop &planned) const;
  KernelScheduleAttr getKernelSchedule() const;

  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  std::unique_ptr<Transport> transport;
  PlanKind kind;
  SchedulePlan found;
};

/// Proposes schedules for the loops of a function by one kind of transport, each the best that the
/// verifier accepts. Fails if a refusal is an error.
mlir::LogicalResult planSchedules(tile::FuncOp function, const GPUMachine &machine,
                                  TransportKind transport, const PlanOptions &options,
                                  const TrialOptions &trial);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLANNER_H
