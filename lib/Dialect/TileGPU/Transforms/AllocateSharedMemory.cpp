// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocation analysis, written down as attributes; and the error where a program
// needs more shared memory than there is, before anything is compiled for it.

#include "tessera/Analysis/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUALLOCATESHAREDMEMORYPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Buffers that an error names.
static constexpr unsigned kNamedBuffers = 3;

/// What a buffer is for, in a user's words.
static StringRef describe(Operation *owner) {
  if (isa<LocalAllocOp>(owner))
    return "keep this tile in shared memory";
  if (isa<ConvertLayoutOp>(owner))
    return "exchange the elements of this tile between warps";
  if (isa<CallOpInterface>(owner))
    return "call this function";
  return "compute this";
}

namespace {

struct TileGPUAllocateSharedMemoryPass
    : tessera::tilegpu::impl::TileGPUAllocateSharedMemoryPassBase<TileGPUAllocateSharedMemoryPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    CallGraph calls(module);
    if (failed(calls.verifyAcyclic()))
      return signalPassFailure();
    SharedMemoryAllocation allocation(module, calls);

    auto target = module->getAttrOfType<StringAttr>(kTargetAttr);
    for (FunctionOpInterface function : calls.getCalleesFirst())
      if (target && failed(checkLimit(function, allocation, target)))
        return signalPassFailure();

    Builder builder(&getContext());
    for (FunctionOpInterface function : calls.getCalleesFirst())
      for (const SharedMemoryAllocation::Placed &place : allocation.getPlaces(function)) {
        if (place.interval.isFrame)
          continue;
        bool isBuffer = isa<LocalAllocOp>(place.interval.owner);
        place.interval.owner->setAttr(isBuffer ? StringRef(kSharedOffsetAttr)
                                               : StringRef(kScratchOffsetAttr),
                                      builder.getI32IntegerAttr(place.offset));
        ++numBuffers;
      }
    module->setAttr(kSharedBytesAttr, builder.getI32IntegerAttr(allocation.getBytes()));
  }

  LogicalResult checkLimit(FunctionOpInterface function, const SharedMemoryAllocation &allocation,
                           StringAttr target) {
    int64_t needed = allocation.getFrameBytes(function), limit = getSharedMemoryLimit(target);
    if (needed <= limit)
      return success();
    InFlightDiagnostic error = function->emitError("needs ")
                               << needed << " bytes of shared memory, but a program on "
                               << target.getValue() << " has at most " << limit
                               << "; use smaller tiles, or fewer of them at once";
    for (const SharedMemoryAllocation::Placed &place :
         allocation.getPlaces(function).take_front(kNamedBuffers))
      error.attachNote(place.interval.owner->getLoc())
          << place.interval.bytes << " bytes to " << describe(place.interval.owner);
    return error;
  }
};

} // namespace
