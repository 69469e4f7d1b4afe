// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Columns of a layout of registers are zero or distinct powers of two, so the bits of a
// thread number that are free are those with a zero column: clearing them gives the
// thread that acts for the same element. Within a warp its value comes by a shuffle,
// between warps through shared memory, where each representative has its own place.

#include "Replication.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The bits of a thread's number that tell copies from each other.
struct FreeBits {
  uint64_t lanes, warps;
  unsigned threadBits; ///< bits of a thread's number
};

FreeBits getFreeBits(Type type, Operation *op) {
  unsigned numWarps = tilegpu::getNumWarps(op).value_or(1);
  unsigned threadBits = tilegpu::kLaneBits + llvm::Log2_64(numWarps);
  uint64_t allLanes = (1u << tilegpu::kLaneBits) - 1, allWarps = numWarps - 1;
  tilegpu::LayoutAttr layout = tilegpu::getLayoutAttr(type);
  if (!layout)
    return {allLanes, allWarps, threadBits};
  Place free = layout.getLayout().freeBits();
  uint64_t uncounted = allWarps & ~uint64_t(layout.getNumWarps() - 1);
  return {free[static_cast<unsigned>(HwDim::Lane)],
          free[static_cast<unsigned>(HwDim::Warp)] | uncounted, threadBits};
}

/// A column for each bit of a thread's number, that gives representatives the numbers 0,
/// 1, 2, ... and a copy the number of its representative.
f2::Columns compact(const FreeBits &free) {
  uint64_t mask = free.lanes | free.warps << tilegpu::kLaneBits;
  f2::Columns columns;
  uint64_t next = 1;
  for (unsigned bit = 0; bit < free.threadBits; ++bit) {
    bool isFree = mask >> bit & 1;
    columns.push_back(isFree ? 0 : next);
    next <<= isFree ? 0 : 1;
  }
  return columns;
}

unsigned countRepresentatives(const FreeBits &free) {
  return 1u << (free.threadBits - llvm::popcount(free.lanes) - llvm::popcount(free.warps));
}

} // namespace

int64_t tessera::getDeliveryBytes(Type type, Operation *op) {
  FreeBits free = getFreeBits(type, op);
  if (free.warps == 0)
    return 0;
  return getNumRegisters(type) * countRepresentatives(free) *
         tilegpu::getElementBytes(getElementTypeOrSelf(type));
}

LogicalResult tessera::deliver(ThreadBuilder &thread, Operation *op, Type type,
                               SmallVectorImpl<Value> &registers) {
  FreeBits free = getFreeBits(type, op);
  if (free.warps == 0) {
    if (free.lanes == 0)
      return success();
    Value lane = thread.bitAnd(emitLaneId(thread), ~free.lanes & 31);
    for (Value &value : registers)
      value = emitShuffle(thread, value, lane);
    return success();
  }

  FailureOr<Value> scratch = emitScratch(thread, op);
  if (failed(scratch))
    return failure();
  int32_t bytes = tilegpu::getElementBytes(getElementTypeOrSelf(type));
  int32_t stride = bytes * static_cast<int32_t>(countRepresentatives(free));
  Value place = emitApply(thread, compact(free), emitThreadId(thread));
  Value base = thread.advance(*scratch, thread.mul(place, bytes));
  // Copies write what they have to the place of their representative only if they are it.
  Value isRepresentative = emitRepresentativePredicate(thread, type, op);
  emitGuarded(thread, isRepresentative, [&] {
    for (auto [i, value] : llvm::enumerate(registers))
      thread.create<LLVM::StoreOp>(toMemory(thread, value),
                                   thread.advance(base, static_cast<int32_t>(i) * stride), bytes);
  });
  emitBarrier(thread);
  for (auto [i, value] : llvm::enumerate(registers)) {
    Type element = value.getType();
    Type stored = element.isInteger(1) ? thread.intType(8) : element;
    Value loaded = thread.create<LLVM::LoadOp>(
        stored, thread.advance(base, static_cast<int32_t>(i) * stride), bytes);
    value = fromMemory(thread, loaded, element);
  }
  return success();
}
