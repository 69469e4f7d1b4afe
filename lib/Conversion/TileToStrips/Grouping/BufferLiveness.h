// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tiles of a function can share a buffer, and where in the arena buffers lie.
//
// The operations of a function are numbered in order, regions nested. A tile is live from its
// definition to its last use. A use in a loop of a tile from outside counts as a use at the end of
// the loop. Tiles in one *class* share a buffer: a carried tile with its initial and next value, a
// tile that is updated in place with the old one.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_BUFFERLIVENESS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_BUFFERLIVENESS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

namespace tessera {

class BufferLiveness {
public:
  explicit BufferLiveness(tile::FuncOp func);

  /// Class numbers are stable once the constructor is done.
  unsigned getClass(mlir::Value tile) const;
  unsigned getNumClasses() const { return classes.size(); }
  mlir::MemRefType getType(unsigned number) const { return classes[number].type; }
  bool isUsed(unsigned number) const { return !classes[number].intervals.empty(); }

  /// A buffer of its own for a value that lives for one moment, before `op`.
  unsigned addTemporary(mlir::MemRefType type, mlir::Operation *op);

  /// Lays the buffers out; returns the size of the arena. Offsets follow by class.
  int64_t allocate(llvm::SmallVectorImpl<int64_t> &offsets) const;

private:
  struct Interval {
    unsigned begin, end;
    mlir::Value tile; ///< null for a moment at which a copy is made
  };
  struct Class {
    mlir::MemRefType type;
    llvm::SmallVector<Interval> intervals;
  };

  void number(mlir::Region &region);
  void addTile(mlir::Value tile);
  unsigned find(mlir::Value tile) const;
  bool mayTouch(mlir::Value dying, mlir::Value born) const;
  bool interfere(unsigned a, unsigned b) const;
  /// Merges the classes of two tiles unless both are live at once.
  bool tryMerge(mlir::Value a, mlir::Value b);
  void forceMerge(mlir::Value a, mlir::Value b);
  void mergeLoopsAndBranches(mlir::Operation *op);
  void mergeInPlace(mlir::Operation *op);
  void addCopyMoment(mlir::Value target, mlir::Operation *op);

  llvm::DenseMap<mlir::Operation *, std::pair<unsigned, unsigned>> positions;
  llvm::DenseMap<unsigned, mlir::Operation *> opAt;
  llvm::DenseMap<mlir::Value, unsigned> classOf;
  llvm::SmallVector<Class> classes;
  unsigned counter = 0;
};

/// True if `group` reads `tile` at the index at which it computes its results, and at
/// no other: the results may then replace it in its buffer.
bool isReadInPlace(strips::GroupOp group, mlir::Value tile);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_BUFFERLIVENESS_H
