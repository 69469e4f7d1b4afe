// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The access analysis: what a tile of integers or pointers looks like.
//
// Every value is seen as
//
//     value[i0, i1, ...] = base + uniform + sum over d of stride_d * i_d + opaque[i0, i1, ...]
//
// `base` is a pointer that the kernel is given, `uniform` is the same for all elements, and
// it and the strides are sums of products of scalars (ScalarPolynomial.h). The opaque part is
// what the analysis cannot see through, with the dimensions it varies on. Along a dimension on
// which the opaque part does not vary, neighbours are exactly `stride_d` apart: that is all that
// a vector load or a coalesced access needs. A box (BoxAccess.h) needs a value without opaque
// part whose base and uniform part are known.
//
// Scalars are names in these sums: a scalar is not replaced by what it is computed from, unless
// that is a multiple of another or a constant. The expression that it is computed from is its
// definition. `getLinearForm` replaces names in sums by their definitions, for users that need the
// start of a tile.
//
// Worked example (a row-major matrix of pointers):
//
//     p = base + (pid * 64 + range(64))[:, None] * ld + range(32)[None, :]
//     form(p): rank 2, stride_0 = ld (run time), stride_1 = 1, no opaque part
//
// and for rows chosen by an index tile, p = base + idx[:, None] * 32 + range(32)[None, :]:
//
//     form(p): stride_1 = 1, opaque part varies on dimension 0
//
// Strides of pointers count elements of the pointee. Integers wrap: what a form says of a
// tile of integers of w bits is true up to multiples of 2^w. That is all there is to say in that
// width, but a tile that is extended to more bits, compared or divided is another where it
// wraps. So there are two forms of a value that differ behind extensions. The form *of an
// address* takes for granted that what is extended does not wrap: an address that wraps is a bad
// address (docs/Language.md). The *exact* form takes nothing for granted; what ranges
// (IntegerRanges.h) do not prove it does not have. Masks, comparisons, quotients and remainders
// are made of exact forms, also where they are part of an address.
//
// Aligned runs are exact without a proof: of a run of 2^k elements whose first one is a multiple
// of 2^k, no element has other high bits than the first.
//
// Promises of the user's (`tile.hint`) are kept apart from what is proven, since a broken one must
// not make a kernel access what it does not name. Forms ignore promises unless `FormKind` believes
// them. Only `getVectorWidth` and what chooses layouts do so: a promise makes an access at most 16
// bytes wide. A hint that the program has checked (`strips.checked`) is no promise but a fact.

#ifndef TESSERA_ANALYSIS_ACCESS_ACCESS_H
#define TESSERA_ANALYSIS_ACCESS_ACCESS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"
#include "tessera/Analysis/Access/IntegerRanges.h"
#include "tessera/Analysis/Access/ScalarPolynomial.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>

namespace tessera {

/// Does a form rely on the user's promises?
enum class Promises { Ignored, Believed };

/// The kind of form that a query returns.
struct FormKind {
  bool isExact = false;
  Promises promises = Promises::Ignored;
};

/// The form of one value (see the top of this file).
struct AccessForm {
  /// One a dimension; none for a scalar. Meaningless where `opaque` is set.
  llvm::SmallVector<ScalarPolynomial> strides;
  /// The dimensions on which the opaque part varies.
  llvm::SmallBitVector opaque;
  /// The first element of every aligned run of `contiguity[d]` elements along d is a multiple of
  /// `divisibility` (pointers: bytes), and the run counts up by one (pointers: by one element). One
  /// a dimension; 1 where nothing is known. If no run counts up (every contiguity is 1), every
  /// element is a multiple.
  llvm::SmallVector<int64_t> contiguity;
  /// Every aligned run of `constancy[d]` elements along d is equal.
  llvm::SmallVector<int64_t> constancy;
  /// A power of two; 2^62 stands for "every power of two" (the value is 0).
  int64_t divisibility = 1;
  /// As `divisibility`, for the runs along one dimension alone: the first element of
  /// every aligned run of `contiguity[d]` elements along d is a multiple of this.
  llvm::SmallVector<int64_t> runDivisibility;
  /// The base of pointers: the kernel's pointer, or a scalar about which nothing else is known.
  /// Null where that is not known, and for integers.
  mlir::Value base;
  /// Element 0 (of pointers: less `base`, in elements), if there is no opaque part and it is known.
  std::optional<ScalarPolynomial> uniform;
  /// A scalar integer that is a name in its own `uniform`: what it is computed from, if known.
  std::optional<ScalarPolynomial> definition;

  /// True if neighbours along `dim` are a known number apart.
  bool isAffineAlong(unsigned dim) const { return !opaque.test(dim); }
  /// True if the value does not change along `dim`.
  bool isUniformAlong(unsigned dim) const { return isAffineAlong(dim) && strides[dim].isZero(); }
  /// True if all elements are the same for all that is known of neighbours.
  bool isUniform() const;
  /// The value of every element, where it is one compile-time constant.
  std::optional<int64_t> getConstant() const;
};

/// A form without opaque part. Its factors are numbers of iterations, and scalars that are neither
/// sums nor products.
struct LinearForm {
  mlir::Value base;
  ScalarPolynomial uniform;
  llvm::SmallVector<ScalarPolynomial> strides;
};

/// The contiguity of a tile of pointers along one of its dimensions, of `extent` elements. Every
/// lowering that moves several elements at once uses it.
struct AccessRun {
  int64_t extent = 1;
  /// Every aligned run of so many elements lies in memory one after another.
  int64_t neighbours = 1;
  /// Every aligned run of so many elements is one element.
  int64_t repeated = 1;
  /// The first element of every aligned run of `neighbours` is at a multiple of so many bytes.
  int64_t alignment = 1;

  bool isRow() const { return extent > 1 && neighbours == extent; }
  bool isOneElement() const { return repeated == extent; }
  /// True if no run of `count` elements that begins at a multiple of that has others.
  bool areNeighbours(int64_t count) const { return isRow() || neighbours % count == 0; }
  bool areRepeated(int64_t count) const { return isOneElement() || repeated % count == 0; }
};

/// The form of a mask within a run of elements.
enum class MaskWithin {
  Whole,  ///< the same for all elements of every run
  Prefix, ///< true for some first ones, perhaps none or all, and false for the others
  Any,
};

/// One condition of a mask: the whole mask is the AND of its terms.
struct MaskTerm {
  enum Kind {
    /// `value` does not vary on any dimension.
    Uniform,
    /// Along `dim`, element i is true if `i * step < limit`: the first `ceil(limit / step)`
    /// elements. The mask varies along no other dimension. `limit = (right - left)[element 0 along
    /// dim]` (+1 for <=), computed without wrapping. Later elements are false, unless `left` wraps
    /// there. (`getPrefixRun` checks that.)
    Bound,
    /// Anything else.
    General,
  } kind;
  /// The i1 tile (or scalar) of this term. In a General term, it has the mask's shape. In the
  /// others, it may be an operand of expand_dims, broadcast, splat or trans of the mask, with fewer
  /// dimensions. The same holds for `left` and `right`. Since they vary on no dimension but `dim`
  /// (of the mask), their element 0 is their very first element.
  mlir::Value value;
  unsigned dim = 0;       ///< Bound only: a dimension of the mask
  mlir::Value left;       ///< Bound only: the side that grows along `dim`
  mlir::Value right;      ///< Bound only: the side that does not vary along `dim`
  bool inclusive = false; ///< Bound only: <= and not <
  bool isSigned = true;   ///< Bound only
  int64_t step = 1;       ///< Bound only: the positive constant stride of `left`
};

/// Forms of the values of one function, computed on demand and kept (references stay
/// good). Changing the IR makes an analysis stale: make a new one.
class AccessAnalysis {
public:
  /// The form of an address, or of what becomes part of one.
  const AccessForm &getForm(mlir::Value value) { return getForm(value, FormKind()); }
  const AccessForm &getExactForm(mlir::Value value) { return getForm(value, {/*isExact=*/true}); }
  const AccessForm &getForm(mlir::Value value, FormKind kind);
  /// The form of an address or an index as sums in which names are replaced by what they are
  /// computed from.
  std::optional<LinearForm> getLinearForm(mlir::Value value);
  IntegerRanges &getRanges() { return ranges; }
  /// The terms of a mask. A Bound term may vary on other dimensions through `right`
  /// only if it is General.
  llvm::SmallVector<MaskTerm> getMask(mlir::Value mask);
  /// The contiguity of an access along a dimension.
  AccessRun getRun(mlir::Value pointers, unsigned dim, Promises promises = Promises::Ignored);
  /// How many elements along a dimension one access of at most `bytes` bytes moves, which lies at a
  /// multiple of its own size: a power of two. There may be no mask; if there is one, `within` is
  /// the most that it may be within an access. If that is Any, few accesses have elements that are
  /// only partly masked. Promises are believed for at most 16 bytes.
  int64_t getVectorWidth(mlir::Value pointers, mlir::Value mask, unsigned dim, int64_t bytes,
                         MaskWithin within);
  /// The form of a mask within every aligned run of `count` elements along `dim`.
  MaskWithin getMaskWithin(mlir::Value mask, unsigned dim, int64_t count,
                           Promises promises = Promises::Ignored);
  /// In every aligned run of so many elements along `dim` a mask is true for some first
  /// ones, perhaps none or all, and false for the others.
  int64_t getPrefixRun(mlir::Value mask, unsigned dim, Promises promises = Promises::Ignored);
  /// In every aligned run of so many elements along `dim` a mask varies by nothing but bounds,
  /// which few runs have an end of. If the run is longer than `getPrefixRun`, the bounded value may
  /// wrap within it. Then any of its elements may be true.
  int64_t getBoundedRun(mlir::Value mask, unsigned dim, Promises promises = Promises::Ignored);
  /// The dimensions on which a value varies at all, as far as is known.
  llvm::SmallBitVector variesOn(mlir::Value value);

private:
  using Forms = llvm::DenseMap<mlir::Value, std::unique_ptr<AccessForm>>;
  AccessForm compute(mlir::Value value, FormKind kind);
  AccessForm computeArgument(mlir::BlockArgument argument, FormKind kind);
  AccessForm computeInduction(mlir::BlockArgument argument, FormKind kind);
  AccessForm computeCarried(mlir::BlockArgument argument, FormKind kind);
  std::optional<ScalarPolynomial> sumOverIterations(mlir::scf::ForOp loop,
                                                    const AccessForm &initial,
                                                    llvm::ArrayRef<mlir::Value> amounts,
                                                    FormKind kind);
  Forms &getKnown(FormKind kind);
  bool hasPromises(mlir::Value value);
  int64_t getVectorWidth(mlir::Value pointers, mlir::Value mask, unsigned dim, int64_t bytes,
                         MaskWithin within, Promises promises);

  using Expansions = llvm::DenseMap<mlir::Value, ScalarPolynomial>;
  std::optional<ScalarPolynomial> expand(const ScalarPolynomial &polynomial, bool isExact,
                                         Expansions &known, unsigned depth = 0);
  ScalarPolynomial expandName(mlir::Value name, bool isExact, Expansions &known, unsigned depth);

  IntegerRanges ranges;
  /// Forms of addresses, and exact ones; without promises, and with them. Behind pointers, so that
  /// a form stays where it is while others are added.
  Forms forms[4];
  /// True if the function has promises; none before the first query.
  std::optional<bool> isPromised;
  Expansions expansions;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_ACCESS_H
