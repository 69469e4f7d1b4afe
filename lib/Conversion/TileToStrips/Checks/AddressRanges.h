// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The addresses that an access of a group reaches, as code.
//
// The range of an access follows from its access form: from the lowest to the highest address of
// any index, ignoring masks. Addresses are signed numbers, since an address below an array may be
// below 0. Extents of the arrays passed to the kernel say nothing, since kernels legally walk past
// a view. If the addresses of rows depend on data (an embedding, paged caches), the program
// computes the lowest and the highest row before it starts. That is cheap beside the rows
// themselves.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_CHECKS_ADDRESSRANGES_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_CHECKS_ADDRESSRANGES_H

#include "Nests/StripEmitter.h"

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

namespace tessera {

/// Addresses `low` to `high - 1`, as i64; null if unknown.
struct AddressRange {
  mlir::Value low, high;
};

/// A range that reaches further than so many bytes to one side of a valid address covers all valid
/// addresses on that side. Valid addresses have at most 57 bits, so sums of a few such reaches do
/// not wrap.
constexpr int64_t kFurthest = int64_t(1) << 58;

/// How far elements are apart along a dimension, if that is a number or a multiple of a scalar.
std::optional<ScalarMultiple> getStride(const AccessForm &form, unsigned dim);

/// A product that is cut off at kFurthest, to either side.
int64_t multiplyReach(int64_t a, int64_t b);

/// Computes ranges in front of a group.
class AddressRanges {
public:
  /// `emitter` is one of the group.
  AddressRanges(strips::GroupOp group, AccessAnalysis &access, StripEmitter &emitter)
      : group(group), access(access), emitter(emitter), builder(group), loc(group.getLoc()) {}

  /// The range of pointers of the group, or of a scalar pointer.
  const AddressRange &get(mlir::Value pointers);
  /// The reach of `factor` strides, as an i64 of at most kFurthest to either side; null if unknown.
  mlir::Value buildReach(ScalarMultiple stride, int64_t factor);

private:
  mlir::Value constant(int64_t value);
  bool isRepeatable(mlir::Value value);
  AddressRange findOuterRows(mlir::Value pointers, const AccessForm &form);

  strips::GroupOp group;
  AccessAnalysis &access;
  StripEmitter &emitter;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::DenseMap<mlir::Value, AddressRange> ranges;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_CHECKS_ADDRESSRANGES_H
