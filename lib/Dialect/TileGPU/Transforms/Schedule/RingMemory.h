// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The resources of rings: one formula for the planner and for the verifier of schedules.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H

#include "Programs/LoopDots.h"

#include <algorithm>

namespace tessera::tilegpu {

/// The resources of an SM that the schedule of a loop or kernel takes, for any number of slots.
struct RingResources {
  const GPUMachine &machine;
  /// Warps of a program, and registers of a thread.
  int64_t warps = 0, registers = 0;
  /// Bytes of a slot of each ring, and of all else in shared memory.
  int64_t slotBytes = 0, otherBytes = 0;

  int64_t getBytes(int64_t slots) const { return slots * slotBytes + otherBytes; }
  /// Slots that fit into so many bytes.
  int64_t countFitting(int64_t bytes) const { return (bytes - otherBytes) / slotBytes; }
  /// Programs that share an SM, by their registers and by shared memory.
  int64_t countPrograms(int64_t slots) const {
    return machine.countBlocks(GPUMachine::kWarpSize * warps,
                               std::min(registers, GPUMachine::kMaxRegisters), getBytes(slots));
  }
  /// Bytes that a program may have without reducing the programs that share an SM with so many
  /// slots.
  int64_t getSharedBytes(int64_t slots) const {
    return machine.getSharedBytes(countPrograms(slots));
  }
  /// As many slots as copies need to arrive in time, up to those that fit into so many bytes; at
  /// least `wanted`.
  int64_t getTimelySlots(int64_t wanted, int64_t timely, int64_t bytes) const {
    return std::max(wanted, std::min(timely, countFitting(bytes)));
  }
};

/// Bytes of one slot of each of these rings, by the tiles in their slots.
template <typename Tiles> int64_t getBytesOfSlots(Tiles &&tiles) {
  int64_t bytes = 0;
  for (MemDescType tile : tiles)
    bytes += tile.getRing(1).getSlotBytes();
  return bytes;
}

/// Bytes of `limit` that a loop leaves to rings: without exchanges of elements, and without other
/// buffers that are there at the same time. Copies replace the ops in `replaced`.
inline int64_t getBytesForRings(mlir::scf::ForOp loop, int64_t limit, const ReplacedOps &replaced) {
  return limit - kExchangeBytes - getOtherBytes(loop, replaced);
}

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H
