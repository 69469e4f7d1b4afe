// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/F2Matrix.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera::f2 {

uint64_t Span::reduce(uint64_t vector, uint64_t *combination) const {
  uint64_t residual = 0, used = 0;
  // A stored vector has no bits below its pivot, so one sweep upwards is enough.
  while (vector) {
    unsigned pivot = llvm::countr_zero(vector);
    uint64_t bit = uint64_t(1) << pivot;
    if (pivots & bit) {
      vector ^= vectors[pivot];
      used ^= tags[pivot];
    } else {
      residual |= bit;
      vector ^= bit;
    }
  }
  if (combination)
    *combination = used;
  return residual;
}

bool Span::add(uint64_t column, uint64_t tag) {
  uint64_t combination;
  uint64_t residual = reduce(column, &combination);
  if (!residual)
    return false;
  unsigned pivot = llvm::countr_zero(residual);
  vectors[pivot] = residual;
  tags[pivot] = combination ^ tag;
  pivots |= uint64_t(1) << pivot;
  return true;
}

unsigned Span::rank() const { return llvm::popcount(pivots); }

uint64_t apply(ArrayRef<uint64_t> columns, uint64_t x) {
  uint64_t result = 0;
  for (x &= maskTrailingOnes<uint64_t>(columns.size()); x; x &= x - 1)
    result ^= columns[llvm::countr_zero(x)];
  return result;
}

unsigned rank(ArrayRef<uint64_t> columns) {
  Span span;
  for (uint64_t column : columns)
    span.add(column);
  return span.rank();
}

std::optional<uint64_t> solve(ArrayRef<uint64_t> columns, uint64_t target) {
  Span span;
  for (auto [index, column] : llvm::enumerate(columns))
    span.add(column, uint64_t(1) << index);
  uint64_t combination;
  if (span.reduce(target, &combination))
    return std::nullopt;
  return combination;
}

Columns kernel(ArrayRef<uint64_t> columns) {
  Span span;
  Columns result;
  for (auto [index, column] : llvm::enumerate(columns)) {
    uint64_t tag = uint64_t(1) << index, combination;
    if (span.reduce(column, &combination) == 0)
      result.push_back(combination ^ tag);
    else
      span.add(column, tag);
  }
  return result;
}

Columns extend(ArrayRef<uint64_t> base, ArrayRef<uint64_t> candidates) {
  Span span;
  for (uint64_t column : base)
    span.add(column);
  Columns result;
  for (uint64_t candidate : candidates)
    if (span.add(candidate))
      result.push_back(candidate);
  return result;
}

std::optional<Columns> inverse(ArrayRef<uint64_t> columns, unsigned bits) {
  Span span;
  for (auto [index, column] : llvm::enumerate(columns))
    if (!span.add(column, uint64_t(1) << index))
      return std::nullopt;
  Columns result;
  for (unsigned bit = 0; bit < bits; ++bit) {
    uint64_t combination;
    if (span.reduce(uint64_t(1) << bit, &combination))
      return std::nullopt;
    result.push_back(combination);
  }
  return result;
}

Columns unitVectors(unsigned bits) {
  Columns result;
  for (unsigned bit = 0; bit < bits; ++bit)
    result.push_back(uint64_t(1) << bit);
  return result;
}

} // namespace tessera::f2
