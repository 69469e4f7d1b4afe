// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Within a warp, a shuffle delivers the value of a representative. Between warps, it goes through
// shared memory, where each representative has its own place. Between the blocks of a cluster, it
// goes through the shared memory of the representative's block.

#include "Delivery.h"

#include "ClusterWaits.h"
#include "tessera/Analysis/SharedMemory/Replication.h"

using namespace mlir;
using namespace tessera;

/// A column for each bit of a thread's number, that gives representatives the numbers 0,
/// 1, 2, ... and a copy the number of its representative.
static f2::Columns compact(const Replication &copies) {
  uint64_t mask = copies.getMask();
  f2::Columns columns;
  uint64_t next = 1;
  for (unsigned bit = 0; bit < copies.threadBits; ++bit) {
    bool isFree = mask >> bit & 1;
    columns.push_back(isFree ? 0 : next);
    next <<= isFree ? 0 : 1;
  }
  return columns;
}

int64_t tessera::getDeliveryBytes(Type type, Operation *op) {
  Replication copies = Replication::of(type, op);
  if (copies.warps == 0 && copies.blocks == 0)
    return 0;
  return getNumRegisters(type) * copies.countRepresentatives() *
         tilegpu::getElementBytes(getElementTypeOrSelf(type));
}

LogicalResult tessera::deliver(ThreadBuilder &thread, Operation *op, Type type,
                               SmallVectorImpl<Value> &registers) {
  Replication copies = Replication::of(type, op);
  if (copies.warps == 0 && copies.blocks == 0) {
    if (copies.lanes == 0)
      return success();
    Value lane = thread.bitAnd(emitLaneId(thread), ~copies.lanes & 31);
    for (Value &value : registers)
      value = emitShuffle(thread, value, lane);
    return success();
  }

  FailureOr<Value> scratch = emitScratch(thread, op);
  if (failed(scratch))
    return failure();
  int32_t bytes = tilegpu::getElementBytes(getElementTypeOrSelf(type));
  int32_t stride = bytes * static_cast<int32_t>(copies.countRepresentatives());
  Value place = emitApply(thread, compact(copies), emitThreadId(thread));
  Value distance = thread.mul(place, bytes), base = thread.advance(*scratch, distance);
  // Copies write what they have to the place of their representative only if they are it.
  Value isRepresentative = emitRepresentativePredicate(thread, type, op);
  emitGuarded(thread, isRepresentative, [&] {
    for (auto [i, value] : llvm::enumerate(registers))
      thread.create<LLVM::StoreOp>(toMemory(thread, value),
                                   thread.advance(base, static_cast<int32_t>(i) * stride), bytes);
  });
  if (copies.blocks == 0) {
    emitBarrier(thread);
  } else {
    // From the block of the representative, which is the own one for some.
    emitClusterBarrier(thread);
    Value block = thread.bitAnd(emitBlockRank(thread), ~copies.blocks);
    base = thread.advance(emitRemoteAddress(thread, *scratch, block), distance);
  }
  for (auto [i, value] : llvm::enumerate(registers)) {
    Type element = value.getType();
    Type stored = element.isInteger(1) ? thread.intType(8) : element;
    Value loaded = thread.create<LLVM::LoadOp>(
        stored, thread.advance(base, static_cast<int32_t>(i) * stride), bytes);
    value = fromMemory(thread, loaded, element);
  }
  if (copies.blocks != 0)
    emitClusterRelease(thread);
  return success();
}
