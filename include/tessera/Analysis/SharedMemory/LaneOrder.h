// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the places where the warps of a program must synchronise because of global memory.
//
// A lane's own accesses keep program order: element i of a stored tile and element i of a loaded
// one, or two scalars. If one thread does both, the order holds. But a tile may have different
// layouts at its load and at its store. If there are more threads than elements, each thread with a
// copy of an element loads it, while only their representative stores it (Replication.h):
//
//     x = load p : tensor<64xf32>, of 128 threads      warps 0 and 1, and 2 and 3, hold all of x
//     store p, 0                                       warps 0 and 1 store
//     y = x + 1                                        in warps 2 and 3 x may be 0
//
// Such a pair needs a barrier in between if the two may alias (MemoryOrder.h). Accesses through
// different arguments may, since one array can be passed twice. Any barrier of all warps suffices,
// also one inside an op that exchanges elements through shared memory.
//
// Lanes are those of accesses with the same shape, or with extents of 1 where the other one's are
// not. Only `tile.barrier` orders accesses of other lanes. TMA accesses are not considered: the
// pass that made them has ordered them.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_LANEORDER_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_LANEORDER_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace tessera {

class LaneOrder {
public:
  /// For a function whose tiles have layouts, and whose scratch has a size.
  explicit LaneOrder(mlir::FunctionOpInterface function);

  /// The ops that need a `tile.barrier` just before them. With these lanes keep their order.
  llvm::ArrayRef<mlir::Operation *> getBarriers() const { return barriers.getArrayRef(); }

private:
  /// The common properties of accesses that the same threads execute for each lane. Null for calls.
  using Kind = const void *;

  /// An access that no barrier has come after; a copy that has not been waited for is in
  /// flight. Those of one kind which only read, or may write, are next to each other.
  struct Pending {
    Kind kind;
    bool mayWrite;
    mlir::Operation *op;
    bool isInFlight = false;

    bool operator<(const Pending &other) const {
      return std::tie(kind, mayWrite, op, isInFlight) <
             std::tie(other.kind, other.mayWrite, other.op, other.isInFlight);
    }
    /// Behind all of this kind that do the same, and before all others.
    Pending getLastOfItsKind() const {
      return {kind, mayWrite, reinterpret_cast<mlir::Operation *>(UINTPTR_MAX), true};
    }
  };
  using PendingSet = std::set<Pending>;

  void visitOp(mlir::Operation *op, PendingSet &pending);
  Pending describe(mlir::Operation *op) const;
  bool needsBarrier(const PendingSet &pending, const Pending &later);
  bool mayDifferInThreads(const Pending &earlier, const Pending &later);

  bool hasClusters;
  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  /// True if different threads may execute a common lane of two kinds of accesses. There are few
  /// kinds, and many pairs.
  llvm::DenseMap<std::pair<Kind, Kind>, bool> differInThreads;
  llvm::SmallSetVector<mlir::Operation *, 4> barriers;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_LANEORDER_H
