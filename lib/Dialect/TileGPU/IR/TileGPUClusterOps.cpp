// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "tessera/Layout/BlockExchange.h"
#include "tessera/Layout/ExchangeRounds.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

void ClusterRankOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRanges) {
  unsigned bits = getType().getIntOrFloatBitWidth();
  setResultRanges(getResult(), ConstantIntRanges::fromUnsigned(
                                   APInt::getZero(bits), APInt(bits, getClusterSize(*this) - 1)));
}

LogicalResult ClusterSumOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.getShape() != result.getShape() || source.getElementType() != result.getElementType())
    return emitOpError("makes ") << result << " of " << source << "; only the layout may differ";
  if (!result.getElementType().isIntOrFloat() || result.getElementType().isInteger(1))
    return emitOpError("cannot add elements of ") << result.getElementType();
  for (RankedTensorType type : {source, result}) {
    LayoutAttr layout = getLayoutAttr(type);
    if (!layout)
      continue;
    if (type == source && countBlockParts(layout.getLayout()) != 1)
      return emitOpError("has a tile that is distributed over blocks, ") << source;
    if (layout.getNumBlocks() != getNumBlocks(*this))
      return emitOpError("is for ")
             << layout.getNumBlocks() << " blocks in a module of " << getNumBlocks(*this);
    std::optional<unsigned> warps = tilegpu::getNumWarps(*this);
    if (warps && *warps != layout.getNumWarps())
      return emitOpError("is for ") << layout.getNumWarps() << " warps in a module of " << *warps;
  }
  return success();
}

/// One place for each element of a round.
int64_t ClusterSumOp::getScratchBytes() {
  if (!getLayoutAttr(getType()))
    return 0;
  auto type = cast<RankedTensorType>(getType());
  return getTileBytes(type) / getScratchRounds(*this);
}

unsigned ClusterSumOp::getMoreRounds() {
  BlockExchange blocks(tilegpu::getLayout(getSource().getType()), tilegpu::getLayout(getType()));
  return getRoundsAfter(*this, getPossibleRounds(blocks.getSource(), blocks.getDestination(),
                                                 /*ofAllThreads=*/true));
}
