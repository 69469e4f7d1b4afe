// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocation analysis, written down as attributes; and the error where a program
// needs more shared memory than there is, before anything is compiled for it.
//
// Scratch memory can be had for less, in rounds: the op goes through it in slices. That takes more
// barriers, so it is done only if a program would not fit otherwise. The largest live scratch gets
// more rounds, until all fits.
//
// If rounds do not suffice, and there are no rings in the way that could be shorter, buffers that
// are filled before a loop are filled in its iterations:
//
//     %b = local_alloc %x                           for ... {
//     for ... {                                       %b = local_alloc %x
//       %y = local_load %b                            %y = local_load %b
//       ...                                           ...
//
// The other buffers of an iteration then use the same bytes, but %x needs registers for longer.

#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Support/EmitRemark.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

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

static bool isRing(Operation *owner) {
  auto alloc = dyn_cast<LocalAllocOp>(owner);
  return alloc && alloc.getType().isRing();
}

/// The innermost block that contains all of `ops`, reached from `outer` through loops and branches
/// alone, whose ops all warps of the program execute. Null if there is none.
static Block *findCommonBlock(ArrayRef<Operation *> ops, Block *outer) {
  Block *block = ops.front()->getBlock();
  auto containsAll = [&](Block *candidate) {
    return llvm::all_of(ops, [&](Operation *op) { return candidate->findAncestorOpInBlock(*op); });
  };
  while (block && !containsAll(block))
    block = block->getParentOp()->getBlock();
  for (Block *around = block; around && around != outer;) {
    Operation *parent = around->getParentOp();
    if (!isa<scf::ForOp, scf::WhileOp, scf::IfOp>(parent))
      return nullptr;
    around = parent->getBlock();
  }
  return block;
}

/// Moves a buffer that is filled with a tile to its readers, if these are all within one block of a
/// loop or branch, and read when they are reached. False if nothing moves.
static bool moveToReaders(LocalAllocOp alloc) {
  if (!alloc.getSource())
    return false;
  llvm::SetVector<Operation *> moved; // the buffer and its views, each behind its operands
  SmallVector<Operation *> readers;
  moved.insert(alloc);
  for (unsigned i = 0; i < moved.size(); ++i)
    for (Operation *user : moved[i]->getUsers()) {
      if (isa<MemDescTransOp>(user))
        moved.insert(user);
      else if (isa<LocalLoadOp>(user))
        readers.push_back(user);
      else
        return false;
    }
  if (readers.empty())
    return false;
  Block *block = findCommonBlock(readers, alloc->getBlock());
  if (!block || block == alloc->getBlock())
    return false;
  Operation *first = block->findAncestorOpInBlock(*readers.front());
  for (Operation *reader : readers)
    if (Operation *here = block->findAncestorOpInBlock(*reader); here->isBeforeInBlock(first))
      first = here;
  for (Operation *op : moved)
    op->moveBefore(first);
  return true;
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
      while (needLess(allocation, calls, target.getMachine()->sharedBytes))
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

  using Placed = SharedMemoryAllocation::Placed;

  /// Changes one op so that a function needs less, if it needs more than there is. False if none
  /// does, or nothing can be changed.
  bool needLess(const SharedMemoryAllocation &allocation, const CallGraph &calls, int64_t limit) {
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      ArrayRef<Placed> places = allocation.getPlaces(function);
      auto isInTheWay = [&](const Placed &place) {
        return !place.interval.isFrame && llvm::any_of(places, [&](const Placed &other) {
          return other.offset + other.interval.bytes > limit &&
                 other.interval.meets(place.interval);
        });
      };
      // The largest come first.
      if (llvm::any_of(places, [&](const Placed &place) {
            return isInTheWay(place) && takeMoreRounds(place.interval.owner);
          }))
        return true;
      // Shorter rings cost less. The error makes the compiler try them.
      if (llvm::any_of(places, [&](const Placed &place) {
            return isInTheWay(place) && isRing(place.interval.owner);
          }))
        continue;
      if (llvm::any_of(places, [&](const Placed &place) {
            return isInTheWay(place) && fillLater(place.interval);
          }))
        return true;
    }
    return false;
  }

  bool takeMoreRounds(Operation *op) {
    auto scratch = dyn_cast<ScratchOpInterface>(op);
    unsigned rounds = scratch ? scratch.getMoreRounds() : 0;
    if (rounds)
      scratch->setAttr(kScratchRoundsAttr, Builder(&getContext()).getI32IntegerAttr(rounds));
    return rounds;
  }

  bool fillLater(const SharedMemoryInterval &interval) {
    auto alloc = dyn_cast<LocalAllocOp>(interval.owner);
    if (!alloc || !moveToReaders(alloc))
      return false;
    emitRemark(alloc, RemarkKind::SharedMemoryRounds)
        << "a tile is written to shared memory in each iteration, since its "
        << named("bytes", interval.bytes) << " bytes do not fit for a whole loop";
    return true;
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
