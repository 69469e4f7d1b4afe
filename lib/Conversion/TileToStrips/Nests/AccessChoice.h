// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choices for each load and store of a group once its lanes are chosen: the access of its
// strips, the rows to prefetch, and the remarks.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ACCESSCHOICE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ACCESSCHOICE_H

#include "StripEmitter.h"
#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// How a nest runs over its lanes.
struct LaneChoice {
  std::optional<unsigned> laneDim;       ///< none: scalars
  std::optional<unsigned> transposedDim; ///< along which stores have their lanes
  int64_t lanes = 1;
  int64_t shortestRun = 2; ///< of lanes that are neighbours and are not gathered
};

/// The number of iterations of the loop over `dim` by which a load's row is prefetched; 0 if the
/// machine does that better. The loops over all dimensions but that of the lanes are open in it.
unsigned getPrefetchDistance(tile::LoadOp load, AccessAnalysis &access, unsigned dim,
                             const LaneChoice &choice);

/// Fetches the rows of a group's loads that lie at addresses from memory some iterations ahead of
/// the loop over `dim`, in which `index` is.
void emitPrefetches(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                    unsigned dim, llvm::ArrayRef<Index> index, const LaneChoice &choice);

/// Fetches the first of these rows, before that loop: those that no iteration of it fetches.
void emitFirstPrefetches(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                         unsigned dim, llvm::ArrayRef<Index> index, const LaneChoice &choice);

/// Rows that the next program of this thread loads, fetched while this one computes.
class FetchAhead {
public:
  FetchAhead(tile::FuncOp kernel, const HostMachine &machine);

  /// Builds the addresses of what the next program loads where this one has the group's
  /// loads, at the start of `emitter`.
  void collect(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
               const LaneChoice &choice);
  /// True if a load has been collected.
  bool isCollected(tile::LoadOp load) const { return collected.contains(load); }

  /// Fetches in an iteration of the loop over `strips` strips from `position` on what is collected
  /// for this group.
  void emit(StripEmitter &emitter, strips::GroupOp group, mlir::Value position, int64_t elements);

private:
  struct Row {
    mlir::Value address; ///< i64
    int64_t elementBytes;
  };
  mlir::Value buildForNextProgram(mlir::OpBuilder &builder, mlir::Value value);

  const HostMachine &machine;
  /// The group that fetches what this one loads: the last one over as many elements.
  llvm::DenseMap<strips::GroupOp, strips::GroupOp> fetchers;
  llvm::DenseMap<strips::GroupOp, llvm::SmallVector<Row, 2>> rows; ///< by fetcher
  llvm::DenseSet<mlir::Operation *> collected;
  /// The next program's value in place of a value; null if unknown.
  llvm::DenseMap<mlir::Value, mlir::Value> nextValues;
};

/// Says of each load and store of a group how it is done, and why not better. `whyNoLanes` is why
/// there are none, if so; `narrow` has the loads of smaller tiles than the group's, each with the
/// dimension of its own that has the lanes.
void remarkAccesses(strips::GroupOp group, AccessAnalysis &access, const LaneChoice &choice,
                    llvm::StringRef whyNoLanes,
                    const llvm::DenseMap<mlir::Operation *, std::optional<unsigned>> &narrow,
                    llvm::function_ref<bool(tile::StoreOp)> nonTemporal,
                    const FetchAhead &fetchAhead);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ACCESSCHOICE_H
