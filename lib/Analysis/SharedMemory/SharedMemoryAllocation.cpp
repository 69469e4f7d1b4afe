// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

using PlacedBuffer = SharedMemoryAllocation::Placed;

int64_t tessera::getSharedOffset(Operation *op, StringRef attribute) {
  auto offset = op->getAttrOfType<IntegerAttr>(attribute);
  return offset ? offset.getInt() : 0;
}

LogicalResult tessera::verifyAllocated(ModuleOp module) {
  if (module->hasAttr(kSharedBytesAttr))
    return success();
  return module.emitError("has no places in shared memory yet (tilegpu-allocate-shared-memory)");
}

static int64_t getAlignment(const SharedMemoryInterval &interval) {
  auto alloc = dyn_cast_or_null<tilegpu::LocalAllocOp>(interval.owner);
  if (!alloc)
    return kSharedAlignment;
  ArrayRef<uint64_t> columns = alloc.getType().getLayout().getLayout().columns(HwDim::Offset);
  bool isSwizzled =
      llvm::any_of(columns, [](uint64_t column) { return !llvm::has_single_bit(column); });
  return isSwizzled ? GPUMachine::kSwizzleAlignment : kSharedAlignment;
}

/// The lowest offset at which `interval` overlaps nothing that is live with it.
static int64_t findOffset(const SharedMemoryInterval &interval, ArrayRef<PlacedBuffer> placed) {
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (const PlacedBuffer &other : placed)
    if (other.interval.meets(interval))
      taken.push_back({other.offset, other.offset + other.interval.bytes});
  llvm::sort(taken);
  int64_t offset = 0;
  for (auto [begin, end] : taken) {
    if (offset + interval.bytes <= begin)
      break;
    offset = std::max<int64_t>(offset, llvm::alignTo(end, getAlignment(interval)));
  }
  return offset;
}

static SmallVector<PlacedBuffer> placeAll(ArrayRef<SharedMemoryInterval> intervals) {
  SmallVector<SharedMemoryInterval> order(intervals);
  // Frames first: they cannot be moved.
  llvm::sort(order, [](const SharedMemoryInterval &a, const SharedMemoryInterval &b) {
    return std::tuple(b.isFrame, b.bytes, a.begin) < std::tuple(a.isFrame, a.bytes, b.begin);
  });
  SmallVector<PlacedBuffer> places;
  for (const SharedMemoryInterval &interval : order)
    places.push_back({interval, interval.isFrame ? 0 : findOffset(interval, places)});
  llvm::sort(places, [](const PlacedBuffer &a, const PlacedBuffer &b) {
    return std::tuple(b.interval.bytes, a.interval.begin) <
           std::tuple(a.interval.bytes, b.interval.begin);
  });
  return places;
}

SharedMemoryAllocation::SharedMemoryAllocation(ModuleOp module, const CallGraph &calls) {
  SharedMemoryAlias alias(module);
  SymbolTableCollection symbols;
  for (FunctionOpInterface function : calls.getCalleesFirst()) {
    SharedMemoryLiveness liveness(function, alias, [&](CallOpInterface call) {
      return frames.lookup(call.resolveCallableInTable(&symbols));
    });
    SmallVector<PlacedBuffer> &placed = places[function];
    placed = placeAll(liveness.getIntervals());
    int64_t bytes = 0;
    for (const PlacedBuffer &place : placed)
      bytes = std::max(bytes, place.offset + place.interval.bytes);
    frames[function] = bytes;
  }
}

ArrayRef<PlacedBuffer> SharedMemoryAllocation::getPlaces(FunctionOpInterface function) const {
  auto found = places.find(function);
  return found == places.end() ? ArrayRef<PlacedBuffer>() : ArrayRef<PlacedBuffer>(found->second);
}

int64_t SharedMemoryAllocation::getBytes() const {
  int64_t bytes = 0;
  for (auto [function, frame] : frames)
    bytes = std::max(bytes, frame);
  return bytes;
}
