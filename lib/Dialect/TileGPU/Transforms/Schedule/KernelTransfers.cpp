// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTransfers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

bool PartitionSide::has(const LoopSchedule &schedule) const {
  return llvm::any_of(schedule.getChannels(), [&](const ScheduledChannel &channel) {
    return has(transfers.rings.getIndex(channel));
  });
}

bool PartitionSide::hasTransfers(Operation *op) const {
  return llvm::any_of(transfers.ofLoop,
                      [&](const auto &entry) {
                        return op->isAncestor(entry.first) &&
                               has(transfers.schedules[entry.second]);
                      }) ||
         llvm::any_of(transfers.programCopies,
                      [&](const ScheduledCopy &copy) {
                        return op->isAncestor(copy.load) && has(copy.channel);
                      }) ||
         llvm::any_of(transfers.markers, [&](Operation *marker) { return op->isAncestor(marker); });
}

SmallVector<unsigned> PartitionSide::getChannels(Operation *op) const {
  llvm::SmallDenseSet<unsigned> used;
  auto add = [&](unsigned channel) {
    if (has(channel))
      used.insert(channel);
  };
  for (const auto &[loop, index] : transfers.ofLoop)
    if (op->isAncestor(loop))
      for (const ScheduledChannel &channel : transfers.schedules[index].getChannels())
        add(transfers.rings.getIndex(channel));
  for (const ScheduledCopy &copy : transfers.programCopies)
    if (op->isAncestor(copy.load))
      add(copy.channel);
  if (llvm::any_of(transfers.messages,
                   [&](const auto &entry) { return op->isAncestor(entry.first); }))
    used.insert(transfers.getMailboxChannel());
  SmallVector<unsigned> result(used.begin(), used.end());
  llvm::sort(result);
  return result;
}

void PartitionSide::emitPlaces(OpBuilder &builder, Location loc) {
  places.clear();
  for (const Channel &channel : transfers.rings.channels)
    places.push_back(channel.getFirst(builder, loc));
  places.push_back(transfers.mailbox.getFirst(builder, loc));
}

SmallVector<Value> PartitionSide::getPlaces(ArrayRef<unsigned> used) const {
  SmallVector<Value> result;
  for (unsigned channel : used)
    result.append({places[channel].slot, places[channel].phase});
  return result;
}

void PartitionSide::setPlaces(ArrayRef<unsigned> used, ValueRange from) {
  for (auto [index, channel] : llvm::enumerate(used))
    places[channel] = {from[2 * index], from[2 * index + 1]};
}
