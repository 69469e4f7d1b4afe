// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The regions of reduce, scan and sort: code on scalars, which is inlined for each pair of groups
// of registers.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_COMBINEREGION_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_COMBINEREGION_H

#include "Patterns.h"

namespace tessera {

/// The elements at one place of several tiles.
using Group = llvm::SmallVector<mlir::Value, 2>;

class CombineRegion {
public:
  CombineRegion(mlir::Region &region, const TileGPUTypeConverter &converter,
                mlir::ConversionPatternRewriter &rewriter, mlir::Location loc,
                bool isKnownToCommute = false)
      : region(region), converter(converter), rewriter(rewriter), loc(loc),
        isKnownToCommute(isKnownToCommute) {}

  /// The result of the region for these groups: a copy of it, which the conversion converts.
  Group operator()(llvm::ArrayRef<mlir::Value> left, llvm::ArrayRef<mlir::Value> right) const;

  /// True if it gives the same with its operands exchanged, to the bit: it is said to, or is one op
  /// an operand that does.
  bool isCommutative() const;

  /// The warp-wide reduction of 32-bit integers that computes the same, if there is one.
  std::optional<WarpReduction> getWarpReduction() const;

private:
  mlir::Value cast(mlir::Value value, mlir::Type type) const;

  mlir::Region &region;
  const TileGPUTypeConverter &converter;
  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  bool isKnownToCommute;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_COMBINEREGION_H
