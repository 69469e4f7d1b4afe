// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a copy by a tensor map needs to know of the map, which is an argument of the kernel.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// On a copy by a tensor map, from tilegpu-mark-boxes: the rows of a box, which the map has.
inline constexpr llvm::StringLiteral kBoxRowsAttr =
    tilegpu::TileGPUDialect::BoxRowsAttrHelper::getNameStr();

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H
