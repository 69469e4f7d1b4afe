// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The messages to producer warps: what they need to run the program's loops and branches.

#include "Facts/ResultOverlap.h"
#include "KernelExpander.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Messages to the producer
//===----------------------------------------------------------------------===//

/// Collect the scalars that a partition needs for its loops, and the tensor maps that the kernel
/// makes.
ProducerSlice KernelExpander::getSlice(const PartitionSide &side) const {
  SmallVector<scf::ForOp> loops;
  for (const LoopSchedule &schedule : transfers.schedules)
    if (side.has(schedule))
      loops.push_back(schedule.getLoop());
  ProducerSlice result(kernel, loops);
  for (const LoopSchedule &schedule : transfers.schedules) {
    if (!side.has(schedule))
      continue;
    result.needLoop(schedule.getLoop());
    for (const ScheduledCopy &copy : schedule.getCopies()) {
      if (!side.has(transfers.rings.getIndex(schedule.getChannels()[copy.channel])))
        continue;
      result.needBox(transfers.rings.boxes.find(copy.load)->second);
      if (Value map = transfers.rings.maps.lookup(copy.load);
          map && map.getDefiningOp<MakeTensorMapOp>())
        result.send(map);
    }
  }
  return result;
}

/// Mark the place of the message that lets a producer copy for a loop in place. The place is before
/// the loop. It is before the loop around it if later stores are known to be to other places.
void KernelExpander::addMarkers(const LoopSchedule &schedule) {
  scf::ForOp loop = schedule.getLoop();
  auto mark = [&](OpBuilder &builder) {
    transfers.markers.insert(ProxyFenceOp::create(builder, loop.getLoc(), /*of_memory=*/true));
  };
  SmallVector<const BoxAccess *> copied;
  for (const ScheduledCopy &copy : schedule.getCopies())
    copied.push_back(&transfers.rings.boxes.find(copy.load)->second);
  OpBuilder builder(loop);
  std::optional<ResultOverlap> overlap = ResultOverlap::find(loop, copied, analysis);
  if (!overlap)
    return mark(builder);
  builder.setInsertionPoint(overlap->getLoop());
  Value may = overlap->emit(builder, loop.getLoc());
  overlaps.push_back(may);
  mark(builder);
  builder.setInsertionPoint(loop);
  auto branch = scf::IfOp::create(builder, loop.getLoc(), may, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  mark(builder);
}

void KernelExpander::planMessages() {
  for (const LoopSchedule &schedule : transfers.schedules)
    if (isInPlace(schedule))
      addMarkers(schedule);
  slice = getSlice(program);
  for (Operation *marker : transfers.markers)
    slice->signalWrites(marker);
  for (Value may : overlaps)
    slice->send(may);
  transfers.messages = slice->getMessages();
}
