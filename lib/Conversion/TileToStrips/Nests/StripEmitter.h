// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores, and the reading and writing of buffers, for one strip (StripMemory.cpp). Values
// are those of StripValues.h.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H

#include "StripValues.h"

namespace tessera {

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

/// Computes strips, and loads and stores them.
class StripEmitter : public StripValues {
public:
  using StripValues::StripValues;

  /// From now on loads that may (ZeroRows.h) read the row of zeros at this i64.
  void setZeroRow(mlir::Value address) { zeroRow = address; }
  /// From now on runs of fewer lanes are gathered.
  void setShortestRun(int64_t lanes) { shortestRun = lanes; }
  Lanes load(tile::LoadOp op, llvm::ArrayRef<Index> index) override;
  Lanes read(strips::ReadOp op, llvm::ArrayRef<Index> index) override;
  Lanes gather(tile::GatherOp op, llvm::ArrayRef<Index> index) override;
  /// `value` is what the operation stores at that index.
  /// `nonTemporal`: under which condition the store may be non-temporal; null if it may not.
  PreparedStore prepareStore(tile::StoreOp op, llvm::ArrayRef<Index> index, Lanes value,
                             mlir::Value nonTemporal = {});
  PreparedStore prepareWrite(strips::WriteOp op, llvm::ArrayRef<Index> index, Lanes value);
  void perform(const PreparedStore &store);
  /// Some stores, all of them at once: in any order.
  void perform(llvm::ArrayRef<PreparedStore> stores);

private:
  mlir::Value flatBuffer(mlir::Value buffer);
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

  mlir::Value zeroRow;
  int64_t shortestRun = 2;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPEMITTER_H
