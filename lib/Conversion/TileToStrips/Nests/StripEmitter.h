// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computing the elements of tiles, strip by strip, on demand.
//
// A value of a group is asked for at an *index*: a scalar for each dimension, of which
// at most one stands for a strip of neighbouring lanes. Operations that move elements
// only change the index; all others become the same operation on a vector, or on a
// scalar where no operand varies along the lanes.
//
// Loops form *levels*, outermost first. A value is computed at the outermost level at which its
// operands are known, before the first loop there. It is kept until that level ends: a row's
// address is computed once per row.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

#include <map>
#include <set>

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

/// What is computed from a value once a level, and kept.
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

/// A store whose operands have been computed.
struct PreparedStore {
  /// A run of neighbours within the strip.
  struct Run {
    mlir::Value address; ///< an llvm.ptr
    mlir::Value mask;    ///< a vector of i1; null for true
  };
  mlir::Value value;      ///< as memory keeps it
  mlir::Value address;    ///< an llvm.ptr, a vector of them, or a flat index into `buffer`
  mlir::Value buffer;     ///< null for memory
  int64_t stride = 1;     ///< of the lanes, in elements (buffers)
  unsigned alignment = 1; ///< in bytes (memory)
  StripMask mask;
  llvm::SmallVector<Run, 0> runs; ///< in place of an address, in the order of their lanes
  /// Under which of these conditions, the first that holds, the store is non-temporal,
  /// by pieces aligned to so many bytes.
  llvm::SmallVector<std::pair<mlir::Value, unsigned>, 2> nonTemporal;
};

/// The dimension of an index that stands for lanes, if there is one.
std::optional<unsigned> getLaneDim(llvm::ArrayRef<Index> index);

/// Follows an operation that only moves elements: its operand, and the index at which
/// that has the element of `index`. None if it takes more than that.
std::optional<std::pair<mlir::Value, IndexTuple>> stepThrough(mlir::Operation *op,
                                                              llvm::ArrayRef<Index> index);

/// How the lanes of a strip lie in memory, where they come in runs.
struct LaneRuns {
  int64_t length;  ///< lanes of a run, at most those of the strip; a power of two
  bool isRepeated; ///< a run is one element over and over, and not neighbours
};

/// The longest runs of strips of `lanes` along `dim` that begin at multiples of their number. None
/// if only strides relate the lanes, or nothing does.
std::optional<LaneRuns> getLaneRuns(const AccessRun &run, int64_t lanes);

/// True if lanes along `dim` are so near each other in memory that a load of them takes all
/// that lies in between.
bool isShortStride(const AccessForm &form, unsigned dim);

class StripEmitter {
public:
  /// Code goes before `anchor`.
  StripEmitter(mlir::Operation *anchor, AccessAnalysis &access);

  mlir::Location getLoc() const { return loc; }
  void setLoc(mlir::Location location) { loc = location; }

  // Levels.
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

  // Values.
  Lanes evaluate(mlir::Value value, llvm::ArrayRef<Index> index);
  /// A scalar of type index.
  mlir::Value getIndexValue(const Index &index);
  mlir::Value getIndexConstant(int64_t value);
  /// The scalar as a vector of `lanes` equal elements (`lanes` 1: as it is).
  mlir::Value broadcast(Lanes lanes, int64_t count);

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

  // Memory (StripMemory.cpp).
  /// From now on loads that may (ZeroRows.h) read the row of zeros at this i64.
  void setZeroRow(mlir::Value address) { zeroRow = address; }
  /// From now on runs of fewer lanes are gathered.
  void setShortestRun(int64_t lanes) { shortestRun = lanes; }
  Lanes load(tile::LoadOp op, llvm::ArrayRef<Index> index);
  Lanes read(strips::ReadOp op, llvm::ArrayRef<Index> index);
  Lanes gather(tile::GatherOp op, llvm::ArrayRef<Index> index);
  /// `value` is what the operation stores at that index.
  /// `nonTemporal`: under which condition the store may be non-temporal; null if it may not.
  PreparedStore prepareStore(tile::StoreOp op, llvm::ArrayRef<Index> index, Lanes value,
                             mlir::Value nonTemporal = {});
  PreparedStore prepareWrite(strips::WriteOp op, llvm::ArrayRef<Index> index, Lanes value);
  void perform(const PreparedStore &store);
  /// Some stores, all of them at once: in any order.
  void perform(llvm::ArrayRef<PreparedStore> stores);
  /// `element` or a vector of it.
  static mlir::Type typed(mlir::Type element, int64_t lanes);
  /// The type of elements in registers: i64 for pointers.
  static mlir::Type registerType(mlir::Type element);

private:
  struct Level {
    mlir::Block *block;
    mlir::Operation *values; ///< values go before this one; null: at the end
    mlir::Operation *end;    ///< effects go before this one; null: at the end
    std::map<DerivedKey, Lanes> memo;
  };

  mlir::OpBuilder &at(unsigned level);
  void push(mlir::Block *block);
  void noteFirst(mlir::Operation *nested);
  static DerivedKey makeKey(mlir::Value value, llvm::ArrayRef<Index> index);
  static DerivedKey makeMaskKey(mlir::Value value, llvm::ArrayRef<Index> index);
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
  IndexTuple relinearize(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to);
  Lanes linearIndex(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> shape, int64_t &stride);
  std::pair<Lanes, int64_t> splitLinearIndex(llvm::ArrayRef<Index> index,
                                             llvm::ArrayRef<int64_t> shape, int64_t &stride);
  Lanes addConstant(Lanes sum, int64_t constant);
  /// Arithmetic of indices, done once for the same two: values are kept by what they are asked
  /// for with.
  template <typename Op>
  mlir::Value combineIndices(Derived kind, unsigned level, mlir::Value a, mlir::Value b);
  mlir::Value flatBuffer(mlir::Value buffer);
  mlir::Value laneOffsets(int64_t lanes, int64_t stride, mlir::Type element);
  struct Address;
  /// `splitsOffsets`: strips that are known to be so far from each other share one address,
  /// from which each is a constant number of elements away.
  /// `mayRepeat`: runs of one element count.
  Address getAddress(mlir::Value pointers, llvm::ArrayRef<Index> index, bool mayBeStrided = false,
                     bool splitsOffsets = false, bool mayRepeat = false);
  /// The same as a base and offsets to it, if the pointers are such sums.
  bool splitAddresses(mlir::Value pointers, llvm::ArrayRef<Index> index, Address &address);
  bool splitOffsets(mlir::Value offsets, llvm::ArrayRef<Index> index, int64_t bytes,
                    Address &address);
  void addToBase(Lanes offset, int64_t bytes, Address &address);
  mlir::Value isAligned(const Address &address, unsigned bytes);

  // Strips made of runs (ShortRuns.cpp).
  Address getRunAddresses(mlir::Value pointers, llvm::ArrayRef<Index> index, LaneRuns runs);
  /// True if a mask may be true for some lanes of a run and false for others.
  bool splitsRuns(mlir::Value mask, llvm::ArrayRef<Index> index, int64_t length);
  /// The mask of each run, where lanes have masks at all: of each lane, or (of repeated
  /// elements) of the run. `strip` is that of the strip, `level` rises to that of theirs.
  llvm::SmallVector<mlir::Value> getRunMasks(mlir::Value mask, llvm::ArrayRef<Index> index,
                                             const Address &address, const StripMask &strip,
                                             unsigned &level);
  mlir::Value loadRuns(mlir::OpBuilder &b, const Address &address, mlir::VectorType type,
                       llvm::ArrayRef<mlir::Value> masks, mlir::Value passThrough,
                       unsigned alignment, bool isVolatile);
  void storeRuns(mlir::OpBuilder &b, const PreparedStore &store);

  mlir::Location loc;
  AccessAnalysis &access;
  mlir::OpBuilder builder;
  llvm::SmallVector<Level> levels;
  std::set<DerivedKey> assumed;
  unsigned assumedLevel = 0;
  unsigned numNested = 0; ///< evaluations that are under way
  mlir::Value zeroRow;
  int64_t shortestRun = 2;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H
