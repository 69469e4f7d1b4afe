// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelRings.h"

#include "tessera/Dialect/TileGPU/IR/CopyHints.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

Value KernelRings::getTile(OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                           Value slot) const {
  tile::LoadOp load = copy.load;
  return channel.getTile(builder, load.getLoc(), rings.lookup(load), slot, copy.tile);
}

void KernelRings::emitCopies(OpBuilder &builder, const LoopSchedule &schedule,
                             const ScheduledChannel &channel, ChannelPlace place,
                             IRMapping mapping) const {
  const Channel &of = channels[getIndex(channel)];
  int64_t bytes = 0;
  for (unsigned index : channel.copies)
    bytes += schedule.getCopies()[index].tile.getNumBytes();
  Value full = of.beginToFill(builder, schedule.getLoop().getLoc(), place, bytes);
  for (unsigned index : channel.copies)
    emitCopy(builder, schedule.getCopies()[index], of, place.slot, full, mapping);
}

void KernelRings::emitCopy(OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                           Value slot, Value full, IRMapping mapping) const {
  tile::LoadOp load = copy.load;
  const BoxAccess &box = boxes.find(load)->second;
  Location at = load.getLoc();
  SmallVector<Value> coordinates;
  for (unsigned dim = 0; dim < box.getDims().size(); ++dim)
    coordinates.push_back(box.emitCoordinate(builder, at, dim, mapping));
  Value tile = getTile(builder, copy, channel, slot);
  auto made = TMALoadOp::create(builder, at, mapping.lookupOrDefault(maps.lookup(load)),
                                coordinates, tile, full, copy.isMulticast);
  CopyHints::of(load).attachTo(made);
}
