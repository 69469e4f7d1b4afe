// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The resources of rings: one formula for all planners and for the verifier of schedules.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H

#include "Programs/LoopDots.h"

#include <algorithm>

namespace tessera::tilegpu {

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

/// Programs of so many warps that share an SM, by registers of a thread and bytes of shared memory.
inline int64_t countProgramsOfSM(const GPUMachine &machine, int64_t warps, int64_t registers,
                                 int64_t bytes) {
  return machine.countBlocks(GPUMachine::kWarpSize * warps,
                             std::min(registers, GPUMachine::kMaxRegisters), bytes);
}

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_RINGMEMORY_H
