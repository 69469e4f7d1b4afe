// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop's side of the rings that TMA fills, whose slots mbarriers hand over (Channels.h). The
// rings live as long as the kernel. Producer warps fill them, or the program's first thread does in
// the loop.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_BARRIERRINGS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_BARRIERRINGS_H

#include "KernelRings.h"
#include "LoopIteration.h"

namespace tessera::tilegpu {

class BarrierRings {
public:
  /// `places` has one for each of the kernel's channels.
  BarrierRings(const LoopSchedule &schedule, const KernelRings &kernel,
               mlir::MutableArrayRef<ChannelPlace> places);

  /// The loop's channels that TMA fills.
  llvm::ArrayRef<unsigned> getChannels() const { return channels; }
  /// The prologue of copies that the program's first thread begins.
  void emitFirstCopies(mlir::OpBuilder &builder);
  /// Where the loop is known to run.
  void beginLoop(mlir::OpBuilder &builder);

  void beginIteration() { left.clear(); }
  /// Waits for a channel's tiles, where the iteration has a reader.
  void emitWait(mlir::OpBuilder &builder, unsigned channel, const LoopIteration &iteration);
  /// Copies for later iterations, into slots that have been left: in this iteration, or in one
  /// before.
  void emitCopies(mlir::OpBuilder &builder, llvm::ArrayRef<unsigned> channels,
                  const LoopIteration &iteration);
  /// The slot that ops of a stage read.
  mlir::Value emitBuffer(mlir::OpBuilder &builder, const ScheduledCopy &copy,
                         const LoopIteration &iteration, int stage);
  /// Releases the slots that an op is the last to read.
  void finishUse(mlir::OpBuilder &builder, mlir::Operation *reader, const LoopIteration &iteration);
  void endIteration(mlir::OpBuilder &builder, const LoopIteration &iteration);
  /// Releases the slots of readers that were in flight.
  void emitEnd(mlir::OpBuilder &builder) const;

  /// Visits the slots that dots in flight read; the loop carries them, and places in channels.
  void forEachSlot(llvm::function_ref<void(mlir::Value &)> visit);
  mlir::SmallVector<mlir::Value> getPlaces() const;
  void setPlaces(mlir::ValueRange from);

private:
  /// Those of which the loop carries a place.
  llvm::ArrayRef<unsigned> getCarried() const {
    return llvm::ArrayRef(channels).take_front(kernel.isInStep ? 1 : channels.size());
  }
  ChannelPlace &getPlace(unsigned channel) {
    return places[kernel.getIndex(schedule.getChannels()[channel])];
  }
  const Channel &getRings(unsigned channel) const {
    return kernel.channels[kernel.getIndex(schedule.getChannels()[channel])];
  }
  mlir::Location getLoc() const { return schedule.getLoop().getLoc(); }
  int getDistance(unsigned channel, const LoopIteration &iteration, int stage) const;
  ChannelPlace emitPlace(mlir::OpBuilder &builder, unsigned channel, const LoopIteration &iteration,
                         int stage);
  void moveOn(mlir::OpBuilder &builder, unsigned channel);

  const LoopSchedule &schedule;
  const KernelRings &kernel;
  LoopCounter counter;
  mlir::MutableArrayRef<ChannelPlace> places;
  mlir::SmallVector<unsigned, 2> channels;
  /// Channels that this iteration has released, with the places that they had.
  llvm::SmallDenseMap<unsigned, ChannelPlace> left;
  /// Channels whose last reader is in flight, each with the slot that it reads.
  mlir::SmallVector<std::pair<unsigned, mlir::Value>, 1> previous;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_BARRIERRINGS_H
