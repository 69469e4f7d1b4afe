// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of the code that writes the loops of a group. StripNest.cpp has the plain ones, and
// TransposedNest.cpp those that transpose blocks between loads and stores.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H

#include "StripPlan.h"

namespace tessera {

class StripNest : StripPlan {
public:
  StripNest(strips::GroupOp group, AccessAnalysis &access, const StripOptions &options,
            int64_t &scratchEnd)
      : StripPlan(group, access, options), emitter(group, access), scratchEnd(scratchEnd) {}

  mlir::LogicalResult run();

private:
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

  llvm::SmallVector<unsigned> findIncreasing(tile::ReduceOp reduce);
  bool haveNeutralElements() const;
  llvm::SmallVector<mlir::Value> makeNeutralElements(unsigned copies);
  llvm::SmallVector<mlir::Value> combineCopies(llvm::ArrayRef<mlir::Value> accumulators,
                                               unsigned copies);

  StripEmitter emitter;
  /// True if a launch's stores are non-temporal, for those that may.
  llvm::DenseMap<mlir::Operation *, mlir::Value> nonTemporal;
  IndexTuple index;                     ///< of the loops opened so far
  llvm::SmallVector<mlir::Value> lines; ///< where elements of reductions are kept, by slot
  int64_t &scratchEnd;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNESTSTATE_H
