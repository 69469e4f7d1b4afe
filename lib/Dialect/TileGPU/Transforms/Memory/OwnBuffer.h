// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared memory in which each thread has its own elements of a tile. It reads only its own writes,
// in pieces of 16 bytes beside those of its neighbours.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_MEMORY_OWNBUFFER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_MEMORY_OWNBUFFER_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// The buffer for tiles of a type that has a layout; of a cluster each block has its part. Null if
/// there is none.
MemDescType getOwnBuffer(mlir::Type tile);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_MEMORY_OWNBUFFER_H
