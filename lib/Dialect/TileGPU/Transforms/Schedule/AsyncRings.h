// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rings of a loop that all threads fill: by cp.async, or by loads and stores (`copy =
// threads`). A ring lives as long as the loop. The protocol of cp.async counts groups: an iteration
// begins one group, and waits until all but a number of them are done. Copies by threads are done
// where they are, and the barrier between iterations orders them.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_ASYNCRINGS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_ASYNCRINGS_H

#include "Facts/LoopSlice.h"
#include "LoopIteration.h"
#include "LoopSchedule.h"

namespace tessera::tilegpu {

class AsyncRings {
public:
  explicit AsyncRings(const LoopSchedule &schedule);

  bool isEmpty() const { return rings.empty(); }
  /// True if threads fill a channel.
  bool has(unsigned channel) const {
    return llvm::any_of(rings, [&](const Rings &of) { return of.channel == channel; });
  }
  /// Makes the rings. Call it once.
  void allocate(mlir::OpBuilder &builder);
  /// The prologue: a group of copies for each of the first iterations.
  void emitFirstCopies(mlir::OpBuilder &builder, mlir::Value runs);

  /// Waits for the tiles that an iteration reads.
  void emitWait(mlir::OpBuilder &builder, const LoopIteration &iteration) const;
  /// Waits for the tiles that ops before the loop read, whose last stage is `last`, below 0.
  void emitEarlyWait(mlir::OpBuilder &builder, int last) const;
  void beginIteration();
  /// Copies a channel's tiles of a later iteration; `variable` is that of this one.
  void emitCopies(mlir::OpBuilder &builder, unsigned channel, mlir::Value variable);
  void endIteration(mlir::OpBuilder &builder);

  /// The slot that ops of a stage read, as a buffer.
  mlir::Value emitBuffer(mlir::OpBuilder &builder, const ScheduledCopy &copy,
                         const LoopIteration &iteration, int stage) const;
  /// The same before the loop, for a tile of one of the first iterations.
  mlir::Value emitFirstBuffer(mlir::OpBuilder &builder, mlir::Location loc,
                              const ScheduledCopy &copy, int iteration) const;

  /// Visits the values that the loop carries: those of addresses, and the slots.
  void forEachAddress(llvm::function_ref<void(mlir::Value &)> visit);
  void forEachSlot(llvm::function_ref<void(mlir::Value &)> visit);
  /// Ends the rings before anything else may want their place.
  void emitEnd(mlir::OpBuilder &builder) const;

private:
  /// The rings of a channel, and where the loop is in them.
  struct Rings {
    unsigned channel = 0;
    bool isByThreads = false;
    LoopSlice addresses;
    mlir::SmallVector<mlir::Value> buffers;
    /// The carried values that the addresses of the next copied iteration read.
    mlir::SmallVector<mlir::Value> ahead;
    /// The slots that are filled and read next.
    mlir::Value into, from;
  };

  mlir::Location getLoc() const { return mlir::scf::ForOp(loop).getLoc(); }
  const ScheduledChannel &getChannel(const Rings &of) const {
    return schedule.getChannels()[of.channel];
  }
  const Rings &getRings(unsigned channel) const {
    return *llvm::find_if(rings, [&](const Rings &of) { return of.channel == channel; });
  }
  unsigned countByCpAsync() const;
  bool needsBarrier() const;
  void
  emitPendingWait(mlir::OpBuilder &builder,
                  llvm::function_ref<std::optional<int>(const ScheduledChannel &)> count) const;
  mlir::Value emitSlot(mlir::OpBuilder &builder, const Rings &of, int iterationsBefore) const;
  void emitTiles(mlir::OpBuilder &builder, Rings &of, mlir::Value variable, mlir::Value condition,
                 mlir::Value slot);
  void emitTile(mlir::OpBuilder &builder, const Rings &of, const ScheduledCopy &copy,
                mlir::Value buffer, mlir::Value condition, mlir::IRMapping &mapping) const;

  const LoopSchedule &schedule;
  mlir::scf::ForOp loop;
  LoopCounter counter;
  mlir::SmallVector<Rings, 1> rings;
  /// True if asynchronous dots read the rings.
  bool hasAsyncDot = false;
  /// How many channels of cp.async this iteration has filled.
  unsigned filled = 0;
  /// True if all warps have met in this iteration before rings are filled.
  bool hasMet = false;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_ASYNCRINGS_H
