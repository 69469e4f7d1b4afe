// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies in bulk: what those of boxes (TensorMapOps.cpp) and those of bytes (BulkOps.cpp)
// have in common.

#ifndef TESSERA_LIB_SIMULATOR_BULKOPS_H
#define TESSERA_LIB_SIMULATOR_BULKOPS_H

#include "Machine.h"
#include "MemoryOps.h"

namespace tessera::simulator {

/// The destination of a copy to shared memory, and the barrier that it reports to.
struct CopyTarget {
  Cta *cta = nullptr;
  uint64_t address = 0, barrier = 0;
};

/// The destination of a lane's copy: one address, or, with a mask, the same address of each block
/// that it names. Reports a barrier that lies elsewhere, and blocks that are not there.
llvm::SmallVector<CopyTarget, 1> findTargets(Warp &warp, const Instr &instr, unsigned lane,
                                             uint64_t to, uint64_t barrier,
                                             std::optional<uint64_t> mask);

/// A copy of a lane to a place, not begun: it has no bytes yet.
BulkCopy makeCopy(Warp &warp, const Instr &instr, unsigned lane, const CopyTarget &target);

/// A copy of a lane from `bytes` bytes of its block's shared memory, not begun: it has what
/// is there now, and nowhere to go. Null, and reported, if they may not be read. `place`:
/// where byte `offset` of the copy lies.
std::shared_ptr<BulkStore> makeStore(Warp &warp, const Instr &instr, unsigned lane,
                                     uint64_t address, uint64_t bytes,
                                     std::function<uint64_t(uint64_t offset)> place);
/// It writes these bytes of global memory, if it may.
void addRow(Warp &warp, unsigned lane, BulkStore &store, uint64_t target, uint64_t offset,
            uint64_t bytes);
void beginStore(Warp &warp, unsigned lane, std::shared_ptr<BulkStore> store);

/// The function that combines each element in memory with the copy's element by `reduction`.
Combine makeCombine(const WarpAccess &reduction);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_BULKOPS_H
