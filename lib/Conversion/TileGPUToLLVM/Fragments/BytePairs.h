// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that come in pairs. The instructions that convert to 8-bit floats make two of them in one
// 16-bit word. Handled byte by byte, as elements of tiles are, each byte would cost a conversion, a
// mask and half a permutation. A recognised word costs half a conversion per byte.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_BYTEPAIRS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_BYTEPAIRS_H

#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

namespace tessera {

/// The two bytes of a 16-bit word, the lower one first.
std::pair<mlir::Value, mlir::Value> splitPair(ThreadBuilder &thread, mlir::Value word);

/// A vector of integers or floats of these elements. Bytes which `splitPair` made are not put
/// together again one by one: their words are.
mlir::Value buildVector(ThreadBuilder &thread, mlir::ArrayRef<mlir::Value> elements);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_BYTEPAIRS_H
