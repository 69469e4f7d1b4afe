// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the warps of a program must meet because of global memory.
//
// A lane's own accesses keep the order in which they are written: element i of a tile that is
// stored and element i of one that is loaded, or two scalars. One thread that does both keeps it
// by itself. But a tile may be in one layout where it is loaded and in another where it is
// stored; and where there are more threads than elements, each that has a copy of an element
// loads it for itself, while one stores it, their representative (Analysis/Replication.h):
//
//     x = load p : tensor<64xf32>, of 128 threads      warps 0 and 1, and 2 and 3, hold all of x
//     store p, 0                                       warps 0 and 1 store
//     y = x + 1                                        in warps 2 and 3 x may be 0
//
// Such a pair needs a barrier in between, if the two may be of one place (MemoryOrder.h): loads
// and stores through different arguments may, for one array can be passed twice. Any barrier of
// all warps will do, one inside of an op that exchanges elements through shared memory, too.
//
// Lanes are those of accesses with the same shape, or with extents of 1 where the other one's
// are not. What other lanes have done is ordered by `tile.barrier` alone. Accesses that are
// done by TMA are not of the matter: who leaves them to TMA has seen to their order.

#ifndef TESSERA_ANALYSIS_ORDER_LANEORDER_H
#define TESSERA_ANALYSIS_ORDER_LANEORDER_H

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
  /// What accesses have in common that the same threads do for each lane. Null for calls.
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
  /// Of two kinds of accesses, whether lanes that they have in common may be two threads'. There
  /// are few kinds, and many pairs.
  llvm::DenseMap<std::pair<Kind, Kind>, bool> differInThreads;
  llvm::SmallSetVector<mlir::Operation *, 4> barriers;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_ORDER_LANEORDER_H
