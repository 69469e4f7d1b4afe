// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that are equal in all blocks that run parts of a program (`tilegpu.num_parts`), so that one
// copy can write them to all.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_MULTICAST_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_MULTICAST_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// True if a value may be another one in another block of the cluster.
bool dependsOnBlock(mlir::Value value);

/// True if blocks may do a loop, or come to it, differently often.
bool isUneven(mlir::scf::ForOp loop);

/// The most rows of a box with which a tile is in as many boxes for each of so many blocks; none
/// if there are no such boxes.
std::optional<int64_t> getRowsOfShares(MemDescType tile, unsigned blocks);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_MULTICAST_H
