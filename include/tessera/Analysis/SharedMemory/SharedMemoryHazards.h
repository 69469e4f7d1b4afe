// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the places where the warps of a program must synchronise because of shared memory.
//
// Warps run on their own. If one op writes bytes of shared memory and a later one accesses them, or
// the reverse, a barrier is needed. All warps must finish the first op before any warp starts the
// second. The analysis follows the accesses that no barrier has ordered yet through the function,
// around loops until nothing changes:
//
//     write A        {A w}
//     read  A        needs a barrier, which empties the set; then {A r}
//     read  A        no hazard: {A r}
//     write B        no hazard: {A r, B w}
//
// An op with scratch writes it, meets inside itself, and reads it. Lanes that exchange within their
// warp use a part of the scratch that belongs to the warp. So the next conversion of the same kind
// at the same offset, often that of the next iteration, needs no barrier.
//
// An asynchronous copy writes at some time between its start and the wait for it, and no
// barrier ends that. Its write is in flight until a wait has been, when it becomes a write
// like any other, which the other warps see behind the next barrier:
//
//     read  slot of R              {R r}
//     async_wait {pending = 1}     {R r, R w}       of copies in flight: any may have landed
//     async_copy slot of R         needs a barrier; then {R w in flight}
//     read  slot of R              no hazard: {R r, R w in flight}
//
// The pass that makes a ring ensures that slots in flight and slots in use differ. A copy to any
// other buffer must be complete before the buffer is used.
//
// A dot of a warpgroup that is begun (warpgroup_dot with is_async) reads until a wait covers it.
// Other warps may wait later, so a barrier ends these reads only behind the wait:
//
//     warpgroup_dot of A, async    {A r, A r in flight}
//     barrier                      {A r in flight}
//     warpgroup_wait               {A r}
//     write A                      needs a barrier
//
// If the result of a dot is not used, there is no wait. Then the barrier gets one in front.
//
// A store by TMA (tma_store) also reads until its own wait. If each warpgroup stores a
// part of the buffer that only it wrote, a barrier of the group suffices, which orders no other
// accesses. Barriers in shared memory order the partition of a warp_specialize; this analysis
// ignores it.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYHAZARDS_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYHAZARDS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAlias.h"
#include "llvm/ADT/MapVector.h"

#include <set>

namespace tessera {

/// Bytes that an op reads or writes.
struct SharedMemoryAccess {
  int64_t begin, end;
  bool isWrite;
  mlir::Operation *op;
  /// The `local_alloc` of the ring that this is a slot of; null if it is none.
  mlir::Operation *ring = nullptr;
  /// A copy that has not been waited for: an asynchronous write, or a read by TMA or by a dot.
  bool isInFlight = false;
  /// For a read in flight: the groups of stores by TMA, or of dots, committed since, its own
  /// included, as far as they are counted.
  unsigned groups = 0;
  /// True if a dot that is begun reads here, also after its wait. The ring's maker orders slots.
  bool isOfBegunDot = false;
  /// The `local_alloc` of a buffer of which each warpgroup has a part of its own; null if
  /// it is none.
  mlir::Operation *ofGroups = nullptr;
  /// True if the warps of each group have met since.
  bool hasGroupMet = false;
  /// The layouts between which lanes convert, where each warp writes and reads only a part that
  /// they and the place say; null elsewhere.
  mlir::Type warpsFrom{}, warpsTo{};

  bool operator<(const SharedMemoryAccess &other) const {
    return std::tie(begin, end, isWrite, op, isInFlight, groups, isOfBegunDot, hasGroupMet) <
           std::tie(other.begin, other.end, other.isWrite, other.op, other.isInFlight, other.groups,
                    other.isOfBegunDot, other.hasGroupMet);
  }
  /// True if it is enough for the warps of each group to meet.
  bool isWithinGroup(const SharedMemoryAccess &other) const {
    return ofGroups && ofGroups == other.ofGroups;
  }
  /// True if what each warp does here meets only what it did itself.
  bool isWithinWarps(const SharedMemoryAccess &other) const {
    return warpsFrom && begin == other.begin && end == other.end && warpsFrom == other.warpsFrom &&
           warpsTo == other.warpsTo;
  }
  bool conflictsWith(const SharedMemoryAccess &other) const {
    if (((isInFlight || isOfBegunDot) && ring && ring == other.ring) || isWithinWarps(other))
      return false;
    if (hasGroupMet && isWithinGroup(other))
      return false;
    return (isWrite || other.isWrite) && begin < other.end && other.begin < end;
  }
};

/// True if all warps meet inside an op: between writing its scratch and reading it. Lanes of one
/// warp that exchange elements need no other warp.
bool meetsInside(mlir::Operation *op);

/// A pair of accesses with no barrier between them.
struct SharedMemoryHazard {
  SharedMemoryAccess earlier, later;

  bool isWithinGroup() const { return !isOfDotInFlight() && earlier.isWithinGroup(later); }
  /// True if the barrier needs a wait for all dots in front.
  bool isOfDotInFlight() const { return earlier.isInFlight && earlier.isOfBegunDot; }
};

class SharedMemoryHazards {
public:
  /// For a function whose buffers have places. `frameBytes` says how much a call's
  /// callee uses.
  SharedMemoryHazards(mlir::FunctionOpInterface function, const SharedMemoryAlias &alias,
                      llvm::function_ref<int64_t(mlir::CallOpInterface)> frameBytes);

  /// The ops that need a barrier just before them. Each has its hazard, which decides whether a
  /// barrier per warpgroup suffices, and whether dots must end first. With these barriers there is
  /// no other hazard.
  llvm::ArrayRef<std::pair<mlir::Operation *, SharedMemoryHazard>> getBarriers() const {
    return barriers;
  }

  /// Ops that use what a copy in flight writes: a wait is missing, which no barrier makes
  /// up for.
  llvm::ArrayRef<SharedMemoryHazard> getMissingWaits() const { return missingWaits; }

private:
  using Pending = std::set<SharedMemoryAccess>;

  void visitOp(mlir::Operation *op, Pending &pending);
  void meetBefore(mlir::Operation *op, Pending &pending) const;
  llvm::SmallVector<SharedMemoryAccess> getAccesses(mlir::Operation *op) const;

  const SharedMemoryAlias &alias;
  llvm::function_ref<int64_t(mlir::CallOpInterface)> frameBytes;
  llvm::SmallVector<std::pair<mlir::Operation *, SharedMemoryHazard>> barriers;
  llvm::DenseMap<mlir::Operation *, unsigned> hasBarrier;
  llvm::SmallVector<SharedMemoryHazard> missingWaits;
  llvm::DenseSet<mlir::Operation *> missesWait;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYHAZARDS_H
