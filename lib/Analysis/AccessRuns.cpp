// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many elements one access may move: what forms of pointers and masks leave of a vector's
// width, before anything is known of registers, lanes or strips.

#include "AccessRules.h"

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
static int64_t getCountingRun(const MaskTerm &term, AccessAnalysis &analysis) {
  const AccessForm &form = analysis.getExactForm(term.left);
  unsigned along = access::variesOn(form).find_first();
  if (analysis.getRanges().isExact(term.left, term.step, term.isSigned))
    return getShape(term.left.getType())[along];
  return carryFreeRun(form, along, form.contiguity[along]);
}

int64_t AccessAnalysis::getPrefixRun(Value mask, unsigned dim) {
  int64_t run = getShape(mask.getType())[dim];
  for (const MaskTerm &term : getMask(mask)) {
    if (term.kind == MaskTerm::General)
      run = std::gcd(run, getForm(term.value).constancy[dim]);
    else if (term.kind == MaskTerm::Bound && term.dim == dim)
      run = std::gcd(run, getCountingRun(term, *this));
  }
  return std::max(run, getForm(mask).constancy[dim]);
}

int64_t AccessAnalysis::getBoundedRun(Value mask, unsigned dim) {
  int64_t run = getShape(mask.getType())[dim];
  for (const MaskTerm &term : getMask(mask))
    if (term.kind == MaskTerm::General)
      run = std::gcd(run, getForm(term.value).constancy[dim]);
  return std::max(run, getForm(mask).constancy[dim]);
}

MaskWithin AccessAnalysis::getMaskWithin(Value mask, unsigned dim, int64_t count) {
  if (getForm(mask).constancy[dim] % count == 0)
    return MaskWithin::Whole;
  return getPrefixRun(mask, dim) % count == 0 ? MaskWithin::Prefix : MaskWithin::Any;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

AccessRun AccessAnalysis::getRun(Value pointers, unsigned dim) {
  const AccessForm &form = getForm(pointers);
  return {getShape(pointers.getType())[dim], form.contiguity[dim], form.constancy[dim],
          form.runDivisibility[dim]};
}

int64_t AccessAnalysis::getVectorWidth(Value pointers, Value mask, unsigned dim, int64_t bytes,
                                       MaskWithin within) {
  AccessRun run = getRun(pointers, dim);
  int64_t size = unitOf(pointers.getType());
  int64_t width =
      std::min({powerOfTwoDivisor(run.neighbours), std::max<int64_t>(1, run.alignment / size),
                std::max<int64_t>(1, bytes / size)});
  if (!mask || width == 1)
    return width;
  int64_t masked = getForm(mask).constancy[dim];
  if (within != MaskWithin::Whole)
    masked = within == MaskWithin::Prefix ? getPrefixRun(mask, dim) : getBoundedRun(mask, dim);
  return std::min(width, powerOfTwoDivisor(masked));
}
