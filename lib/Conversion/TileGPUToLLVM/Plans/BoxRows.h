// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The property of a tensor map, an argument of the kernel, that its copies need.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// On a copy by a tensor map, from tilegpu-mark-boxes: the rows of a box, which the map has.
inline constexpr llvm::StringLiteral kBoxRowsAttr =
    tilegpu::TileGPUDialect::BoxRowsAttrHelper::getNameStr();

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_BOXROWS_H
