// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop that a schedule describes (Schedule.h), in the place of the one that has it:
//
//     rings                                     of the channels that cp.async fills
//     copies of the first iterations            where the program's threads begin them
//     if the loop runs:                         where something is under way between iterations
//       ops of stage -1, for iteration 0
//       iteration 0 without ops of stage 1      where there are such
//       the steady state:
//         wait for copies by cp.async
//         events of an iteration                LoopSchedule::getEvents()
//       ops of stage 1, for the last iteration
//       wait for dots that are in flight
//     wait for all copies; the end of the rings
//
// Conditions skip the copies of iterations past the last one.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H

#include "Channels.h"
#include "Facts/LoopSlice.h"
#include "LoopSchedule.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

namespace tessera::tilegpu {

/// The rings of a kernel that TMA fills, and the box and the tensor map of each load.
struct KernelRings {
  mlir::SmallVector<Channel, 2> channels;
  /// The channels by the numbers that schedules have for them.
  llvm::SmallDenseMap<unsigned, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, BoxAccess> boxes;
  llvm::DenseMap<mlir::Operation *, mlir::Value> maps;
  /// True if all channels are at the same place where a loop begins, and so ever after.
  bool isInStep = false;

  unsigned getIndex(const ScheduledChannel &channel) const {
    return numbers.lookup(channel.number);
  }
  /// Copies the tiles of a channel to a slot, once that is empty. The mapping has the loop's
  /// variable.
  void emitCopies(mlir::OpBuilder &builder, const LoopSchedule &schedule,
                  const ScheduledChannel &channel, ChannelPlace place,
                  mlir::IRMapping mapping) const;
  /// Copies a tile to a slot of its ring; `full` counts the bytes.
  void emitCopy(mlir::OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                mlir::Value slot, mlir::Value full, mlir::IRMapping mapping) const;
};

class ScheduledLoop {
public:
  /// `places` has one for each of the kernel's channels.
  ScheduledLoop(const LoopSchedule &schedule, const KernelRings &kernel,
                mlir::MutableArrayRef<ChannelPlace> places)
      : schedule(schedule), loop(schedule.getLoop()), kernel(kernel), places(places) {}

  /// Replaces the loop; the places are those behind it.
  void expand();

private:
  /// A ring that cp.async fills, or threads do, and where the loop is in it.
  struct AsyncRings {
    unsigned channel = 0;
    bool isByThreads = false;
    LoopSlice addresses;
    mlir::SmallVector<mlir::Value> rings;
    /// The carried values that the addresses of the next copied iteration read.
    mlir::SmallVector<mlir::Value> ahead;
    /// The slots that are filled and read next.
    mlir::Value into, from;
  };
  /// The iteration of the new loop that is emitted.
  struct Iteration {
    /// The loop's variable for ops of stage 0; for those of stage 1, if there are any.
    mlir::Value variable, ofLate;
    /// True if ops of stage 0 are done.
    bool hasOwn = true;

    bool hasLate() const { return ofLate != nullptr; }
    bool has(int stage) const { return stage > 0 ? hasLate() : hasOwn; }
  };

  mlir::IRMapping &getMapping(int stage) { return mappings[stage + 1]; }
  mlir::Location getLoc() const { return mlir::scf::ForOp(loop).getLoc(); }
  int getYieldedStage(unsigned index) const;

  // Before the loop.
  void planCarried();
  void emitRings(mlir::OpBuilder &builder);
  void emitFirstCopies(mlir::OpBuilder &builder, mlir::Value runs);
  void emitFirstTMACopies(mlir::OpBuilder &builder);
  mlir::Value emitRuns(mlir::OpBuilder &builder);
  void emitGuarded(mlir::OpBuilder &builder);
  void emitEarly(mlir::OpBuilder &builder);
  // The loop.
  void emitLoop(mlir::OpBuilder &builder, mlir::Value end);
  mlir::SmallVector<mlir::Value> getCarried() const;
  void setCarried(mlir::ValueRange values);
  mlir::Value emitLast(mlir::OpBuilder &builder);
  // Behind it.
  void emitLate(mlir::OpBuilder &builder, mlir::Value last);
  mlir::SmallVector<mlir::Value> emitResults(mlir::OpBuilder &builder);
  void emitEnd(mlir::OpBuilder &builder);
  mlir::SmallVector<mlir::Value> getPlaces() const;
  void setPlaces(mlir::ValueRange from);

  // An iteration.
  void emitIteration(mlir::OpBuilder &builder, Iteration iteration);
  void beginIteration(Iteration iteration);
  void endIteration(mlir::OpBuilder &builder);
  void emitEvent(mlir::OpBuilder &builder, const ScheduleEvent &event);
  void emitWait(mlir::OpBuilder &builder, bool isFirst);
  void emitOp(mlir::OpBuilder &builder, mlir::Operation *op);
  void emitTile(mlir::OpBuilder &builder, mlir::Operation *load);
  void emitTileWait(mlir::OpBuilder &builder, unsigned channel);
  void emitDotWait(mlir::OpBuilder &builder, mlir::Operation *dot);
  void finishUse(mlir::OpBuilder &builder, mlir::Operation *reader);
  void emitCopies(mlir::OpBuilder &builder, mlir::ArrayRef<unsigned> channels);
  void emitAsyncCopies(mlir::OpBuilder &builder, AsyncRings &rings, mlir::Value variable,
                       mlir::Value condition, mlir::Value slot);
  void emitTMACopies(mlir::OpBuilder &builder, mlir::ArrayRef<unsigned> channels);
  void emitPingPong(mlir::OpBuilder &builder, const ScheduleEvent &event);
  void moveOn(mlir::OpBuilder &builder, unsigned channel);
  void mapCarried(mlir::Operation *op);
  unsigned countPending(mlir::Operation *dot) const;
  bool needsBarrier() const;

  mlir::Value emitHasMore(mlir::OpBuilder &builder, mlir::Value variable, unsigned ahead);
  mlir::Value emitDistance(mlir::OpBuilder &builder, int64_t ahead);
  mlir::Value emitAhead(mlir::OpBuilder &builder, mlir::Value variable, int ahead);
  mlir::Value emitUnlessLast(mlir::OpBuilder &builder, mlir::Value next, mlir::Value own);
  mlir::Value emitVariable(mlir::OpBuilder &builder, int stage);
  mlir::Value emitNextSlot(mlir::OpBuilder &builder, mlir::Value slot, unsigned slots, bool isNext);
  mlir::Value emitSlot(mlir::OpBuilder &builder, unsigned channel, int stage);
  ChannelPlace emitPlace(mlir::OpBuilder &builder, unsigned channel, int stage);
  void mapOperand(mlir::OpBuilder &builder, mlir::Value value, int stage);
  mlir::Value emitView(mlir::OpBuilder &builder, mlir::Value buffer, int stage);
  AsyncRings *getAsyncRings(unsigned channel);
  unsigned countAsync() const;
  ChannelPlace &getPlace(unsigned channel) {
    return places[kernel.getIndex(schedule.getChannels()[channel])];
  }
  const Channel &getRings(unsigned channel) const {
    return kernel.channels[kernel.getIndex(schedule.getChannels()[channel])];
  }

  const LoopSchedule &schedule;
  mlir::scf::ForOp loop;
  const KernelRings &kernel;
  mlir::MutableArrayRef<ChannelPlace> places;

  mlir::SmallVector<AsyncRings, 1> async;
  /// Channels that TMA fills, and those of which the loop carries a place.
  mlir::SmallVector<unsigned, 2> byTMA, carriedPlaces;

  /// The loop's own variables that are still needed, by their numbers, and what they are now.
  mlir::SmallVector<unsigned> kept;
  mlir::SmallVector<mlir::Value> values;
  /// For each of them, the value that the new loop carries in its place: null for itself, or an
  /// operand of stage 1 that becomes it.
  mlir::SmallVector<mlir::Value> inPlace;
  /// Values of one stage that the next one uses in the next iteration, and what they are now.
  mlir::SmallVector<std::pair<mlir::Value, int>> crossing;
  mlir::SmallVector<mlir::Value> crossed;
  /// Channels whose last reader is in flight, each with the slot that it reads.
  mlir::SmallVector<std::pair<unsigned, mlir::Value>, 1> previous;

  mlir::IRMapping mappings[3];
  Iteration current;
  /// Dots that this iteration has begun; channels that it has released, with the places that they
  /// had.
  mlir::SmallVector<mlir::Operation *> begun;
  llvm::SmallDenseMap<unsigned, ChannelPlace> left;
  /// Asynchronous dots of a steady iteration, and those of the one before it at least.
  mlir::SmallVector<mlir::Operation *> ofIteration, ofFirst;
  /// How many channels of cp.async this iteration has filled.
  unsigned filled = 0;
  /// True if all warps have met in this iteration before rings are filled.
  bool hasMet = false;
  bool hasTurn = false;
  /// A dot that reads its rings by tensor cores, if there is one.
  AsyncDotOp asyncDot;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEDLOOP_H
