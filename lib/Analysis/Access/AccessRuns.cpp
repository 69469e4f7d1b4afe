// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many elements one access may move: what forms of pointers and masks leave of a vector's
// width, before anything is known of registers, lanes or strips.

#include "AccessRules.h"
#include "tessera/Analysis/Access/PromisedBytes.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// The aligned runs in which what a bound compares counts up without wrapping: all of the tile, if
/// ranges say so. A run whose first element is a multiple of the run's length, a power of two,
/// does not carry into the bits above, whatever they are.
static int64_t getCountingRun(const MaskTerm &term, AccessAnalysis &analysis, Promises promises) {
  const AccessForm &form = analysis.getForm(term.left, {/*isExact=*/true, promises});
  unsigned along = access::variesOn(form).find_first();
  if (analysis.getRanges().isExact(term.left, term.step, term.isSigned))
    return getShape(term.left.getType())[along];
  return carryFreeRun(form, along, form.contiguity[along]);
}

int64_t AccessAnalysis::getPrefixRun(Value mask, unsigned dim, Promises promises) {
  FormKind kind{/*isExact=*/false, promises};
  int64_t run = getShape(mask.getType())[dim];
  for (const MaskTerm &term : getMask(mask)) {
    if (term.kind == MaskTerm::General)
      run = std::gcd(run, getForm(term.value, kind).constancy[dim]);
    else if (term.kind == MaskTerm::Bound && term.dim == dim)
      run = std::gcd(run, getCountingRun(term, *this, promises));
  }
  return std::max(run, getForm(mask, kind).constancy[dim]);
}

int64_t AccessAnalysis::getBoundedRun(Value mask, unsigned dim, Promises promises) {
  FormKind kind{/*isExact=*/false, promises};
  int64_t run = getShape(mask.getType())[dim];
  for (const MaskTerm &term : getMask(mask))
    if (term.kind == MaskTerm::General)
      run = std::gcd(run, getForm(term.value, kind).constancy[dim]);
  return std::max(run, getForm(mask, kind).constancy[dim]);
}

MaskWithin AccessAnalysis::getMaskWithin(Value mask, unsigned dim, int64_t count,
                                         Promises promises) {
  if (getForm(mask, {/*isExact=*/false, promises}).constancy[dim] % count == 0)
    return MaskWithin::Whole;
  return getPrefixRun(mask, dim, promises) % count == 0 ? MaskWithin::Prefix : MaskWithin::Any;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

AccessRun AccessAnalysis::getRun(Value pointers, unsigned dim, Promises promises) {
  const AccessForm &form = getForm(pointers, {/*isExact=*/false, promises});
  return {getShape(pointers.getType())[dim], form.contiguity[dim], form.constancy[dim],
          form.runDivisibility[dim]};
}

int64_t AccessAnalysis::getVectorWidth(Value pointers, Value mask, unsigned dim, int64_t bytes,
                                       MaskWithin within) {
  return std::max(getVectorWidth(pointers, mask, dim, bytes, within, Promises::Ignored),
                  getVectorWidth(pointers, mask, dim, std::min(bytes, kMaxPromisedBytes), within,
                                 Promises::Believed));
}

int64_t AccessAnalysis::getVectorWidth(Value pointers, Value mask, unsigned dim, int64_t bytes,
                                       MaskWithin within, Promises promises) {
  AccessRun run = getRun(pointers, dim, promises);
  int64_t size = unitOf(pointers.getType());
  int64_t width =
      std::min({powerOfTwoDivisor(run.neighbours), std::max<int64_t>(1, run.alignment / size),
                std::max<int64_t>(1, bytes / size)});
  if (!mask || width == 1)
    return width;
  int64_t masked = getForm(mask, {/*isExact=*/false, promises}).constancy[dim];
  if (within != MaskWithin::Whole)
    masked = within == MaskWithin::Prefix ? getPrefixRun(mask, dim, promises)
                                          : getBoundedRun(mask, dim, promises);
  return std::min(width, powerOfTwoDivisor(masked));
}
