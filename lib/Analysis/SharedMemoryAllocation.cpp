// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemoryAllocation.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

using Place = SharedMemoryAllocation::Place;

/// The lowest offset at which `interval` overlaps nothing that is live with it.
static int64_t findOffset(const SharedMemoryInterval &interval, ArrayRef<Place> placed) {
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (const Place &other : placed)
    if (other.interval.meets(interval))
      taken.push_back({other.offset, other.offset + other.interval.bytes});
  llvm::sort(taken);
  int64_t offset = 0;
  for (auto [begin, end] : taken) {
    if (offset + interval.bytes <= begin)
      break;
    offset = std::max<int64_t>(offset, llvm::alignTo(end, kSharedAlignment));
  }
  return offset;
}

static SmallVector<Place> placeAll(ArrayRef<SharedMemoryInterval> intervals) {
  SmallVector<SharedMemoryInterval> order(intervals);
  // Frames first: they cannot be moved.
  llvm::stable_sort(order, [](const SharedMemoryInterval &a, const SharedMemoryInterval &b) {
    return std::pair(b.isFrame, b.bytes) < std::pair(a.isFrame, a.bytes);
  });
  SmallVector<Place> places;
  for (const SharedMemoryInterval &interval : order)
    places.push_back({interval, interval.isFrame ? 0 : findOffset(interval, places)});
  llvm::stable_sort(
      places, [](const Place &a, const Place &b) { return a.interval.bytes > b.interval.bytes; });
  return places;
}

SharedMemoryAllocation::SharedMemoryAllocation(ModuleOp module, const CallGraph &calls) {
  SharedMemoryAlias alias(module);
  SymbolTableCollection symbols;
  for (FunctionOpInterface function : calls.getCalleesFirst()) {
    SharedMemoryLiveness liveness(function, alias, [&](CallOpInterface call) {
      return frames.lookup(call.resolveCallableInTable(&symbols));
    });
    SmallVector<Place> &placed = places[function];
    placed = placeAll(liveness.getIntervals());
    int64_t bytes = 0;
    for (const Place &place : placed)
      bytes = std::max(bytes, place.offset + place.interval.bytes);
    frames[function] = bytes;
  }
}

ArrayRef<Place> SharedMemoryAllocation::getPlaces(FunctionOpInterface function) const {
  auto found = places.find(function);
  return found == places.end() ? ArrayRef<Place>() : ArrayRef<Place>(found->second);
}

int64_t SharedMemoryAllocation::getBytes() const {
  int64_t bytes = 0;
  for (auto [function, frame] : frames)
    bytes = std::max(bytes, frame);
  return bytes;
}
