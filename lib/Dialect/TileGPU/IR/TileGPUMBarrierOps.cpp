// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// The limit of the counts of arrivals and of bytes in a barrier.
static constexpr int64_t kCountLimit = int64_t(1) << 20;

LogicalResult MBarrierInitOp::verify() {
  if (int32_t arrivals = getArrivals(); arrivals < 1 || arrivals >= kCountLimit)
    return emitOpError("has ") << arrivals << " arrivals, not 1 to 2^20 - 1";
  return success();
}

LogicalResult MBarrierArriveOp::verify() {
  if (getInCluster() && isInPartition(*this))
    return emitOpError("arrives at barriers of all blocks, which one thread cannot");
  return success();
}

LogicalResult MBarrierExpectOp::verify() {
  if (!isInPartition(*this))
    return emitOpError("is not in code that one thread runs");
  if (int32_t bytes = getBytes(); bytes < 1 || bytes >= kCountLimit)
    return emitOpError("expects ") << bytes << " bytes, not 1 to 2^20 - 1";
  return success();
}
