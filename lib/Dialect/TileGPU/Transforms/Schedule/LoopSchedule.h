// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule of a loop's attributes (Schedule.h), as the verifier and the expander use it. It has
// channels with the loads that fill them, and the stage and order of every op. It has the events of
// one iteration of the new loop, in the order in which they are emitted.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPSCHEDULE_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPSCHEDULE_H

#include "Programs/LoopDots.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"

#include <optional>

namespace tessera::tilegpu {

/// A load that fills a channel.
struct ScheduledCopy {
  tile::LoadOp load;
  /// The type of a slot of its ring.
  MemDescType tile;
  /// Buffers that the loaded tile was stored to, which are slots of the ring now.
  mlir::SmallVector<LocalAllocOp, 1> buffers;
  /// The channel, and which of its rings.
  unsigned channel = 0, ring = 0;
  /// True if it is for all blocks of the cluster, and each copies a share of it.
  bool isMulticast = false;
};

/// An op that looks at the tiles of a channel.
struct ChannelReader {
  mlir::Operation *op = nullptr;
  int stage = 0;
};

struct ScheduledChannel {
  unsigned number = 0, slots = 0;
  CopyKind copy = CopyKind::CpAsync;
  /// The producer that begins its copies; none if threads of the program do, in the loop.
  std::optional<unsigned> producer;
  /// The loads, by their numbers in the schedule.
  mlir::SmallVector<unsigned, 2> copies;
  /// How many iterations ahead its copies are, and where in an iteration.
  int ahead = 0, order = 0;
  /// The order of the wait for its tiles, if not at their first reader.
  std::optional<int> wait;
  mlir::SmallVector<ChannelReader, 2> readers;
  /// The stage whose tile the place that the loop carries is of.
  int base = 0;
  /// The reader that is the last one to be done with a tile.
  mlir::Operation *lastReader = nullptr;

  /// The reader of the earliest stage, the first of them; there is one.
  const ChannelReader &getFirstReader() const {
    return *llvm::min_element(readers,
                              [](const auto &a, const auto &b) { return a.stage < b.stage; });
  }
  bool isByTMA() const { return copy == CopyKind::TMA; }
  /// True if threads load its tiles and store them, which is over where it is done.
  bool isByThreads() const { return copy == CopyKind::Threads; }
  bool isCopiedInLoop() const { return !producer; }
};

/// The place of an op of the body.
struct ScheduledOp {
  mlir::Operation *op = nullptr;
  int stage = 0, order = 0;
  std::optional<int> wait;
  unsigned inFlight = 0;

  /// A dot that is begun, and waited for elsewhere.
  bool isAsync() const { return wait.has_value(); }
};

/// An event in an iteration of the new loop.
struct ScheduleEvent {
  /// In the order in which they come where one order begins.
  enum Kind {
    TileWait, ///< until the tiles of a channel are there
    DotWait,  ///< until an asynchronous dot is done
    Copy,     ///< copies into a channel's slots are begun
    Op,       ///< an op of the old body
  };
  Kind kind = Op;
  int order = 0;
  unsigned channel = 0;
  mlir::Operation *op = nullptr;
};

class LoopSchedule {
public:
  /// Reads the attributes of a loop that has a schedule. Fails with an error where they
  /// contradict each other, or say what is not there.
  static mlir::FailureOr<LoopSchedule> read(mlir::scf::ForOp loop);

  /// Checks that the schedule computes what the loop does, and that its rings fit into `limit`
  /// bytes of shared memory. An error says which two ops are in the wrong order.
  mlir::LogicalResult verify(int64_t limit) const;

  mlir::scf::ForOp getLoop() const { return loop; }
  mlir::ArrayRef<ScheduledChannel> getChannels() const { return channels; }
  mlir::ArrayRef<ScheduledCopy> getCopies() const { return copies; }
  bool isPingPong() const { return pingPong; }
  /// True if TMA fills rings of it: it is then a part of its kernel's schedule.
  bool isByTMA() const {
    return llvm::any_of(channels, [](const auto &channel) { return channel.isByTMA(); });
  }
  const ReplacedOps &getReplaced() const { return replaced; }

  /// The event of an op in the body, except copies.
  const ScheduledOp &getOp(mlir::Operation *op) const { return ops.find(op)->second; }
  /// The stage that computes a value of the body, as the loop's own variables are of stage 0.
  int getStage(mlir::Value value) const;
  bool isLive(mlir::Operation *op) const { return live.contains(op); }
  /// The stages of ops that are not copies are from the first one, at most 0, to the last one.
  int getFirstStage() const { return firstStage; }
  int getLastStage() const { return lastStage; }
  /// Loads that are no copies and are done in an iteration before their own.
  llvm::SmallVector<tile::LoadOp> getLoadsAhead() const;

  mlir::ArrayRef<ScheduleEvent> getEvents() const { return events; }
  /// The asynchronous dots of these stages, in the order in which they begin.
  mlir::SmallVector<mlir::Operation *> getAsyncDots(int first, int last) const;

  /// The copy whose ring a buffer is a slot of, or a view of such a buffer; null if it is none.
  const ScheduledCopy *getCopy(mlir::Value buffer) const;

private:
  explicit LoopSchedule(mlir::scf::ForOp loop) : loop(loop) {}

  mlir::LogicalResult readChannels(ScheduleAttr attr);
  mlir::LogicalResult readCopy(tile::LoadOp load, NodeAttr node);
  mlir::LogicalResult readOps();
  void findReaders();
  void orderEvents();
  int64_t getEndOfUse(const ChannelReader &reader) const;
  bool isUsedInOwnStage(mlir::Operation *view) const;

  mlir::LogicalResult verifyOps() const;
  mlir::LogicalResult verifySlices(mlir::Operation *op) const;
  mlir::LogicalResult verifyUse(mlir::Operation *user, mlir::Value value) const;
  mlir::LogicalResult verifyLoadAhead(tile::LoadOp load) const;
  mlir::LogicalResult verifyChannel(const ScheduledChannel &channel) const;
  mlir::LogicalResult verifyInFlight(const ScheduledOp &dot) const;
  mlir::LogicalResult verifyMemory(int64_t limit) const;
  mlir::LogicalResult verifyOrder() const;
  int64_t getTime(mlir::Operation *op, ScheduleEvent::Kind kind) const;
  int64_t getTimeDone(mlir::Operation *op) const;

  mlir::scf::ForOp loop;
  bool pingPong = false;
  int firstStage = 0, lastStage = 0;
  mlir::SmallVector<ScheduledChannel, 2> channels;
  mlir::SmallVector<ScheduledCopy, 4> copies;
  ReplacedOps replaced;
  llvm::DenseSet<mlir::Operation *> live;
  llvm::DenseMap<mlir::Operation *, ScheduledOp> ops;
  mlir::SmallVector<ScheduleEvent> events;
  /// The place among the events of ops and of waits for dots.
  llvm::DenseMap<std::pair<mlir::Operation *, int>, int64_t> times;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPSCHEDULE_H
