// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan of schedules that are proposed together: those of all loops of a kernel whose tiles TMA
// copies, or that of one loop whose tiles its threads copy. The steps of the planner
// (SchedulePlanner.h) fill it in, and nothing is changed before it is proposed.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLAN_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLAN_H

#include "Channels.h"
#include "DotOrder.h"
#include "ProducerSlice.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "Transport.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

#include <string>
#include <vector>

namespace tessera::tilegpu {

/// The requests to the planner.
struct PlanOptions {
  /// Stages of a loop that sets none, and warps of a program.
  unsigned stages = 3, warps = ScheduleSizes::kDefaultWarps;
  /// True if a dot may be done in another iteration than its own, which takes registers.
  bool skew = true;
  /// True if copies may pass stores to other arguments, which launches compare.
  bool assumeApart = false;
  /// Programs with a producer that may run at once on an SM; 0: without producers.
  int64_t mostPrograms = 1;
  /// True if threads may hold operands in registers that they could read from shared memory.
  bool hold = true;
};

/// The plan of a loop.
struct PlannedLoop {
  mlir::scf::ForOp loop;
  mlir::SmallVector<PlannedCopy, 2> copies;
  /// The channels in the order in which the loop needs them.
  mlir::SmallVector<unsigned, 2> channels;
  /// The stages that are asked for, and whether the source does.
  unsigned stages = 0;
  bool isHinted = false;
  /// The dots that are in flight while the next iteration begins: all of the loop, or none.
  mlir::SmallVector<AsyncDotOp, 1> asyncDots;
  /// A dot that begins in the next iteration, and one that is done an iteration ahead.
  AsyncDotOp lateDot, skewedDot;
  /// The dot that is under way while the program begins copies; null if it has to be waited for
  /// where it is.
  AsyncDotOp lastDot;
  /// The order of the dots of a loop with three dots or more.
  std::optional<DotOrder> order;
  /// Rows that a dot depends on and TMA does not copy, and why not.
  mlir::SmallVector<std::pair<tile::LoadOp, std::string>, 1> left;
  /// Loads that threads do an iteration ahead.
  mlir::SmallVector<tile::LoadOp> loadsAhead;
  /// True if warpgroups begin dots alternately (ping-pong).
  bool isPingPong = false;
  /// True if it loads from arrays that the kernel finds in memory. Its copies begin when the
  /// program reaches it, and a producer gets a message there.
  bool isInPlace = false;
  /// True if a producer needs a message for it.
  bool needsMessages = false;

  ReplacedOps getReplaced() const { return getReplacedBy(copies); }
  bool hasLateDot() const { return order && order->hasLate(); }
  /// True if the program computes while a dot of its own is under way.
  bool hasDotBeside() const { return lateDot || skewedDot || hasLateDot(); }
  /// Add the scalars that a producer needs to copy for it.
  void addTo(ProducerSlice &slice) const;
  /// The channel that an operand of a dot is read from; none if it is in no ring.
  std::optional<unsigned> getChannel(mlir::Value operand) const;
  /// True if `dot`, or an op after it, reads the tile of a load.
  bool isReadFrom(AsyncDotOp dot, const PlannedCopy &copy) const;
  /// The first op that needs the dot that is put off, or takes the place of its operand.
  mlir::Operation *findNeedOfLateDot() const;
};

/// The issuer of a kernel's copies by TMA, and how programs share an SM.
struct ProgramPlan {
  /// How many are to run at once on an SM.
  int64_t programs = 1;
  /// True if the kernel is persistent: a block does one program after the other.
  bool isPersistent = false;
  ProgramOrder order = ProgramOrder::Grid; ///< of a persistent kernel's programs
  /// Tiles that the producer of a persistent kernel copies once a program.
  mlir::SmallVector<ScheduledCopy, 1> copies;
  /// Slots of their rings. With a single slot, the producer waits until the program releases its
  /// tile. Only then does it copy the next program's tile, and all tiles after that one.
  unsigned slots = 1;
  /// True if the program's first thread orders copies, and why.
  bool isWithoutProducer = false;
  std::string whyNoProducer;
  /// Scalars of the longest message to a producer, and why messages cannot carry all that it needs.
  unsigned words = 0;
  std::string whyNoMessages;
  /// How many programs share an SM because the program's threads order copies.
  int64_t shared = 1;
};

struct SchedulePlan {
  tile::FuncOp function;
  const GPUMachine &machine;
  Transport &transport;
  PlanOptions options;
  std::vector<PlannedLoop> loops = {};
  /// Loops with dots that stay as they are.
  mlir::SmallVector<mlir::scf::ForOp, 1> unplanned = {};
  mlir::SmallVector<Channel> channels = {};
  unsigned slots = 0;
  ProgramPlan program = {};
  /// The conditions of launches for copies ahead, and those for loads ahead by loop.
  LaunchConditions conditions = {};
  std::vector<LaunchConditions> ofLoadsAhead = {};

  bool isByTMA() const { return transport.getKind() == CopyKind::TMA; }
  bool any(bool (*is)(const PlannedLoop &)) const { return llvm::any_of(loops, is); }
  bool all(bool (*is)(const PlannedLoop &)) const { return llvm::all_of(loops, is); }
  bool needsMessages() const {
    return any([](const PlannedLoop &planned) { return planned.needsMessages; });
  }
  /// The ops that copies replace.
  ReplacedOps getReplaced() const;
  /// Registers of a thread for a loop: carried values, results of dots that are live at once,
  /// operands that are held beside them, and the rest (RegisterBudget).
  int64_t getRegisters(const PlannedLoop &planned) const;
  /// The same for the loop that wants most.
  int64_t getRegisters() const;
  /// Registers of a thread that a loop whose dots have an order leaves for operands in shared
  /// memory.
  int64_t getSpareRegisters(const PlannedLoop &planned) const;
  /// Bytes of one slot of each ring.
  int64_t getSlotBytes() const;
  /// Shared memory that rings cannot have. A kernel with loops of many dots after one another keeps
  /// a few large tiles for each of them, which are not there at once.
  int64_t getOtherBytes() const;
  RingResources getResources() const {
    return {machine, options.warps, getRegisters(), getSlotBytes(), getOtherBytes()};
  }
  /// Programs that share an SM.
  int64_t countPrograms() const;
  /// The expected cost of an iteration of each loop, if so many programs share an SM and copies
  /// arrive in time.
  int64_t getCycles(int64_t programs) const;
  /// How many iterations ahead the copies of a loop by its threads begin.
  int getDistance(const PlannedLoop &planned) const {
    return static_cast<int>(slots) - (planned.asyncDots.empty() ? 1 : 2);
  }
  /// False, with a remark that a loop is not scheduled. Behind layouts there is none: what is there
  /// is a schedule already, or a loop that needs none.
  bool refuse(mlir::Operation *loop, const TransportObstacle &obstacle) const;
  bool refuse(mlir::Operation *loop, const mlir::Twine &why,
              mlir::Operation *place = nullptr) const;
};

/// Replaces orders of three dots or more in which some begin in the next iteration.
void dropLateDots(SchedulePlan &plan);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULEPLAN_H
