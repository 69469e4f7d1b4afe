// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the warps of a program must meet because of shared memory.
//
// Warps run on their own. If one op writes bytes of shared memory and a later one reads
// them (or the other way round, or both write), all warps must have finished the first
// before any starts the second. The analysis follows the accesses that no barrier has
// ordered yet through the function, around loops until nothing changes:
//
//     write A        {A w}
//     read  A        needs a barrier, which empties the set; then {A r}
//     read  A        no hazard: {A r}
//     write B        no hazard: {A r, B w}
//
// An op with scratch writes it, meets inside itself, and reads it.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORYHAZARDS_H
#define TESSERA_ANALYSIS_SHAREDMEMORYHAZARDS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/SharedMemoryAlias.h"
#include "llvm/ADT/MapVector.h"

#include <set>

namespace tessera {

/// Bytes that an op reads or writes.
struct SharedMemoryAccess {
  int64_t begin, end;
  bool isWrite;
  mlir::Operation *op;

  bool operator<(const SharedMemoryAccess &other) const {
    return std::tie(begin, end, isWrite, op) <
           std::tie(other.begin, other.end, other.isWrite, other.op);
  }
  bool conflictsWith(const SharedMemoryAccess &other) const {
    return (isWrite || other.isWrite) && begin < other.end && other.begin < end;
  }
};

/// A pair of accesses with no barrier between them.
struct SharedMemoryHazard {
  SharedMemoryAccess earlier, later;
};

class SharedMemoryHazards {
public:
  /// For a function whose buffers have places. `frameBytes` says how much a call's
  /// callee uses.
  SharedMemoryHazards(mlir::FunctionOpInterface function, const SharedMemoryAlias &alias,
                      llvm::function_ref<int64_t(mlir::CallOpInterface)> frameBytes);

  /// The ops that need a barrier just before them, each with a hazard that says why.
  /// With these barriers there is no other hazard.
  llvm::ArrayRef<std::pair<mlir::Operation *, SharedMemoryHazard>> getBarriers() const {
    return barriers;
  }

private:
  using Pending = std::set<SharedMemoryAccess>;

  Pending visit(mlir::Block &block, Pending pending);
  Pending visitBranch(mlir::RegionBranchOpInterface branch, Pending pending);
  void visitOp(mlir::Operation *op, Pending &pending);
  llvm::SmallVector<SharedMemoryAccess> getAccesses(mlir::Operation *op) const;

  const SharedMemoryAlias &alias;
  llvm::function_ref<int64_t(mlir::CallOpInterface)> frameBytes;
  llvm::SmallVector<std::pair<mlir::Operation *, SharedMemoryHazard>> barriers;
  llvm::DenseSet<mlir::Operation *> hasBarrier;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORYHAZARDS_H
