// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/Replication.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

Replication Replication::of(Type type, Operation *op) {
  unsigned numWarps = tilegpu::getNumWarps(op).value_or(1);
  unsigned threadBits = tilegpu::kLaneBits + llvm::Log2_64(numWarps);
  uint64_t allLanes = (1u << tilegpu::kLaneBits) - 1, allWarps = numWarps - 1;
  tilegpu::LayoutAttr layout = tilegpu::getLayoutAttr(type);
  uint64_t allBlocks = tilegpu::getNumBlocks(op) - 1;
  if (!layout)
    return {allLanes, allWarps, threadBits, allBlocks};
  Place free = layout.getLayout().freeBits();
  uint64_t uncounted = allWarps & ~uint64_t(layout.getNumWarps() - 1);
  return {free[static_cast<unsigned>(HwDim::Lane)],
          free[static_cast<unsigned>(HwDim::Warp)] | uncounted, threadBits,
          free[static_cast<unsigned>(HwDim::Block)]};
}

uint64_t Replication::getMask() const { return lanes | warps << tilegpu::kLaneBits; }

unsigned Replication::countCopies() const {
  return ((1u << threadBits) / countRepresentatives()) << llvm::popcount(blocks);
}

unsigned Replication::countRepresentatives() const {
  return 1u << (threadBits - llvm::popcount(lanes) - llvm::popcount(warps));
}
