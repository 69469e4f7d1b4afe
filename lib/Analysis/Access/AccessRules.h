// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared parts of the access analysis: construction and normalisation of forms. The analysis itself
// is include/tessera/Analysis/Access/Access.h.

#ifndef TESSERA_LIB_ANALYSIS_ACCESS_ACCESSRULES_H
#define TESSERA_LIB_ANALYSIS_ACCESS_ACCESSRULES_H

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::access {

/// The divisibility of 0.
inline constexpr int64_t kAnyPower = int64_t(1) << 62;

/// The greatest power of two that divides an integer.
int64_t powerOfTwoDivisor(int64_t value);

/// The product of two powers of two, at most `kAnyPower`.
int64_t multiplyPowers(int64_t a, int64_t b);

/// Integers narrower than 32 bits wrap in honest programs: they are never affine.
bool isWide(mlir::Type type);

/// Bytes by which a pointer moves for one element; 1 for an integer.
int64_t unitOf(mlir::Type type);

/// A form of which nothing is known.
AccessForm makeOpaque(mlir::Type type);

/// The dimensions on which a form varies.
llvm::SmallBitVector variesOn(const AccessForm &form);

/// A divisor of the elements along `dim` whose index is a multiple of `run`.
int64_t divisibilityAt(const AccessForm &form, unsigned dim, int64_t run, int64_t unit);

/// For an aligned run of `run` integers along `dim` that counts up: a power of two. So many of them
/// begin at a multiple of that number, and do not carry into the bits above.
int64_t carryFreeRun(const AccessForm &form, unsigned dim, int64_t run);

/// A divisor of every element.
int64_t elementDivisibility(const AccessForm &form, int64_t unit = 1);

/// Has the strides, the runs and the constants of a form agree.
void normalize(AccessForm &form, mlir::Type type);

/// True if a sum of products is the same in all iterations of a loop, and after it.
bool isInvariant(const ScalarPolynomial &polynomial, mlir::scf::ForOp loop);

/// The terms added to `argument`, one after another, that give `value`; false if `value` is
/// computed otherwise.
bool collectAmounts(mlir::Value value, mlir::Value argument,
                    llvm::SmallVectorImpl<mlir::Value> &amounts);

/// The end of a loop in an iteration. If the end is chosen between a number and the begin, that
/// number is it, for with the begin there is no iteration.
mlir::Value getEndInIteration(mlir::scf::ForOp loop);

/// True if a hint is the user's word, and not something that is known.
bool isPromise(tile::HintOp op);

/// The form of an op's result from the forms of its operands, before normalising.
AccessForm applyRule(AccessAnalysis &analysis, mlir::OpResult value, FormKind kind);

} // namespace tessera::access

#endif // TESSERA_LIB_ANALYSIS_ACCESS_ACCESSRULES_H
