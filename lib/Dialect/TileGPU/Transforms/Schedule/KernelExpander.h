// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands the schedules of a kernel whose rings TMA fills: makes tensor maps, rings with their
// barriers, and the copies, by the program or by producer warps.
//
// With producer warps, several partitions run the kernel's loops at the same time. With one
// producer they are:
//
//     default region, the program's warps          partition, one thread
//     ------------------------------------         -----------------------------------
//     for each tile of the result:                 for each tile of the result:
//       for k:                                       for k:
//         wait until slot is full                      wait until slot is empty
//         multiply                                     copy the boxes of k to slot
//         slot is empty
//       store the result
//
// The right side also copies tiles that a program loads once, before its loops (ProgramCopies.h).
// With several producers, each copies for the channels whose nodes name it, and none waits for
// another one.
//
// The right side has the loops and branches of the left side, but computes coordinates only, from
// the kernel's arguments. It depends on the left side only by slots that become empty. So it runs
// ahead by as many slots as the rings have, also past the end of a loop, while the left side stores
// a result. In a persistent kernel, each side is in a loop over programs.
//
// If the kernel finds an array in memory, the left side sends its address to the right side
// (ProducerSlice.h). The right side then runs ahead of stores only if these are known to be to
// other places (ResultOverlap.h).
//
//     KernelExpander.cpp      what may be expanded, and the left side
//     KernelProducer.cpp      the messages to the right side
//     ProducerPartition.cpp   the right side
//     KernelTransfers.cpp     the places of both sides in their channels
//
// Without producer warps the program's first thread begins the copies within the loops.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELEXPANDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELEXPANDER_H

#include "KernelTransfers.h"
#include "ScheduledLoop.h"
#include "tessera/Analysis/Order/MemoryOrder.h"

namespace tessera::tilegpu {

class KernelExpander {
public:
  KernelExpander(tile::FuncOp kernel, unsigned warps, int64_t limit)
      : kernel(kernel), warps(warps), limit(limit) {}

  /// Takes a loop that TMA fills rings for.
  void add(LoopSchedule schedule) { transfers.schedules.push_back(std::move(schedule)); }
  /// Checks all of them, and the kernel's schedule; changes nothing. Fails with an error.
  mlir::LogicalResult verify();
  /// Replaces all of them, once they are verified; does nothing where there are none.
  void expand();
  llvm::ArrayRef<LoopSchedule> getSchedules() const { return transfers.schedules; }

private:
  mlir::LogicalResult verifyMaps() const;
  mlir::LogicalResult verifyOrder(mlir::ArrayRef<ScheduledCopy> copies, mlir::Operation *op);
  mlir::LogicalResult verifyInPlace(const LoopSchedule &schedule);
  mlir::LogicalResult verifyProducers() const;
  mlir::LogicalResult verifySlice(unsigned producer) const;
  mlir::LogicalResult verifyMulticast(const LoopSchedule &schedule) const;
  bool isInPlace(const LoopSchedule &schedule) const;
  mlir::LogicalResult planRings();
  mlir::LogicalResult planCopies(mlir::ArrayRef<ScheduledCopy> copies, mlir::Region &region);
  mlir::LogicalResult planProgramCopies();
  void addMaps();
  int64_t getRowsOfMap(const ScheduledCopy &copy) const;

  void expandInLoops();
  void expandForProducer();
  WarpSpecializeOp emitRegions(mlir::OpBuilder &builder);
  ProducerSlice getSlice(const PartitionSide &side) const;
  void planMessages();
  void addMarkers(const LoopSchedule &schedule);
  void allocateRings(mlir::OpBuilder &builder, mlir::Location loc);
  void expandLoops(mlir::Block *block);
  void sendMessage(mlir::Operation *op);
  void receive(const ScheduledCopy &copy);
  void endRings(mlir::Block *block);

  tile::FuncOp kernel;
  unsigned warps;
  int64_t limit;
  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  LaunchConditions conditions;
  KernelScheduleAttr attr;
  KernelTransfers transfers;
  /// The scalars that producer warps need.
  std::optional<ProducerSlice> slice;
  /// For loops with a check at run time: true if a store may be to a copied array.
  mlir::SmallVector<mlir::Value, 1> overlaps;
  /// The side of the program's warps.
  PartitionSide program{transfers, std::nullopt};
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELEXPANDER_H
