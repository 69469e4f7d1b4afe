// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The levels of a loop nest, and the indices of elements in it.
//
// Loops form *levels*, outermost first. A value is computed at the outermost level at which its
// operands are known, before the first loop there. It is kept until that level ends: a row's
// address is computed once per row.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPLEVELS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPLEVELS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <map>
#include <optional>

namespace tessera {

/// One dimension of an index: `value + offset`, and the `lanes - 1` that follow.
struct Index {
  mlir::Value value; ///< of type index; null for 0
  int64_t offset = 0;
  int64_t lanes = 1;
  unsigned level = 0; ///< where `value` is known

  bool operator==(const Index &other) const {
    return value == other.value && offset == other.offset && lanes == other.lanes;
  }
};
using IndexTuple = llvm::SmallVector<Index, 4>;

/// A computed value: a scalar (the same for all lanes) or a vector, and its level.
struct Lanes {
  mlir::Value value;
  unsigned level = 0;
  bool isVector() const { return mlir::isa<mlir::VectorType>(value.getType()); }
};

/// The dimension of an index that stands for lanes, if there is one.
std::optional<unsigned> getLaneDim(llvm::ArrayRef<Index> index);

/// The kinds of values that are computed from another one, once a level.
enum class Derived {
  Element,       ///< of a tile, at `index`; or a pointer's address
  Constant,      ///< `number`, without a value
  Shifted,       ///< plus `number`
  Sum,           ///< with `other`
  Product,       ///< with `other`
  Quotient,      ///< by `other`
  Remainder,     ///< by `other`
  Min,           ///< of it and `other`
  Max,           ///< of it and `other`
  Vector,        ///< of `number` equal lanes
  Int32,         ///< the index as an i32
  Flat,          ///< the buffer with one dimension
  IsAligned,     ///< true if it is a multiple of `number`
  IsNonTemporal, ///< both it and `other`: conditions of a non-temporal store
};

/// The key of something that is computed from a value.
struct DerivedKey {
  Derived kind;
  mlir::Value value;
  mlir::Value other = {};
  int64_t number = 0;
  IndexTuple index = {};

  bool operator<(const DerivedKey &key) const;
};

/// Where code goes, the indices of elements, and what is kept of values.
class StripLevels {
public:
  /// Code goes before `anchor`.
  explicit StripLevels(mlir::Operation *anchor);

  mlir::Location getLoc() const { return loc; }
  void setLoc(mlir::Location location) { loc = location; }

  unsigned getLevel() const { return levels.size() - 1; }
  /// A builder at the end of the innermost level, for what has an effect.
  mlir::OpBuilder &atEnd();
  /// A builder before the outermost loop, for what no loop changes.
  mlir::OpBuilder &atStart() { return at(0); }
  /// Opens a loop; what follows goes into it.
  mlir::scf::ForOp beginLoop(mlir::Value lower, mlir::Value upper, int64_t step,
                             mlir::ValueRange inits = {});
  /// Closes the innermost loop, which gives `yielded` to its next iteration.
  void endLoop(mlir::ValueRange yielded = {});
  /// Opens a conditional without results.
  mlir::scf::IfOp beginIf(mlir::Value condition);
  void endIf();
  /// The same for one with results: what follows goes into the first of its two blocks.
  mlir::scf::IfOp beginIf(mlir::Value condition, mlir::TypeRange results);
  /// Ends the first block with these results; what follows goes into the second.
  void beginElse(mlir::scf::IfOp ifOp, mlir::ValueRange yielded);
  void endElse(mlir::ValueRange yielded) { endLoop(yielded); }

  /// A scalar of type index.
  mlir::Value getIndexValue(const Index &index);
  mlir::Value getIndexConstant(int64_t value);
  /// The scalar as a vector of `lanes` equal elements (`lanes` 1: as it is).
  mlir::Value broadcast(Lanes lanes, int64_t count);
  /// `element` or a vector of it.
  static mlir::Type typed(mlir::Type element, int64_t lanes);
  /// The type of elements in registers: i64 for pointers.
  static mlir::Type registerType(mlir::Type element);

protected:
  /// A builder at a level, for what has no effect.
  mlir::OpBuilder &at(unsigned level);
  /// A value that is kept at a level; empty at first.
  Lanes &getKept(unsigned level, DerivedKey key) { return levels[level].memo[std::move(key)]; }
  /// The same at any level; null if nothing is kept.
  const Lanes *findKept(const DerivedKey &key) const;

  /// Arithmetic of indices, done once for the same two: values are kept by what they are asked
  /// for with.
  template <typename Op>
  mlir::Value combineIndices(Derived kind, unsigned level, mlir::Value a, mlir::Value b) {
    Lanes &kept = getKept(level, {kind, a, b});
    if (!kept.value)
      kept = {Op::create(at(level), loc, a, b), level};
    return kept.value;
  }
  /// A constant vector 0, stride, 2 * stride, ...
  mlir::Value laneOffsets(int64_t lanes, int64_t stride, mlir::Type element);
  /// The row-major position of an index, and how far its lanes are apart.
  Lanes linearIndex(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> shape, int64_t &stride);
  IndexTuple relinearize(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to);

  mlir::Location loc;
  mlir::OpBuilder builder;

private:
  struct Level {
    mlir::Block *block;
    mlir::Operation *values; ///< values go before this one; null: at the end
    mlir::Operation *end;    ///< effects go before this one; null: at the end
    std::map<DerivedKey, Lanes> memo;
  };

  void push(mlir::Block *block);
  void noteFirst(mlir::Operation *nested);
  std::pair<Lanes, int64_t> splitLinearIndex(llvm::ArrayRef<Index> index,
                                             llvm::ArrayRef<int64_t> shape, int64_t &stride);
  Lanes addConstant(Lanes sum, int64_t constant);

  llvm::SmallVector<Level> levels;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPLEVELS_H
