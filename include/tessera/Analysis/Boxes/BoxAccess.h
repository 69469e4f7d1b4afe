// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds loads and stores that move a box: a rectangular part of a strided array. TMA, the copying
// unit of a GPU, copies it given a description of the array (a tensor map) and the coordinates of
// the box.
//
// The arrays are found again in the arithmetic on pointers. Every tile of integers or
// pointers is seen as
//
//     value[i0, i1, ...] = uniform + sum over d of stride_d * i_d
//
// with polynomials of scalars for `uniform` and the strides. `uniform` is distributed among the
// dimensions. Each gets the part that is a multiple of its stride. The mask's comparison with the
// bound of an array decides which part that is.
//
// Worked example, the left operand of a dot, with loop `for k in range(0, K, 64)`:
//
//     rows = pid * 128 + range(128);  ks = range(64)
//     p = a + rows[:, None] * ld + ks[None, :] + k
//     load(p, mask = (rows[:, None] < M) & (ks[None, :] < K - k), other = 0)
//
//     base a     dim 0: extent M, stride ld, coordinate pid * 128
//                dim 1: extent K, stride 1,  coordinate k
//
// Extents and strides must be known at the launch: they are expressions of the kernel's
// arguments. If the array is none, but found in memory, they must be known where that is: then
// the kernel describes the array itself. Coordinates are computed in the kernel; they can be
// computed anywhere, for they are polynomials, also of the iterations of loops that moved pointers
// along.
//
// Beyond the extents loads give 0 and stores do nothing. At negative coordinates loads give 0, and
// a GPU faults on a store. A dimension without a bound in the mask has none: its extent is
// kUnboundedExtent.
//
// Coordinates have 32 bits, addresses 64. A term that could take a coordinate beyond 32 bits,
// along a dimension without a bound, becomes an outer dimension with a stride of its own:
//
//     p = b + batch.to(int64) * (8192 * 1024) + rows[:, None] * 1024 + k
//
//     base b     outer: stride 8192 * 1024, coordinate batch
//                dim 0: stride 1024, coordinate pid * 128
//                dim 1: stride 1,    coordinate k
//
// If no dimension remains, the launch checks that coordinates fit in 32 bits.

#ifndef TESSERA_ANALYSIS_BOXES_BOXACCESS_H
#define TESSERA_ANALYSIS_BOXES_BOXACCESS_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Analysis/Access/ScalarPolynomial.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include <string>

namespace tessera {

/// An integer that is known at the launch: symbol k of it is argument k of the kernel.
using LaunchExpr = mlir::AffineExpr;

inline constexpr int64_t kUnboundedExtent = int64_t(1) << 31;

/// A tensor map has at most so many dimensions.
inline constexpr unsigned kMaxBoxRank = 5;

/// A dimension of the array.
struct BoxDim {
  LaunchExpr extent; ///< in elements
  LaunchExpr stride; ///< in elements
  /// The dimension of the tile that lies along this one; none for an outer dimension, of
  /// which the box holds one element (a batch, a head).
  std::optional<unsigned> tileDim;
  /// The tile's extent along this dimension; 1 for an outer one.
  int64_t tileExtent = 1;
  /// The start of the box.
  ScalarPolynomial coordinate;
  /// True if the coordinate is known to fit 32 bits, or if the program computes it in 32 bits.
  /// Otherwise the array ends along this dimension, and larger coordinates lie outside of it.
  bool isNarrow = false;
  /// True if it may be negative, which is known of stores alone. A mask has excluded such elements.
  bool mayBeNegative = false;

  /// True if no mask says where the array ends along it.
  bool isUnbounded() const {
    auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(extent);
    return constant && constant.getValue() == kUnboundedExtent;
  }
};

class BoxAccess {
public:
  /// The pointer that the array begins at: the kernel's, or one that it finds in memory.
  mlir::Value getBase() const { return base; }
  /// For an array whose address the kernel loads: the scalars that describe it, the base first.
  /// Symbol k of its extents and strides is the k-th of them. None for an array that is an
  /// argument.
  llvm::ArrayRef<mlir::Value> getParameters() const { return parameters; }
  bool isFoundByKernel() const { return !parameters.empty(); }
  /// True if the array's place, extents and strides are known outside of an op around the access.
  bool isKnownOutside(mlir::Operation *op) const;
  mlir::Type getElementType() const { return elementType; }
  /// Outer dimensions first, then every dimension of the tile, of which the one whose
  /// stride is 1 is last and the others are in the tile's order. At most kMaxBoxRank.
  llvm::ArrayRef<BoxDim> getDims() const { return dims; }
  /// True if each row of the array ends at a multiple of 16 bytes for certain, or has no end. TMA
  /// writes in pieces of 16 bytes, so a store by it would write beyond the end of another row.
  bool endsAligned() const { return isEndAligned; }
  /// Values that must not be negative at a launch, or this is not a box there.
  llvm::ArrayRef<LaunchExpr> getConditions() const { return conditions; }
  /// How many programs there may be along an axis of the grid, or this is no box there; 0: any.
  int64_t getMostPrograms() const { return mostPrograms; }
  /// Values that must not be negative in any program of a launch, or this is not a box there: text
  /// for the launcher (ProgramBound.h).
  llvm::ArrayRef<std::string> getProgramBounds() const { return programBounds; }
  /// Scalars of the program. If one of them is negative, nothing is moved: the first coordinate
  /// then lies outside the array.
  llvm::ArrayRef<ScalarPolynomial> getGuards() const { return guards; }

  /// True if the coordinates can be computed outside `region`, which contains the access. That code
  /// must have its own variables for the loops in `region`. If not, `why` (may be null) says what
  /// stands against it.
  bool canEmitOutside(mlir::Region &region, std::string *why = nullptr) const;

  /// Computes the coordinate of a dimension, an i32. Values in the mapping are replaced: usually
  /// induction variables by those of loops with the same bounds and steps. Values that are not to
  /// be seen at the insertion point are computed again there, which `canEmitOutside` has promised
  /// to be possible; the mapping remembers them.
  mlir::Value emitCoordinate(mlir::OpBuilder &builder, mlir::Location loc, unsigned dim,
                             mlir::IRMapping &mapping) const;
  /// Computes an i1 that is true if elements are moved, which is so if no guard is negative. Null
  /// if there are no guards.
  mlir::Value emitIsMoved(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::IRMapping &mapping) const;

private:
  friend class BoxFinder;

  mlir::Value base;
  llvm::SmallVector<mlir::Value, 0> parameters;
  mlir::Type elementType;
  llvm::SmallVector<BoxDim, 0> dims;
  llvm::SmallVector<LaunchExpr, 0> conditions;
  llvm::SmallVector<ScalarPolynomial, 0> guards;
  int64_t mostPrograms = 0;
  bool isEndAligned = true;
  llvm::SmallVector<std::string, 0> programBounds;
};

/// The box of a load or store. None if it moves no box, or the kernel cannot know it. Then `why`
/// (may be null) gets the reason, in the words of the language ("the mask is not a range along
/// dimension 0").
std::optional<BoxAccess> getBoxAccess(tile::LoadOp load, AccessAnalysis &analysis,
                                      std::string *why = nullptr);
std::optional<BoxAccess> getBoxAccess(tile::StoreOp store, AccessAnalysis &analysis,
                                      std::string *why = nullptr);

/// The bounds that a mask sets for a tile's indices: `i < upper` and `i + lower >= 0` along each
/// dimension, and nothing is accessed where a guard is negative.
struct MaskBounds {
  struct Dim {
    std::optional<ScalarPolynomial> upper, lower;
  };
  llvm::SmallVector<Dim, 2> dims;
  llvm::SmallVector<ScalarPolynomial, 1> guards;
};

/// The bounds of a mask (null: none), where these say all of it in any launch, and where neither it
/// nor the address is computed in less than 32 bits.
std::optional<MaskBounds> getMaskBounds(mlir::Operation *access, mlir::Value pointers,
                                        mlir::Value mask, AccessAnalysis &analysis);

/// That of a load or a store; none for other ops.
std::optional<BoxAccess> getBoxAccess(mlir::Operation *access, AccessAnalysis &analysis);

} // namespace tessera

#endif // TESSERA_ANALYSIS_BOXES_BOXACCESS_H
