// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/FloatRounding.h"

using llvm::APFloat;

APFloat tessera::tile::saturate(APFloat value, bool isNaN, bool isNegative) {
  if (isNaN || value.isFinite() || APFloat::semanticsSizeInBits(value.getSemantics()) != 8)
    return value;
  return APFloat::getLargest(value.getSemantics(), isNegative);
}

APFloat tessera::tile::roundTo(const llvm::fltSemantics &semantics, APFloat value,
                               APFloat::roundingMode mode) {
  bool isNaN = value.isNaN(), isNegative = value.isNegative(), losesInfo;
  value.convert(semantics, mode, &losesInfo);
  return saturate(std::move(value), isNaN, isNegative);
}
