// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop that a schedule describes (Schedule.h), in the place of the one that has it. For ops of
// stages -E to L:
//
//     rings                                     of the channels that cp.async fills
//     copies of the first iterations            where the program's threads begin them
//     if the loop runs:                         where something is under way between iterations
//       E times: ops of the stages below 0      of the first iterations
//       L times: an iteration without the stages that have nothing to do yet
//       the steady state:
//         wait for copies by cp.async
//         events of an iteration                LoopSchedule::getEvents()
//       L times: ops of the stages that have something left to do
//       wait for dots that are in flight
//     wait for all copies; the end of the rings
//
// Conditions skip the copies of iterations past the last one. A loop that may have fewer than L
// iterations checks that there is another one before each iteration but the first of the prologue.
//
//     LoopIteration.h   one iteration of the new loop, and variables and numbers of iterations
//     CarriedValues.h   values that the new loop carries
//     AsyncRings.h      the protocol of rings that all threads fill
//     BarrierRings.h    the protocol of rings that TMA fills
//     PendingDots.h     the waits of asynchronous dots

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H

#include "AsyncRings.h"
#include "BarrierRings.h"
#include "CarriedValues.h"
#include "PendingDots.h"

namespace tessera::tilegpu {

class ScheduledLoop {
public:
  /// `places` has one for each of the kernel's channels.
  ScheduledLoop(const LoopSchedule &schedule, const KernelRings &kernel,
                mlir::MutableArrayRef<ChannelPlace> places)
      : schedule(schedule), loop(schedule.getLoop()), counter(loop), carried(schedule),
        async(schedule), byTMA(schedule, kernel, places), dots(schedule),
        mappings(schedule.getFirstStage(), schedule.getLastStage()) {}

  /// Replaces the loop; the places are those behind it.
  void expand();

private:
  mlir::Location getLoc() const { return mlir::scf::ForOp(loop).getLoc(); }

  // The phases.
  void putOffUsersOfLoads(mlir::OpBuilder &builder);
  mlir::SmallVector<mlir::Value> emitGuarded(mlir::OpBuilder &builder);
  void emitEarly(mlir::OpBuilder &builder, int last);
  mlir::SmallVector<mlir::Value> emitPrologue(mlir::OpBuilder &builder,
                                              mlir::SmallVector<mlir::Value> variables);
  mlir::SmallVector<mlir::Value> emitSteadyState(mlir::OpBuilder &builder);
  void emitLoop(mlir::OpBuilder &builder, mlir::Value end);
  void emitEpilogue(mlir::OpBuilder &builder, mlir::ArrayRef<mlir::Value> variables, int last);
  mlir::SmallVector<mlir::Value> emitResults(mlir::OpBuilder &builder);
  void forEachCarried(llvm::function_ref<void(mlir::Value &)> visit);
  mlir::SmallVector<mlir::Value> getCarried();
  void setCarried(mlir::ValueRange from);

  // An iteration.
  void beginIteration(LoopIteration iteration);
  void endIteration(mlir::OpBuilder &builder);
  void emitIteration(mlir::OpBuilder &builder, LoopIteration iteration);
  void emitLastOps(mlir::OpBuilder &builder, LoopIteration iteration);
  void emitEvent(mlir::OpBuilder &builder, const ScheduleEvent &event);
  void emitCopies(mlir::OpBuilder &builder, mlir::ArrayRef<unsigned> channels);
  bool isBesideDots(const ScheduleEvent &event) const;
  void emitPingPong(mlir::OpBuilder &builder, mlir::ArrayRef<ScheduleEvent> events);
  void emitOp(mlir::OpBuilder &builder, mlir::Operation *op);
  void emitTile(mlir::OpBuilder &builder, mlir::Operation *load);
  void emitDotWait(mlir::OpBuilder &builder, mlir::Operation *dot);

  // Its operands.
  mlir::Value emitUnlessLast(mlir::OpBuilder &builder, mlir::Value next, mlir::Value own,
                             unsigned ahead);
  mlir::Value emitVariable(mlir::OpBuilder &builder, int stage);
  void mapOperand(mlir::OpBuilder &builder, mlir::Value value, int stage);
  void mapFirstTile(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value buffer, int stage,
                    int iteration);
  mlir::Value emitView(mlir::OpBuilder &builder, mlir::Value buffer, int stage);

  const LoopSchedule &schedule;
  mlir::scf::ForOp loop;
  LoopCounter counter;
  CarriedValues carried;
  AsyncRings async;
  BarrierRings byTMA;
  PendingDots dots;
  StageMappings mappings;
  LoopIteration current;
  /// Ping-pong: true if the tensor cores are this warpgroup's.
  bool hasTurn = false;
  /// A dot that reads its rings by tensor cores, if there is one.
  AsyncDotOp asyncDot;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H
