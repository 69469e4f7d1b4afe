// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of tilegpu-warp-specialize while it plans a kernel, and its steps:
//
//     SpecializedLoops.cpp   each loop: the loads that TMA can do, their channels, the dots that
//                            stay in flight; and, at last, its schedule
//     WarpSpecialize.cpp     the kernel: producer warps or not, programs for each SM, persistence,
//                            slots; and its schedule

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SPECIALIZER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SPECIALIZER_H

#include "Channels.h"
#include "DotOrder.h"
#include "LoopSchedule.h"
#include "ProducerSlice.h"
#include "Programs/LoopDots.h"
#include "RingMemory.h"
#include "ScheduleTrial.h"
#include "Transport.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

#include <string>
#include <vector>

namespace tessera::tilegpu {

/// The plan for a loop of dots.
struct BoxLoop {
  mlir::scf::ForOp loop;
  mlir::SmallVector<PlannedCopy, 2> loads;
  /// The channels in the order in which the loop needs them.
  mlir::SmallVector<unsigned, 2> channels;
  unsigned stages = 0;
  AsyncDotOp asyncDot, lateDot;
  /// The dot that is under way while the program begins copies; null if it has to be waited for
  /// where it is.
  AsyncDotOp lastDot;
  /// The order of the dots of a loop with three dots or more.
  std::optional<DotOrder> order;
  /// Loads that threads do an iteration ahead.
  mlir::SmallVector<tile::LoadOp> loadsAhead;
  /// True if warpgroups begin dots alternately (ping-pong).
  bool isPingPong = false;
  /// True if it loads from arrays that the kernel finds in memory. Its copies begin when the
  /// program reaches it, and a producer gets a message there.
  bool isInPlace = false;
  /// True if a producer needs a message for it.
  bool needsMessages = false;

  ReplacedOps getReplaced() const;
  bool hasLateDot() const { return order && order->hasLate(); }
  /// True if the program computes while a dot of its own is under way.
  bool hasDotBeside() const { return lateDot || hasLateDot(); }
  /// Add the scalars that a producer needs to copy for it.
  void addTo(ProducerSlice &slice) const;
  /// The channel that an operand of a dot is read from; none if it is in no ring.
  std::optional<unsigned> getChannel(mlir::Value operand) const;
  /// True if `dot`, or an op after it, reads the tile of a load.
  bool isReadFrom(AsyncDotOp dot, const PlannedCopy &load) const;
  /// The first op that needs the dot that is put off, or takes the place of its operand.
  mlir::Operation *findNeedOfLateDot() const;
};

/// A kernel, with the plans of its loops.
class Specializer {
public:
  Specializer(tile::FuncOp kernel, const GPUMachine &machine, unsigned stages, unsigned warps,
              bool skew, int64_t mostPrograms, PlanKind kind)
      : kernel(kernel), machine(machine), stages(stages), warps(warps), skew(skew),
        mostPrograms(mostPrograms), kind(kind) {}

  /// Decides; nothing is changed. False if there is nothing to be done, or it cannot be.
  bool plan();
  /// Puts the schedules on the kernel and its loops.
  void propose();
  /// The loops that get schedules.
  mlir::SmallVector<mlir::scf::ForOp> getLoops() const;

private:
  bool planLoop(mlir::scf::ForOp loop);
  bool planMessagesOf(BoxLoop &planned);
  bool planCopies(BoxLoop &planned);
  void joinChannels(BoxLoop &planned);
  bool isBoundByDots() const;
  void planSharedPrograms();
  bool hasLoopsInPlace() const;
  bool needsMessages() const;
  void planMessages();
  void dropLateDots();
  bool hasOrder() const {
    return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.order.has_value(); });
  }
  bool hasLateDot() const {
    return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.hasLateDot(); });
  }
  int64_t getOtherBytes(const ReplacedOps &replaced) const;
  RingResources getResources(int64_t warps, int64_t otherBytes) const;
  int64_t getBytesOfSlots() const;
  int64_t getTimelySlots(int64_t wanted, int64_t others) const;
  bool planOwnCopies();
  bool planSlots();
  void planPrograms(llvm::function_ref<bool(int64_t)> fits);
  bool planProgramCopies();
  void planProgramSlots(int64_t others);
  ReplacedOps getReplaced() const;
  int64_t getWantedRegisters(const BoxLoop &planned) const;
  int64_t getWantedRegisters() const;
  bool refuse(mlir::Operation *loop, const mlir::Twine &why, mlir::Operation *place = nullptr);

  int64_t countPrograms() const;
  IterationOverlap getOverlap(const BoxLoop &planned) const;
  KernelScheduleAttr getKernelSchedule() const;
  void propose(BoxLoop &planned);
  void proposeCopies(const BoxLoop &planned);

  tile::FuncOp kernel;
  const GPUMachine &machine;
  unsigned stages, warps;
  bool skew;            ///< whether a dot may be put off
  int64_t mostPrograms; ///< that may run at once on an SM
  PlanKind kind;

  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  /// The conditions of a launch that early loads depend on.
  LaunchConditions conditions;
  std::vector<BoxLoop> loops;
  /// Loops with dots that stay as they are.
  mlir::SmallVector<mlir::scf::ForOp, 1> unplanned;
  mlir::SmallVector<Channel> channels;
  unsigned slots = 0;
  /// How many are to run at once on an SM.
  int64_t programs = 1;
  /// True if the kernel is persistent: a block does one program after the other.
  bool isPersistent = false;
  ProgramOrder programOrder = ProgramOrder::Grid; ///< of a persistent kernel's programs
  /// Tiles that the producer of a persistent kernel copies once a program.
  mlir::SmallVector<ScheduledCopy, 1> programCopies;
  /// Slots of their rings. With a single slot, the producer waits until the program releases its
  /// tile. Only then does it copy the next program's tile, and all tiles after that one.
  unsigned programSlots = 1;
  /// True if the program's first thread orders copies, and why.
  bool copiesWithoutProducer = false;
  std::string whyNoProducer;
  /// Scalars of the longest message to a producer, and why messages cannot carry all that it needs.
  unsigned words = 0;
  std::string whyNoMessages;
  /// How many programs share an SM because it does.
  int64_t sharedPrograms = 1;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SPECIALIZER_H
