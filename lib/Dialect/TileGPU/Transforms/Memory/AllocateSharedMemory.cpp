// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocation analysis, written down as attributes; and the error where a program
// needs more shared memory than there is, before anything is compiled for it.
//
// Scratch memory can be had for less, in rounds: the op goes through it in slices. That takes more
// barriers, so it is done only if a program would not fit otherwise. The largest live scratch gets
// more rounds, until all fits.

#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Support/EmitRemark.h"

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

/// The purpose of a buffer, in a user's words.
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
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    SharedMemoryAllocation allocation(module, calls);
    if (target)
      while (takeMoreRounds(allocation, calls, target.getMachine()->sharedBytes))
        allocation = SharedMemoryAllocation(module, calls);
    for (FunctionOpInterface function : calls.getCalleesFirst())
      if (target && failed(checkLimit(function, allocation, *target.getMachine())))
        return signalPassFailure();

    Builder builder(&getContext());
    for (FunctionOpInterface function : calls.getCalleesFirst())
      for (const SharedMemoryAllocation::Placed &place : allocation.getPlaces(function)) {
        if (place.interval.isFrame)
          continue;
        if (unsigned rounds = getScratchRounds(place.interval.owner); rounds != 1) {
          emitRemark(place.interval.owner, RemarkKind::SharedMemoryRounds)
              << "exchange through shared memory takes " << named("rounds", rounds) << " rounds of "
              << named("bytes", place.interval.bytes)
              << " bytes, since the tile does not fit at once";
        }
        bool isBuffer = isa<LocalAllocOp>(place.interval.owner);
        place.interval.owner->setAttr(isBuffer ? StringRef(kSharedOffsetAttr)
                                               : StringRef(kScratchOffsetAttr),
                                      builder.getI32IntegerAttr(place.offset));
      }
    module->setAttr(kSharedBytesAttr, builder.getI32IntegerAttr(allocation.getBytes()));
  }

  /// Lets one op with scratch go in more rounds, if a function needs more than there is. False
  /// if none does, or nothing can.
  bool takeMoreRounds(const SharedMemoryAllocation &allocation, const CallGraph &calls,
                      int64_t limit) {
    using Placed = SharedMemoryAllocation::Placed;
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      ArrayRef<Placed> places = allocation.getPlaces(function);
      auto sticksOut = [&](const Placed &place) {
        return place.offset + place.interval.bytes > limit;
      };
      // The largest come first.
      for (const Placed &place : places) {
        auto scratch = dyn_cast<ScratchOpInterface>(place.interval.owner);
        auto isInTheWay = [&](const Placed &other) {
          return sticksOut(other) && other.interval.meets(place.interval);
        };
        if (!scratch || place.interval.isFrame || !llvm::any_of(places, isInTheWay))
          continue;
        if (unsigned rounds = scratch.getMoreRounds()) {
          scratch->setAttr(kScratchRoundsAttr, Builder(&getContext()).getI32IntegerAttr(rounds));
          return true;
        }
      }
    }
    return false;
  }

  LogicalResult checkLimit(FunctionOpInterface function, const SharedMemoryAllocation &allocation,
                           const GPUMachine &machine) {
    int64_t needed = allocation.getFrameBytes(function), limit = machine.sharedBytes;
    if (needed <= limit)
      return success();
    // The largest comes first, and is the place to look at.
    auto places = allocation.getPlaces(function).take_front(kNamedBuffers);
    Location where = places.empty() ? function->getLoc() : places.front().interval.owner->getLoc();
    InFlightDiagnostic error = emitUserError(where, "E069")
                               << "needs " << needed << " bytes of shared memory, but a program on "
                               << machine.name << " has at most " << limit
                               << "; use smaller tiles, or fewer live ones";
    for (const SharedMemoryAllocation::Placed &place : places) {
      Diagnostic &note = error.attachNote(place.interval.owner->getLoc());
      note << place.interval.bytes << " bytes to " << describe(place.interval.owner);
      if (unsigned rounds = getScratchRounds(place.interval.owner); rounds != 1)
        note << ", in " << rounds << " rounds";
    }
    return error;
  }
};

} // namespace
