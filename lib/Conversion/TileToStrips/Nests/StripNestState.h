// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of the code that writes the loops of a group. StripNest.cpp has the plain ones, and
// TransposedNest.cpp those that transpose blocks between loads and stores.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H

#include "Grouping/CostModel.h"
#include "StripNest.h"

namespace tessera {

class StripNest {
public:
  StripNest(strips::GroupOp group, AccessAnalysis &access, const StripOptions &options,
            int64_t &scratchEnd)
      : group(group), access(access), options(options), emitter(group, access),
        shape(group.getShape()), scratchEnd(scratchEnd) {}

  mlir::LogicalResult run();

private:
  void chooseLanes();
  bool sumsRowsAnywhere();
  void remark();
  llvm::StringRef describeNoLanes();
  llvm::DenseMap<mlir::Operation *, std::optional<unsigned>> findNarrowLoads();
  bool isNeighbour(mlir::Operation *op, unsigned dim, int64_t count);
  void countAccess(mlir::Operation *op, unsigned dim, int64_t count, StripWork &work);
  void chooseTransposition(int64_t widest, double otherwise);
  void visitAccesses(mlir::Value value, llvm::ArrayRef<Index> index,
                     llvm::DenseSet<mlir::Value> &seen,
                     llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<Index>)> visit);
  void visitRoots(llvm::ArrayRef<Index> index,
                  llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<Index>)> visit);

  void emitOuterLoops(unsigned dim);
  void emitLaneLoops();
  void emitTransposedBlocks();
  mlir::Value emitRowsEnd(mlir::Value value, llvm::SmallVectorImpl<unsigned> &bounded);
  llvm::SmallVector<mlir::Value> emitRows(mlir::Value value, const Index &outer, const Index &inner,
                                          mlir::Value rowsEnd, llvm::ArrayRef<unsigned> bounded);
  void emitReducedLoop(llvm::ArrayRef<Index> strips);
  void emitStrips(llvm::ArrayRef<IndexTuple> strips,
                  llvm::SmallVectorImpl<mlir::Value> &accumulators);
  void findNonTemporalStores();
  llvm::SmallVector<MaskLeaf> collectLoadMasks(mlir::Value value, unsigned dim,
                                               llvm::ArrayRef<Index> at);
  mlir::Value emitMainEnd(llvm::ArrayRef<MaskLeaf> leaves, llvm::ArrayRef<mlir::Value> bounds,
                          int64_t step);
  void storeResults(tile::ReduceOp reduce, llvm::ArrayRef<Index> index, mlir::ValueRange values);

  void keepElements(llvm::ArrayRef<mlir::Value> elements, mlir::Value position);
  llvm::SmallVector<mlir::Value> foldKept(tile::ReduceOp reduce, unsigned first, int64_t count,
                                          int64_t width);
  mlir::Value getLineBuffer(unsigned slot, mlir::Type element, int64_t count);

  unsigned countAccumulators() const;
  bool haveNeutralElements() const;
  llvm::SmallVector<mlir::Value> makeNeutralElements(unsigned copies);
  llvm::SmallVector<mlir::Value> combineCopies(llvm::ArrayRef<mlir::Value> accumulators,
                                               unsigned copies);

  strips::GroupOp group;
  AccessAnalysis &access;
  const StripOptions &options;
  StripEmitter emitter;
  llvm::ArrayRef<int64_t> shape;

  llvm::SmallVector<mlir::Operation *> roots; ///< stores and writes of computed values
  /// True if a launch's stores are non-temporal, for those that may.
  llvm::DenseMap<mlir::Operation *, mlir::Value> nonTemporal;
  llvm::SmallVector<tile::ReduceOp> reductions;
  std::optional<unsigned> axis;          ///< of the reductions
  std::optional<unsigned> laneDim;       ///< none: scalars
  std::optional<unsigned> transposedDim; ///< along which stores have their lanes
  int64_t lanes = 1;
  unsigned unroll = 1;
  StripWork chosen{1};    ///< what the lane dimension was chosen for
  unsigned expensive = 0; ///< operations that are functions
  IndexTuple index;       ///< of the loops opened so far

  bool inFixedOrder;                    ///< reductions are folded as the interpreter does
  llvm::SmallVector<mlir::Value> lines; ///< where their elements are kept for that, by slot
  int64_t &scratchEnd;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H
