// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the form of a group's loops: the dimension of the lanes, or the two dimensions of blocks
// that are transposed, and the number of strips in an iteration.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPPLAN_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPPLAN_H

#include "Grouping/CostModel.h"
#include "StripEmitter.h"
#include "StripNest.h"

namespace tessera {

class StripPlan {
public:
  StripPlan(strips::GroupOp group, AccessAnalysis &access, const StripOptions &options);

protected:
  /// Emits a remark about what was chosen, and why.
  void remark();
  /// Why there are no lanes, if so.
  llvm::StringRef describeNoLanes();
  /// The loads of smaller tiles than the group's, with the dimension of theirs that has the lanes.
  llvm::DenseMap<mlir::Operation *, std::optional<unsigned>> findNarrowLoads();
  void visitAccesses(mlir::Value value, llvm::ArrayRef<Index> index,
                     llvm::DenseSet<mlir::Value> &seen,
                     llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<Index>)> visit);
  void visitRoots(llvm::ArrayRef<Index> index,
                  llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<Index>)> visit);
  unsigned countAccumulators() const;

  strips::GroupOp group;
  AccessAnalysis &access;
  const StripOptions &options;
  llvm::ArrayRef<int64_t> shape;

  llvm::SmallVector<mlir::Operation *> roots; ///< stores and writes of computed values
  llvm::SmallVector<tile::ReduceOp> reductions;
  std::optional<unsigned> axis;          ///< of the reductions
  std::optional<unsigned> laneDim;       ///< none: scalars
  std::optional<unsigned> transposedDim; ///< along which stores have their lanes
  int64_t lanes = 1;
  unsigned unroll = 1;
  bool inFixedOrder; ///< reductions are folded as the interpreter does

private:
  void chooseLanes();
  void chooseTransposition(int64_t widest, double otherwise);
  bool sumsRowsAnywhere();
  bool isNeighbour(mlir::Operation *op, unsigned dim, int64_t count);
  void countAccess(mlir::Operation *op, unsigned dim, int64_t count, StripWork &work);

  StripWork chosen{1};    ///< what the lane dimension was chosen for
  unsigned expensive = 0; ///< operations that are functions
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPPLAN_H
