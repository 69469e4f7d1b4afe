// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computing the elements of tiles, strip by strip, on demand.
//
// A value of a group is asked for at an *index*: a scalar for each dimension, of which
// at most one stands for a strip of neighbouring lanes. Operations that move elements
// only change the index; all others become the same operation on a vector, or on a
// scalar where no operand varies along the lanes.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPVALUES_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPVALUES_H

#include "StripLevels.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

#include <set>

namespace tessera {

/// A mask, split into what holds for all lanes of a strip and what does not.
struct StripMask {
  mlir::Value uniform; ///< i1; null for true
  mlir::Value vector;  ///< vector of i1; null for true
  unsigned level = 0;
};

/// One conjunct of a mask at an index.
struct MaskLeaf {
  mlir::Value value;
  IndexTuple index;

  bool operator==(const MaskLeaf &other) const {
    return value == other.value && index == other.index;
  }
};

/// Follows an operation that only moves elements: its operand, and the index at which
/// that has the element of `index`. None if it takes more than that.
std::optional<std::pair<mlir::Value, IndexTuple>> stepThrough(mlir::Operation *op,
                                                              llvm::ArrayRef<Index> index);

/// Computes elements and masks. A subclass accesses memory.
class StripValues : public StripLevels {
public:
  /// Code goes before `anchor`.
  StripValues(mlir::Operation *anchor, AccessAnalysis &access)
      : StripLevels(anchor), access(access) {}
  virtual ~StripValues() = default;

  Lanes evaluate(mlir::Value value, llvm::ArrayRef<Index> index);

  // Masks.
  void collectMaskLeaves(mlir::Value mask, llvm::ArrayRef<Index> index,
                         llvm::SmallVectorImpl<MaskLeaf> &leaves);
  /// True if a conjunct is the same for all lanes.
  bool isUniform(const MaskLeaf &leaf);
  /// The number of leading lanes of its dimension for which a conjunct holds, of type
  /// index and at most `extent`; null if it is no bound. The lanes begin at 0.
  mlir::Value getBound(const MaskLeaf &leaf, int64_t extent);
  /// In the next loop, until nothing is assumed again, these conjuncts count as true.
  void assume(llvm::ArrayRef<MaskLeaf> leaves);
  void assumeNothing() { assumed.clear(); }
  /// The mask of an access that is done at `accessLevel` or further in.
  StripMask evaluateMask(mlir::Value mask, llvm::ArrayRef<Index> index, unsigned accessLevel);

protected:
  /// The elements of a load or of a buffer.
  virtual Lanes load(tile::LoadOp op, llvm::ArrayRef<Index> index) = 0;
  virtual Lanes read(strips::ReadOp op, llvm::ArrayRef<Index> index) = 0;
  virtual Lanes gather(tile::GatherOp op, llvm::ArrayRef<Index> index) = 0;

  AccessAnalysis &access;

private:
  Lanes evaluateAsWritten(mlir::Value value, llvm::ArrayRef<Index> index);
  void evaluateOperands(mlir::Value value, llvm::ArrayRef<Index> index);
  bool isAssumed(mlir::Value value, llvm::ArrayRef<Index> index) const;
  bool isKnown(mlir::Value value, llvm::ArrayRef<Index> index) const;
  Lanes compute(mlir::Value value, llvm::ArrayRef<Index> index);
  Lanes computeElementwise(mlir::Operation *op, llvm::ArrayRef<Index> index);
  Lanes computeRange(tile::RangeOp op, const Index &index);
  Lanes computeLaneByLane(mlir::Value value, llvm::ArrayRef<Index> index);
  Lanes computeRunByRun(mlir::Value value, llvm::ArrayRef<Index> index, int64_t length);
  Lanes computeMoved(mlir::Value value, llvm::ArrayRef<Index> index);

  std::set<DerivedKey> assumed;
  unsigned assumedLevel = 0;
  unsigned numNested = 0; ///< evaluations that are under way
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPVALUES_H
